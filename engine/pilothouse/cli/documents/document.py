"""What a document is: a plain value with the lines where its parts stand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MAX_DOCUMENTS = 1_000
"""Documents in one text."""

MAX_NODES = 100_000
"""Values in one document, with aliases put in."""

MAX_DEPTH = 100
"""Levels of nesting in one document."""

Place = tuple[str | int, ...]


class Refused(ValueError):  # noqa: N818 - the outcome, as the reader reports it
    """A text is refused. `line` counts from 1 and `path` is like `spec.steps[2]`, as far as they are known."""

    def __init__(self, message: str, line: int | None = None, path: str = "", document: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.path = path
        self.document = document


@dataclass(frozen=True)
class Document:
    """One document. `number` counts from 1 within its text; `lines` holds the line of each place, from 1, and is
    empty for JSON."""

    number: int
    value: Any = field(repr=False)  # it may hold secrets
    lines: Mapping[Place, int] = field(default_factory=dict)

    def line(self, place: Sequence[str | int]) -> int | None:
        """The line of a place, or of the nearest one around it that stands in the text."""
        for end in range(len(place), -1, -1):
            if (line := self.lines.get(tuple(place[:end]))) is not None:
                return line
        return None


def check_count(document: int) -> None:
    """Raises Refused where there are more documents than one text may hold."""
    if document > MAX_DOCUMENTS:
        raise Refused(f"holds more than {MAX_DOCUMENTS:,} documents", document=document)
