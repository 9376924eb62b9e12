"""The compiled programs: their folder's name, and that one under its own name is whole."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from e2e.cluster import binaries
from e2e.cluster.binaries import MODULES, NODE, Program
from e2e.cluster.errors import ClusterError
from e2e.cluster.layout import Layout

Put = Callable[[str, str], None]
TWO = (Program("pause", "pause"), Program("coredns", "dns"))
# A Go that writes to what follows -o: $7 of `go build -trimpath -ldflags FLAGS -o FILE PACKAGE`.
GO = """
case $1 in
  version) ;;
  env) test "$2" = GOTOOLCHAIN && echo auto || echo go1.26.8 ;;
  build) printf half > "$6"; {then} ;;
esac
"""


def test_the_folder_is_another_for_another_flag_lock_or_source(tmp_path: Path) -> None:
    modules = tmp_path / "modules"
    shutil.copytree(MODULES, modules)
    before = binaries.digest(modules, NODE)
    assert binaries.digest(modules, reversed(NODE)) == before
    assert binaries.digest(modules, (replace(NODE[0], flags="-s"), *NODE[1:])) != before
    for name in ("netpol/go.sum", "dns/main.go", "kubernetes/go.mod"):
        text = (modules / name).read_text()
        (modules / name).write_text(f"{text}// changed\n")
        assert binaries.digest(modules, NODE) != before, name
        (modules / name).write_text(text)
    assert binaries.digest(modules, NODE) == before


def test_builds_one_by_one_telling_which_and_only_what_is_missing(
    layout: Layout, program: Put, capsys: pytest.CaptureFixture[str]
) -> None:
    program("go", GO.format(then="true"))
    folder = binaries.ensure(layout, TWO)
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "coredns", "pause"]
    told = capsys.readouterr().err
    assert "building pause, 1 of 2 …" in told
    assert "building coredns, 2 of 2 …" in told
    program("go", "exit 9")
    assert binaries.ensure(layout, TWO) == folder
    assert capsys.readouterr().err == ""


def test_a_build_that_fails_leaves_no_program_and_shows_why(layout: Layout, program: Put) -> None:
    program("go", GO.format(then="echo no space left; exit 1"))
    with pytest.raises(ClusterError, match="no space left"):
        binaries.ensure(layout, TWO)
    assert not (binaries.folder(layout) / "pause").exists()
    program("go", GO.format(then="true"))
    assert (binaries.ensure(layout, TWO) / "pause").exists()


def test_the_version_that_is_told_is_the_one_that_is_compiled() -> None:
    assert f"k8s.io/kubernetes {binaries.KUBERNETES}" in (MODULES / "kubernetes" / "go.mod").read_text()


def test_each_program_that_is_not_ours_is_a_tool_of_its_module() -> None:
    for program in (*NODE, *binaries.CLIENTS):
        if program.package != ".":
            assert program.package in (MODULES / program.module / "go.mod").read_text(), program.name
