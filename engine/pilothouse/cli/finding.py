"""A problem with the place where the user finds it: file, line, document, path."""

import ast
import re
from dataclasses import dataclass

from pilothouse.api.problem import Problem
from pilothouse.cli.documents.document import Document, Refused

_STEP = re.compile(r"\.?([A-Za-z0-9_-]+)|\[([0-9]+)\]|\[('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")\]")
_PATH_LENGTH = 300
_MESSAGE_LENGTH = 1_000


@dataclass(frozen=True)
class Source:
    """A document of a file; `number` is None where the file holds no other."""

    file: str
    number: int | None = None
    document: Document | None = None

    def __str__(self) -> str:
        return self.file if self.number is None else f"{self.file}: document {self.number}"

    def finding(self, problem: Problem) -> "Finding":
        line = self.document.line(_places(problem.path)) if self.document else None
        return Finding(self.file, line, self.number, problem)


@dataclass(frozen=True)
class Finding:
    """One problem, shown as `release.yaml:14: document 2: spec.steps[2].when: must be …`."""

    file: str
    line: int | None
    document: int | None
    problem: Problem

    @classmethod
    def of_refused(cls, file: str, refused: Refused, several: bool) -> "Finding":
        return cls(file, refused.line, refused.document if several else None, Problem(refused.path, refused.message))

    def __str__(self) -> str:
        file = self.file if self.line is None else f"{self.file}:{self.line}"
        parts = [file, f"document {self.document}" if self.document else "", _clip(self.problem.path, _PATH_LENGTH)]
        return ": ".join([*filter(None, parts), _clip(self.problem.message, _MESSAGE_LENGTH)])


def _places(path: str) -> list[str | int]:
    """The keys and indices of a path as `path_of` writes it."""
    return [
        name if name else int(index) if index else ast.literal_eval(quoted)
        for name, index, quoted in _STEP.findall(path)
    ]


def _clip(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}…"
