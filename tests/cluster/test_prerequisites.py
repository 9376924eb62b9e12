"""What a native cluster needs of the machine, and what is said when it is not there."""

import os
from collections.abc import Callable

import pytest

from e2e.cluster import prerequisites
from e2e.cluster.errors import ClusterError

Put = Callable[[str, str], None]
NEEDS = {"first": "package-a", "second": "package-a", "/no/such/file": "package-b"}


@pytest.fixture(autouse=True)
def _as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)


def test_names_each_missing_package_once() -> None:
    assert prerequisites.missing([NEEDS], lambda item: item == "first") == ["package-a", "package-b"]
    assert prerequisites.missing([NEEDS], lambda _: True) == []


def test_says_what_to_do_without_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ClusterError, match=r"needs Linux and root.*start Docker or Podman and install kind"):
        prerequisites.require(NEEDS)


def test_names_the_packages_where_it_cannot_install_them(program: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerequisites, "_SYSTEM_FOLDERS", "")
    monkeypatch.setenv("PATH", os.environ["PATH"].removesuffix(":/bin"))
    with pytest.raises(ClusterError, match="lacks what Debian calls: package-a package-b; install them"):
        prerequisites.require(NEEDS)


APT = """
folder=${0%/*}
case $1 in
  update) : > "$folder/fresh" ;;
  install) test -e "$folder/fresh" && : > "$folder/first" && chmod +x "$folder/first" ;;
esac
"""


def test_refreshes_the_lists_before_it_installs(program: Put, capsys: pytest.CaptureFixture[str]) -> None:
    program("apt-get", APT)
    prerequisites.require({"first": "package-a"})
    assert "installing the Debian packages: package-a" in capsys.readouterr().err


def test_shows_what_the_installer_said(program: Put) -> None:
    program("apt-get", "echo 'E: Unable to locate package package-a'; exit 100")
    with pytest.raises(ClusterError, match="Unable to locate package"):
        prerequisites.require({"first": "package-a"})
