"""Where a cluster's things are."""

from pathlib import Path

import pytest

from e2e.cluster.errors import ClusterError
from e2e.cluster.layout import Layout, cache_folder


def test_clusters_of_different_names_share_no_folder_and_no_address(tmp_path: Path) -> None:
    one, other = Layout.of("ph", tmp_path), Layout.of("t1", tmp_path)
    for part in (
        "run",
        "runtime",
        "namespace",
        "cgroup",
        "gateway",
        "address",
        "services",
        "pods",
        "dns_service",
        "lock",
    ):
        assert getattr(one, part) != getattr(other, part), part


def test_the_folders_of_one_cluster_are_not_within_another(tmp_path: Path) -> None:
    assert not Layout.of("t1", tmp_path).run.is_relative_to(Layout.of("ph", tmp_path).run)


@pytest.mark.parametrize("name", ["", "1a", "a-b", "A", "elevenchars", "a/b", "ph\n"])
def test_refuses_a_name_that_cannot_be_an_interface_and_a_host(name: str) -> None:
    with pytest.raises(ClusterError, match="1 to 10 of a-z and 0-9"):
        Layout.of(name)


def test_the_cache_is_where_scripts_setup_has_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("PILOTHOUSE_CACHE", raising=False)
    assert cache_folder() == tmp_path / "pilothouse"
    monkeypatch.setenv("PILOTHOUSE_CACHE", str(tmp_path / "elsewhere"))
    assert cache_folder() == tmp_path / "elsewhere"
