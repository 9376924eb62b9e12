"""The entries below a directory of the workspace that match a pattern."""

import fnmatch
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from pilothouse.tools.sandbox.errors import PathRefused
from pilothouse.tools.sandbox.workspace import MAX_DEPTH, Workspace

MAX_PARTS = 32
"""Parts of a pattern between slashes, at most."""


@dataclass(frozen=True, slots=True)
class Found:
    path: str
    kind: str
    size: int


def find(workspace: Workspace, path: str, pattern: str) -> Iterator[Found | None]:
    """Yields what matches, sorted by path, and None now and then for others to have their turn.

    A part `*` or `**` does not match a name that begins with a dot. Raises PathRefused and PathNotFound.
    """
    parts = _parts(pattern)
    base = [part for part in path.split("/") if part not in ("", ".")]
    os.close(workspace.open(path, os.O_PATH | os.O_DIRECTORY))
    yield from _walk(workspace, base, parts, frozenset({0}))


def _parts(pattern: str) -> tuple[str, ...]:
    parts = tuple(part for part in pattern.split("/") if part not in ("", "."))
    if not parts or len(parts) > MAX_PARTS or ".." in parts or pattern.startswith("/"):
        raise PathRefused(f"{pattern[:80]!r} must be a pattern relative to its directory, such as 'src/**/*.py'")
    return parts


def _walk(
    workspace: Workspace, directory: list[str], parts: tuple[str, ...], places: frozenset[int]
) -> Iterator[Found | None]:
    """`places` are the parts of the pattern that the names in this directory may match."""
    if len(directory) > MAX_DEPTH:
        return
    yield None
    for entry, status in _entries(workspace, "/".join(directory) or "."):
        after = _step(parts, places, entry)
        here = [*directory, entry]
        if len(parts) in after:
            yield Found("/".join(here), _kind(status), status.st_size if stat.S_ISREG(status.st_mode) else 0)
        if (deeper := after - {len(parts)}) and stat.S_ISDIR(status.st_mode):
            yield from _walk(workspace, here, parts, deeper)


def _entries(workspace: Workspace, path: str) -> list[tuple[str, os.stat_result]]:
    """Sorted so that what is below a directory comes where its path belongs. What vanishes meanwhile is left out."""
    fd = workspace.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK)
    try:
        found = []
        for name in os.listdir(fd):
            try:
                found.append((name, os.stat(name, dir_fd=fd, follow_symlinks=False)))
            except FileNotFoundError:
                continue
    finally:
        os.close(fd)
    return sorted(found, key=lambda one: one[0] + ("/" if stat.S_ISDIR(one[1].st_mode) else ""))


def _step(parts: tuple[str, ...], places: frozenset[int], name: str) -> frozenset[int]:
    """The places after one more name; the number of parts is the end of the pattern."""
    after: set[int] = set()
    for place in _closure(parts, places):
        if place == len(parts):
            continue
        if parts[place] == "**":
            if not name.startswith("."):
                after |= {place} | ({len(parts)} if place == len(parts) - 1 else set())
        elif _matches(parts[place], name):
            after.add(place + 1)
    return frozenset(after)


def _closure(parts: tuple[str, ...], places: frozenset[int]) -> set[int]:
    """A `**` may stand for no directory at all."""
    reached = set(places)
    for place in sorted(places):
        while place < len(parts) - 1 and parts[place] == "**":
            place += 1
            reached.add(place)
    return reached


def _matches(part: str, name: str) -> bool:
    if name.startswith(".") and not part.startswith("."):
        return False
    return _pattern(part).match(name) is not None


@cache
def _pattern(part: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(part))


def _kind(status: os.stat_result) -> str:
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}
    return kinds.get(stat.S_IFMT(status.st_mode), "other")
