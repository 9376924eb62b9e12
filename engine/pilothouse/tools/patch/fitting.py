"""Finding the place of each hunk in a file, and the file with all of them applied."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pilothouse.tools.patch.changes import Hunk, PatchRefused

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Edit:
    """A hunk at its place: from line `start` (from 0) of the old file on."""

    hunk: Hunk
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.hunk.old)


class Text:
    """A file's lines, and what its ends of lines are."""

    def __init__(self, text: str) -> None:
        windows = "\r\n" in text and text.count("\r\n") == text.count("\n")
        self.newline = "\r\n" if windows else "\n"
        self.final = not text or text.endswith(self.newline)
        self.lines = text.removesuffix(self.newline).split(self.newline) if text else []

    def edited(self, edits: Sequence[Edit]) -> str:
        lines, position, final = list[str](), 0, self.final
        for edit in edits:
            lines += self.lines[position : edit.start] + self._kept(edit)
            position = edit.end
            if edit.end == len(self.lines):
                final = not edit.hunk.no_newline
        lines += self.lines[position:]
        return self.newline.join(lines) + (self.newline if final and lines else "")

    def _kept(self, edit: Edit) -> list[str]:
        """The new lines; where one is context that differs in blanks at its end, the file's own stays."""
        own = {line.rstrip(): line for line in self.lines[edit.start : edit.end]}
        context = set(edit.hunk.old)
        return [own.get(line.rstrip(), line) if line in context else line for line in edit.hunk.new]


def fit(text: Text, hunks: Sequence[Hunk]) -> tuple[Edit, ...]:
    """The hunks at their places, in order. Raises PatchRefused, with the place, for one that does not fit."""
    edits: list[Edit] = []
    for hunk in hunks:
        edits.append(Edit(hunk, _place(text.lines, hunk, edits[-1].end if edits else 0)))
    return tuple(edits)


def render(text: Text, edits: Sequence[Edit]) -> str:
    """The edits as hunks of a unified diff, at the places where they were found."""
    parts, shift = [], 0
    for edit in edits:
        old, new = text.lines[edit.start : edit.end], edit.hunk.new
        parts.append(f"@@ -{edit.start + 1},{len(old)} +{edit.start + 1 + shift},{len(new)} @@")
        parts += _marked(old, new)
        shift += len(new) - len(old)
    return "\n".join(parts)


def _marked(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    head = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    rest = list(zip(reversed(old[head:]), reversed(new[head:]), strict=False))
    tail = next((i for i, (a, b) in enumerate(rest) if a != b), len(rest))
    yield from (f" {line}" for line in old[:head])
    yield from (f"-{line}" for line in old[head : len(old) - tail])
    yield from (f"+{line}" for line in new[head : len(new) - tail])
    yield from (f" {line}" for line in old[len(old) - tail :])


def _place(lines: Sequence[str], hunk: Hunk, start: int) -> int:
    anchored = _below(lines, hunk, start)
    if not hunk.old:
        return _insertion(lines, hunk, start, anchored)
    found = _matches(lines, hunk, start if anchored is None else anchored)
    if not found and anchored:
        found = _matches(lines, hunk, anchored - 1)  # The line that it is below is often repeated in it.
    if not found:
        raise PatchRefused(_misfit(lines, hunk, start))
    if hunk.line is not None:
        return min(found, key=lambda place: abs(place + 1 - (hunk.line or 0)))
    if anchored is None and len(found) > 1:
        places = ", ".join(str(place + 1) for place in found[:_SHOWN])
        raise PatchRefused(f"{hunk.place} fits at more than one place (lines {places}): give it more lines of context")
    return found[0]


def _below(lines: Sequence[str], hunk: Hunk, start: int) -> int | None:
    """The line after the last of those that the hunk stands below; None if it names none."""
    place = start
    for anchor in hunk.below:
        found = next((index for index in range(place, len(lines)) if lines[index].strip() == anchor.strip()), None)
        if found is None:
            raise PatchRefused(f"{hunk.place}: the file has no line `{anchor[:80]}` below line {place}")
        place = found + 1
    return place if hunk.below else None


def _insertion(lines: Sequence[str], hunk: Hunk, start: int, anchored: int | None) -> int:
    if anchored is not None and not hunk.at_end:
        return anchored
    place = len(lines) if hunk.line is None or hunk.at_end else hunk.line
    if not start <= place <= len(lines):
        raise PatchRefused(f"{hunk.place} inserts after line {place}, but the file has {len(lines)} lines")
    return place


def _matches(lines: Sequence[str], hunk: Hunk, start: int) -> list[int]:
    """Where the old lines are, from `start` on: exactly, or else but for blanks at the ends of lines."""
    last = len(lines) - len(hunk.old)
    places = range(max(start, last) if hunk.at_end else start, last + 1)
    exact = [place for place in places if _same(lines, hunk.old, place)]
    if exact:
        return exact
    stripped, old = [line.rstrip() for line in lines], [line.rstrip() for line in hunk.old]
    return [place for place in places if _same(stripped, old, place)]


def _same(lines: Sequence[str], old: Sequence[str], place: int) -> bool:
    return all(lines[place + offset] == line for offset, line in enumerate(old))


def _misfit(lines: Sequence[str], hunk: Hunk, start: int) -> str:
    """Where the first old line stands, the first difference after it; that is what a model got wrong most often."""
    places = [place for place in range(start, len(lines)) if lines[place].strip() == hunk.old[0].strip()]
    best, length = -1, 0
    for place in places:
        common = 0
        while common < len(hunk.old) and place + common < len(lines) and lines[place + common] == hunk.old[common]:
            common += 1
        best, length = (place, common) if best < 0 or common > length else (best, length)
    if best < 0:
        return f"{hunk.place} does not fit: the file has no line `{hunk.old[0][:80]}` below line {start}"
    where = best + length
    has = f"`{lines[where][:80]}`" if where < len(lines) else "the end of the file"
    return f"{hunk.place} does not fit: at line {where + 1} it expects `{hunk.old[length][:80]}`, the file has {has}"
