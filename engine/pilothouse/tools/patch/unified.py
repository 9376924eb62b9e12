"""Unified diffs, as `diff -u` and git write them. Line numbers and counts are hints: models count badly."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pilothouse.tools.patch.changes import FileChange, Hunk, OpenHunk, PatchRefused

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_NOWHERE = "/dev/null"
_NO_NEWLINE = "\\ No newline"
_PROLOGUE = ("diff ", "index ", "new file mode", "deleted file mode", "old mode", "new mode", "similarity index")


def read_unified(patch: str) -> tuple[FileChange, ...]:
    """Raises PatchRefused."""
    files: list[_File] = []
    lines = patch.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, start=1):
        following = lines[number] if number < len(lines) else ""
        if line.startswith("--- ") and following.startswith("+++ "):
            files.append(_File(number, _path(line), _path(following)))
        elif files and not (line.startswith("+++ ") and not files[-1].hunks):
            files[-1].take(number, line)
        elif not files and (line.startswith(("@@", "+", "-", "rename ", "Binary ")) or not line.strip()):
            raise PatchRefused(f"line {number} of the patch: `--- a/PATH` and `+++ b/PATH` must come first")
    if not files:
        raise PatchRefused(
            "the patch names no file: `--- a/PATH` and `+++ b/PATH`, or `*** Begin Patch`, must come first"
        )
    return tuple(file.close() for file in files)


@dataclass(slots=True)
class _File:
    number: int
    old: str | None
    new: str | None
    hunks: list[OpenHunk] = field(default_factory=list)

    def take(self, number: int, line: str) -> None:
        if found := _HUNK.match(line):
            self.hunks.append(OpenHunk(number, int(found[1])))
        elif line.startswith(_PROLOGUE) or not self.hunks:
            return
        elif line.startswith(_NO_NEWLINE):
            hunk = self.hunks[-1]
            hunk.no_newline |= bool(hunk.lines) and hunk.lines[-1][0] != "-"
        else:
            self.hunks[-1].take(number, line)

    def close(self) -> FileChange:
        hunks = tuple(hunk.close() for hunk in self.hunks)
        path = self.old or self.new
        if path is None or not hunks:
            raise PatchRefused(f"line {self.number} of the patch: no file, or no `@@ -1,2 +1,2 @@` hunk in it")
        if self.old is None:
            return FileChange(path, "add", text=_text(hunks))
        if self.new is None:
            return FileChange(path, "delete")
        return FileChange(path, "update", hunks, new_path=None if self.new == self.old else self.new)


def _path(line: str) -> str | None:
    path = line[4:].split("\t")[0].strip().strip('"')
    return None if path == _NOWHERE else re.sub(r"^[ab]/", "", path)


def _text(hunks: Sequence[Hunk]) -> str:
    lines = [line for hunk in hunks for line in hunk.new]
    end = "" if hunks[-1].no_newline or not lines else "\n"
    return "\n".join(lines) + end
