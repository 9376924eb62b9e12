"""What a function's docstring says for a model: its description and that of each argument."""

import inspect
import re
from dataclasses import dataclass, field

_SECTION = re.compile(
    r"(Args|Arguments|Parameters|Returns?|Yields?|Raises|Examples?|Notes?|Attributes|Todo|Warnings?|See Also):\s*\Z"
)
_GOOGLE = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)\Z")
_SPHINX = re.compile(r":(\w+)(?:\s+([^:]*))?:\s*(.*)\Z")
_ARGUMENTS = ("Args", "Arguments", "Parameters")


@dataclass(slots=True)
class Description:
    """`text` is all that stands before the first section; `arguments` by name."""

    text: str = ""
    arguments: dict[str, str] = field(default_factory=dict)


def describe(docstring: str | None) -> Description:
    """Reads a docstring in the style of Google (`Args:`) or of Sphinx (`:param name:`)."""
    reader = _Reader()
    for line in inspect.cleandoc(docstring or "").splitlines():
        reader.read(line)
    found = reader.found
    found.text = found.text.strip()
    found.arguments = {name: " ".join(text.split()) for name, text in found.arguments.items()}
    return found


class _Reader:
    def __init__(self) -> None:
        self.found = Description()
        self._section = ""
        self._argument = ""
        self._indent = 0

    def read(self, line: str) -> None:
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        if not indent and (section := _SECTION.match(stripped)):
            self._section, self._argument, self._indent = section[1], "", 0
        elif not indent and (field := _SPHINX.match(stripped)):
            self._sphinx(field)
        elif not self._section:
            self.found.text += line + "\n"
        elif self._section in _ARGUMENTS:
            self._google(stripped, indent)
        elif self._argument:
            self.found.arguments[self._argument] += " " + stripped

    def _sphinx(self, field: re.Match[str]) -> None:
        self._section, self._argument = ":", ""
        if field[1] in ("param", "parameter", "arg", "argument") and field[2]:
            self._argument = field[2].split()[-1]
            self.found.arguments[self._argument] = field[3]

    def _google(self, stripped: str, indent: int) -> None:
        self._indent = self._indent or indent
        entry = _GOOGLE.match(stripped) if indent <= self._indent else None
        if entry:
            self._argument = entry[1]
            self.found.arguments[self._argument] = entry[2]
        elif self._argument:
            self.found.arguments[self._argument] += " " + stripped
