"""The patch format between `*** Begin Patch` and `*** End Patch`, which models are trained to write.

*** Begin Patch
*** Add File: notes.txt
+a line
*** Update File: src/app.py
*** Move to: src/main.py
@@ class App:
 context
-old
+new
*** Delete File: old.txt
*** End Patch
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pilothouse.tools.patch.changes import FileChange, Hunk, Kind, OpenHunk, PatchRefused

BEGIN, END = "*** Begin Patch", "*** End Patch"
_FILES: dict[str, Kind] = {"*** Add File: ": "add", "*** Update File: ": "update", "*** Delete File: ": "delete"}
_MOVE, _END_OF_FILE = "*** Move to: ", "*** End of File"


def read_envelope(patch: str) -> tuple[FileChange, ...]:
    """Raises PatchRefused."""
    lines = patch.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines or lines[0].strip() != BEGIN:
        raise PatchRefused(f"line 1 of the patch must be `{BEGIN}`")
    if lines[-1].strip() != END:
        raise PatchRefused(f"the last line of the patch must be `{END}`; was it cut off?")
    return tuple(_change(section) for section in _sections(lines[1:-1]))


@dataclass(slots=True)
class _Section:
    """The lines about one file, with the numbers that they have in the patch."""

    kind: Kind
    path: str
    number: int
    lines: list[tuple[int, str]] = field(default_factory=list)


def _sections(lines: Sequence[str]) -> Iterator[_Section]:
    section: _Section | None = None
    for number, line in enumerate(lines, start=2):
        marker = next((marker for marker in _FILES if line.startswith(marker)), None)
        if marker is not None:
            if section:
                yield section
            section = _Section(_FILES[marker], line.removeprefix(marker).strip(), number)
        elif section is None:
            raise PatchRefused(f"line {number} of the patch must be one of {', '.join(_FILES)}and a path")
        else:
            section.lines.append((number, line))
    if section is None:
        raise PatchRefused("the patch changes no file")
    yield section


def _change(section: _Section) -> FileChange:
    if section.kind == "add":
        return FileChange(section.path, "add", text=_added(section))
    if section.kind == "delete":
        if extra := [number for number, line in section.lines if line.strip()]:
            raise PatchRefused(f"line {extra[0]} of the patch: nothing may follow `*** Delete File: {section.path}`")
        return FileChange(section.path, "delete")
    lines, moved = section.lines, None
    if lines and lines[0][1].startswith(_MOVE):
        moved, lines = lines[0][1].removeprefix(_MOVE).strip(), lines[1:]
    hunks = tuple(_hunks(lines))
    if not hunks and moved is None:
        raise PatchRefused(f"line {section.number} of the patch: nothing is changed in `{section.path}`")
    return FileChange(section.path, "update", hunks, new_path=moved)


def _added(section: _Section) -> str:
    for number, line in section.lines:
        if not line.startswith("+"):
            raise PatchRefused(f"line {number} of the patch: each line of an added file must begin with `+`")
    return "".join(f"{line[1:]}\n" for _, line in section.lines)


def _hunks(lines: Sequence[tuple[int, str]]) -> Iterator[Hunk]:
    hunk: OpenHunk | None = None
    for number, line in lines:
        if line.startswith("@@"):
            if hunk and hunk.lines:
                yield hunk.close()
                hunk = None
            hunk = hunk or OpenHunk(number)
            hunk.below += [anchor] if (anchor := line[2:].strip().removesuffix("@@").strip()) else []
        elif line.strip() == _END_OF_FILE and hunk:
            hunk.at_end = True
        else:
            hunk = hunk or OpenHunk(number)
            hunk.take(number, line)
    if hunk:
        yield hunk.close()
