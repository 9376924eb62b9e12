"""Finding and removing entries of the workspace."""

import os
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.tools.sandbox import files
from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandbox.errors import PathNotFound, PathRefused
from pilothouse.tools.sandbox.exchanges import Entry
from pilothouse.tools.sandbox.listing import find
from pilothouse.tools.sandbox.protocol import Frame
from pilothouse.tools.sandbox.requests import Request
from pilothouse.tools.sandbox.workspace import Workspace

pytestmark = pytest.mark.feature("B35")

FILES = ("a.py", "b.txt", ".hidden/x.py", "one/a.py", "one/two/b.py", "one/two/three/c.md", "one-more/d.py")


@pytest.fixture
def tree(workspace: Path) -> Path:
    for name in FILES:
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(name)
    return workspace


@pytest.mark.parametrize(
    ("path", "pattern", "found"),
    [
        (".", "*", "a.py b.txt one-more one"),
        (".", "*.py", "a.py"),
        (".", "[ab].*", "a.py b.txt"),
        (".", "**/*.py", "a.py one-more/d.py one/a.py one/two/b.py"),
        (".", "one/**", "one/a.py one/two one/two/b.py one/two/three one/two/three/c.md"),
        (".", "**/two/**/*.md", "one/two/three/c.md"),
        (".", "**/**/c.md", "one/two/three/c.md"),
        (".", "*/*.py", "one-more/d.py one/a.py"),
        (".", ".hidden/*", ".hidden/x.py"),
        (".", ".*/*", ".hidden/x.py"),
        ("one", "*", "one/a.py one/two"),
        ("./one/", "two/*.py", "one/two/b.py"),
        (".", "nothing/*", ""),
        (".", "a.py/*", ""),
    ],
)
async def test_a_pattern_finds_what_a_shell_would(
    sandbox: Sandbox, tree: Path, path: str, pattern: str, found: str
) -> None:
    listing = await sandbox.find(path, pattern, max_entries=100)
    assert [entry.path for entry in listing.entries] == found.split()
    assert not listing.more


async def test_an_entry_has_a_kind_and_a_size_and_links_are_not_followed(sandbox: Sandbox, workspace: Path) -> None:
    (workspace / "file").write_bytes(b"12345")
    (workspace / "dir").mkdir()
    (workspace / "loop").symlink_to(".")
    (workspace / "out").symlink_to("/etc")
    os.mkfifo(workspace / "pipe")
    assert (await sandbox.find(".", "**", max_entries=100)).entries == (
        Entry("dir", "directory", 0),
        Entry("file", "file", 5),
        Entry("loop", "link", 0),
        Entry("out", "link", 0),
        Entry("pipe", "other", 0),
    )
    with pytest.raises(PathRefused):
        await sandbox.find("out", "*", max_entries=100)


async def test_what_is_found_is_bounded(sandbox: Sandbox, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(2_000):
        (workspace / f"{number:05}").touch()
    listing = await sandbox.find(".", "*", max_entries=1_500)
    assert (len(listing.entries), listing.more, listing.entries[-1].path) == (1_500, True, "01499")


@pytest.mark.parametrize(("path", "error"), [("missing", PathNotFound), ("..", PathRefused), ("file", PathRefused)])
async def test_a_path_that_is_no_directory_inside_is_refused(
    sandbox: Sandbox, workspace: Path, path: str, error: type[Exception]
) -> None:
    (workspace / "file").touch()
    with pytest.raises(error):
        await sandbox.find(path, "*", max_entries=1)


@pytest.mark.parametrize("pattern", ["", "/", ".", "../*", "a/../*", "/etc/*", "a/" * 40])
async def test_a_pattern_that_leads_elsewhere_is_refused(sandbox: Sandbox, pattern: str) -> None:
    with pytest.raises(PathRefused):
        await sandbox.find(".", pattern, max_entries=1)


async def test_odd_names_are_found(sandbox: Sandbox) -> None:
    names = ["a b", "ü", "\udcff", "a\nb", "*", "x" * 255]
    for name in names:
        await sandbox.put(name, b"")
    assert {entry.path for entry in (await sandbox.find(".", "*", max_entries=10)).entries} == set(names)


@pytest.mark.parametrize(("limit", "more"), [(51, False), (50, True)])
async def test_a_tree_without_end_is_left_after_some_directories(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, limit: int, more: bool
) -> None:
    for number in range(50):
        (workspace / str(number)).mkdir()
    monkeypatch.setattr(files, "MAX_DIRECTORIES", limit)
    answers: list[Frame] = []

    async def send(frame: Frame) -> None:
        answers.append(frame)

    fields: dict[str, object] = {"path": ".", "pattern": "**/none", "max_entries": 1}
    await files.found(Request(Frame(1, "find", fields), send), Workspace(workspace))
    assert answers == [Frame(1, "done", {"more": more})]


@given(st.lists(st.sampled_from(["**", "*", "a", "?", "b*"]), min_size=1, max_size=5))
def test_patterns_mean_what_the_standard_library_means(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str]
) -> None:
    root = tmp_path_factory.getbasetemp() / "patterns"
    if not root.exists():
        for name in ("a/a/a/b", "a/b/bb/a", "b/a/x", "bc/b/a", "c"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).touch()
    found = {one.path for one in find(Workspace(root), ".", "/".join(parts)) if one is not None}
    # A final `**` finds directories only there; here files, too, as Python has it from 3.13 on.
    pattern = "/".join([*parts, "*"] if parts[-1] == "**" else parts)
    assert found == {str(PurePosixPath(path.relative_to(root))) for path in root.glob(pattern)}


async def test_a_file_and_a_link_are_removed(sandbox: Sandbox, workspace: Path) -> None:
    (workspace / "dir").mkdir()
    (workspace / "dir/file").touch()
    (workspace / "link").symlink_to("dir")
    for path in ("dir/file", "link"):
        await sandbox.remove(path)
    assert os.listdir(workspace) == ["dir"]
    assert os.listdir(workspace / "dir") == []


@pytest.mark.parametrize(
    ("path", "error"),
    [("missing", PathNotFound), ("dir", PathRefused), ("../outside", PathRefused), ("out/file", PathRefused)],
)
async def test_what_is_no_file_inside_is_not_removed(
    sandbox: Sandbox, workspace: Path, path: str, error: type[Exception]
) -> None:
    (workspace.parent / "outside").touch()
    (workspace / "dir").mkdir()
    (workspace / "out").symlink_to("..")
    with pytest.raises(error):
        await sandbox.remove(path)
    assert (workspace.parent / "outside").exists()
