"""The text of an HTML page, for a model to read: headings, lists and links in Markdown, no scripts or styles.

The standard library's parser takes minutes for a page that was made to be slow. This one goes over the page once: each
step either moves on, or ends with all that is left being one unclosed tag.
"""

import re
from collections.abc import Iterator
from html import unescape

_HIDDEN = ("iframe", "noscript", "script", "style", "svg", "template", "title")
_HEADINGS = {f"h{level}": f"{'#' * level} " for level in range(1, 7)}
_SECTIONS = ("address", "article", "aside", "fieldset", "figure", "footer", "form", "header", "main", "nav", "section")
_LISTS = ("dd", "dl", "dt", "li", "ol", "ul")
_OTHERS = ("blockquote", "br", "div", "figcaption", "hr", "p", "pre", "table", "tr")
_BLOCKS = frozenset((*_SECTIONS, *_LISTS, *_OTHERS, *_HEADINGS))
_BEFORE = {**_HEADINGS, "li": "- "}
_SPACED = frozenset(("p", "pre", *_HEADINGS))

_TAG = re.compile(r"""<(/?)([a-zA-Z][a-zA-Z0-9]*+)((?:=\s*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z))|[^>])*+)(?:>|\Z)""")
_DECLARATION = re.compile(r"<!--.*?(?:-->|\Z)|<[!?][^>]*+(?:>|\Z)", re.DOTALL)
_ATTRIBUTE = re.compile(r"""\b(href|alt)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++))""", re.IGNORECASE)
_ENDS = {name: re.compile(f"</{name}(?![a-zA-Z0-9])", re.IGNORECASE) for name in _HIDDEN}
_BLANKS = re.compile(r"[ \t\n\r\f\v\u00a0]+")


def html_to_text(html: str) -> str:
    """Never raises: whatever cannot be understood is text."""
    page = _Page()
    for piece in _pieces(html):
        page.add(piece)
    return page.text()


def _pieces(html: str) -> Iterator[str | re.Match[str] | tuple[str, str]]:
    """Texts and tags in order; of an element whose content is not the page's text, its name and content."""
    position = 0
    while (start := html.find("<", position)) >= 0:
        yield html[position:start]
        position, tag = start, _TAG.match(html, start)
        if tag is not None:
            position = tag.end()
            yield tag
            if not tag[1] and (end := _ENDS.get(tag[2].lower())):
                closing = end.search(html, position)
                until = closing.start() if closing else len(html)
                yield tag[2].lower(), html[position:until]
                position = until
        elif declaration := _DECLARATION.match(html, start):
            position = declaration.end()
        else:
            yield "<"
            position += 1
    yield html[position:]


class _Page:
    """Collects what is shown."""

    def __init__(self) -> None:
        self._title = ""
        self._parts: list[str] = []
        self._links: list[str] = []
        self._preformatted = 0

    def text(self) -> str:
        lines = "\n".join(line.rstrip() for line in "".join(self._parts).split("\n"))
        body = re.sub(r"\n{3,}", "\n\n", lines).strip("\n")
        return f"{self._title}\n\n{body}" if self._title else body

    def add(self, piece: str | re.Match[str] | tuple[str, str]) -> None:
        if isinstance(piece, re.Match):
            (self._close if piece[1] else self._open)(piece[2].lower(), piece[3])
        elif isinstance(piece, str):
            text = unescape(piece)
            self._parts.append(text if self._preformatted else _BLANKS.sub(" ", text))
        elif piece[0] == "title" and not self._title:
            self._title = _BLANKS.sub(" ", unescape(piece[1])).strip()

    def _open(self, tag: str, attributes: str) -> None:
        if tag == "a":
            href = _attribute(attributes, "href")
            shown = href.startswith(("http://", "https://", "/"))
            self._parts.append("[" if shown else "")
            self._links.append(f"]({href})" if shown else "")
        elif tag in _BLOCKS:
            self._preformatted += tag == "pre"
            self._parts.append("\n" + _BEFORE.get(tag, ""))
        elif tag in ("td", "th"):
            self._parts.append(" | ")
        elif tag == "img" and (alt := _attribute(attributes, "alt")):
            self._parts.append(f"[image: {alt}]")

    def _close(self, tag: str, attributes: str) -> None:
        if tag == "a" and self._links:
            self._parts.append(self._links.pop())
        elif tag in _BLOCKS:
            self._preformatted -= tag == "pre" and self._preformatted > 0
            self._parts.append("\n\n" if tag in _SPACED else "\n")


def _attribute(attributes: str, name: str) -> str:
    for found in _ATTRIBUTE.finditer(attributes):
        if found[1].lower() == name:
            return unescape(found[2] or found[3] or found[4] or "")
    return ""
