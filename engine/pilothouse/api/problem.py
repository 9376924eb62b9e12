"""What is wrong with a manifest, and where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


@dataclass(frozen=True, order=True)
class Problem:
    """One defect. `path` is like `spec.steps[2].when`, empty for the document as a whole."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def path_of(parts: Iterable[str | int]) -> str:
    """Keys and indices as one path: `spec.steps[2].when`, `metadata.labels['a.b/c']`."""
    path = ""
    for part in parts:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part and _PLAIN.issuperset(part):
            path += f".{part}" if path else part
        else:
            path += f"[{part!r}]"
    return path
