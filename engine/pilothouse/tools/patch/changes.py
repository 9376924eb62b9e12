"""What a patch asks for, whichever format it was written in."""

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["add", "update", "delete"]


class PatchRefused(Exception):  # noqa: N818 - the outcome, as the caller reports it
    """A patch cannot be read or does not fit; the text says where, and what would be right."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """One place of a file: `old` lines that `new` ones replace, both with the context around them.

    `line` is where the patch says that it is (from 1; a hint only), `below` are lines that stand somewhere above it, in
    order; `at_end` says that it is the file's end.
    """

    place: str
    """Where it stands in the patch, for people."""
    old: tuple[str, ...]
    new: tuple[str, ...]
    line: int | None = None
    below: tuple[str, ...] = ()
    at_end: bool = False
    no_newline: bool = False
    """The new end of the file has no line end."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """What happens to one file. `text` is the content of one that is added; `new_path` where an updated one moves."""

    path: str
    kind: Kind
    hunks: tuple[Hunk, ...] = ()
    text: str = ""
    new_path: str | None = None


@dataclass(slots=True)
class OpenHunk:
    """A hunk while it is read, from line `number` of the patch on."""

    number: int
    line: int | None = None
    below: list[str] = field(default_factory=list)
    at_end: bool = False
    no_newline: bool = False
    lines: list[tuple[str, str]] = field(default_factory=list)
    """Each with its sign; of an empty line, as models write an empty line of context, that is empty, too."""

    def take(self, number: int, line: str) -> None:
        """Raises PatchRefused for a line without a sign."""
        if line[:1] not in ("", " ", "+", "-"):
            raise PatchRefused(
                f"line {number} of the patch must begin with ` ` (context), `-` (old), `+` (new) or `@@`; it is "
                f"{line[:80]!r}"
            )
        self.lines.append((line[:1], line[1:]))

    def close(self) -> Hunk:
        """Empty lines at its end are those between it and what follows in the patch."""
        while self.lines and not self.lines[-1][0]:
            self.lines.pop()
        if not any(sign in ("+", "-") for sign, _ in self.lines):
            raise PatchRefused(
                f"line {self.number} of the patch: the hunk changes nothing; mark lines with `-` and `+`"
            )
        old = tuple(text for sign, text in self.lines if sign != "+")
        new = tuple(text for sign, text in self.lines if sign != "-")
        place = f"the hunk at line {self.number} of the patch"
        return Hunk(place, old, new, self.line, tuple(self.below), self.at_end, self.no_newline)
