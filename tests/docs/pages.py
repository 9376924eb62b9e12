"""The pages of the documentation, taken apart: headings, tables, code blocks and links."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SPEC = DOCS / "spec" / "v1alpha1"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")])

_BLOCK = re.compile(r"^ *```(?P<language>\w*)\n(?P<text>.*?)^ *```$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#+ (?P<text>.+)$", re.MULTILINE)
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_ROW = re.compile(r"^\| `(?P<field>\w+)` \|(?P<rest>.*)$", re.MULTILINE)
_QUOTED = re.compile(r"`(?P<text>[^`\n]+)`")


@dataclass(frozen=True, slots=True)
class Page:
    """One page. `prose` is its text without the code blocks."""

    path: Path
    text: str

    @classmethod
    def of(cls, path: Path) -> "Page":
        return cls(path, path.read_text(encoding="utf-8"))

    @property
    def prose(self) -> str:
        return _BLOCK.sub("", self.text)

    def blocks(self, language: str) -> list[str]:
        return [block["text"] for block in _BLOCK.finditer(self.text) if block["language"] == language]

    def links(self) -> Iterator[str]:
        return (link["target"] for link in _LINK.finditer(self.prose))

    def anchors(self) -> set[str]:
        """What a link to a heading of this page may say, as GitHub makes it."""
        return {_anchor(heading["text"]) for heading in _HEADING.finditer(self.prose)}

    def quoted(self) -> set[str]:
        return {quoted["text"] for quoted in _QUOTED.finditer(self.prose)}

    def section(self, name: str) -> str | None:
        """What stands below the heading that is this name in backticks, up to the next heading."""
        headings = list(_HEADING.finditer(self.prose))
        for heading, after in zip(headings, [*headings[1:], None], strict=True):
            if heading["text"] == f"`{name}`":
                return self.prose[heading.end() : after.start() if after else None]
        return None


def rows(section: str) -> Mapping[str, str]:
    """The first column of a table, without its backticks, and the rest of each row."""
    return {row["field"]: row["rest"] for row in _ROW.finditer(section)}


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
