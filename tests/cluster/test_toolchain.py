"""Which Go can compile Kubernetes, and what is said of others."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.cluster import toolchain
from e2e.cluster.binaries import MODULES
from e2e.cluster.errors import ClusterError

Put = Callable[[str, str], None]


@pytest.mark.parametrize(
    ("text", "version"),
    [("go1.26.8\n", (1, 26, 8)), ("go 1.24", (1, 24)), ("devel go1.25-abc", (1, 25)), ("go1.26rc1", (1, 26))],
)
def test_reads_versions_as_go_and_its_modules_write_them(text: str, version: tuple[int, ...]) -> None:
    assert toolchain.parse(text) == version


def test_takes_a_go_that_can_fetch_the_later_one() -> None:
    assert toolchain.refusal((1, 24), (1, 26), local=False) is None
    assert toolchain.refusal((1, 26, 8), (1, 26), local=True) is None


def test_refuses_one_that_is_too_old_and_one_that_may_not_fetch() -> None:
    assert "Go 1.24 or later is needed" in (toolchain.refusal((1, 23, 9), (1, 26), local=False) or "")
    assert "install Go 1.26, or set GOTOOLCHAIN=auto" in (toolchain.refusal((1, 24), (1, 26), local=True) or "")


def test_needs_what_the_most_demanding_module_asks_for(tmp_path: Path) -> None:
    for name, text in (("a", "module a\n\ngo 1.24\n"), ("b", "module b\n\ngo 1.26.1\n"), ("c", "module c\n\ngo 1.9\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "go.mod").write_text(text)
    assert toolchain.needed(tmp_path) == (1, 26, 1)


def test_says_that_there_is_no_go(program: Put) -> None:
    with pytest.raises(ClusterError, match=r"Go 1\.24 or later is needed to compile Kubernetes, and there is no `go`"):
        toolchain.require(MODULES, Path("/nonexistent"))


def test_finds_go_where_it_is_usually_installed(program: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.environ["PATH"])  # put back afterwards
    usual = tmp_path / "usual"
    usual.mkdir()
    (usual / "go").write_text('#!/bin/sh\ntest "$2" = GOTOOLCHAIN && echo auto || echo go1.99.0\n')
    (usual / "go").chmod(0o755)
    toolchain.require(MODULES, usual)
    assert shutil.which("go") == str(usual / "go")


def test_says_that_the_go_on_path_is_too_old(program: Put) -> None:
    program("go", 'test "$2" = GOTOOLCHAIN && echo auto || echo go1.19.8')
    with pytest.raises(ClusterError, match=r"`go version` says 1\.19\.8"):
        toolchain.require(MODULES)
