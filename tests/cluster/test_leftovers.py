"""What a cluster's containers leave outside of its folders."""

from pathlib import Path

import pytest

from e2e.cluster import leftovers
from e2e.cluster.layout import Layout


@pytest.fixture
def machine(tmp_path: Path, layout: Layout, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folders that all clusters of a machine share, and the cluster's runtime folder, as folders of the test."""
    for name, folder in (("CNI_RESULTS", "results"), ("LOG_LINKS", "links")):
        (tmp_path / folder).mkdir()
        monkeypatch.setattr(leftovers, name, tmp_path / folder)
    monkeypatch.setattr(Layout, "runtime", property(lambda _: tmp_path / "runtime"))
    return tmp_path


def test_removes_what_is_the_clusters_and_nothing_else(machine: Path, layout: Layout) -> None:
    bundle = machine / "runtime" / "io.containerd.runtime.v2.task" / "k8s.io" / "ours"
    bundle.mkdir(parents=True)
    (bundle / "address").write_text(f"unix://{machine}/ours.sock")
    gone = [
        machine / "ours.sock",
        machine / "results" / "pilothouse-t0-aaa-eth0",
        machine / "results" / "cni-loopback-aaa-lo",
        machine / "links" / "ours.log",
    ]
    kept = [
        machine / "theirs.sock",
        machine / "results" / "pilothouse-t1-bbb-eth0",
        machine / "results" / "cni-loopback-bbb-lo",
        machine / "links" / "theirs.log",
    ]
    for path in (*gone[:3], *kept[:3]):
        path.touch()
    gone[3].symlink_to(layout.run / "pods" / "0.log")
    kept[3].symlink_to(machine / "elsewhere" / "0.log")
    leftovers.remove(layout)
    assert [path for path in gone if path.is_symlink() or path.exists()] == []
    assert [path for path in kept if not path.is_symlink() and not path.exists()] == []
