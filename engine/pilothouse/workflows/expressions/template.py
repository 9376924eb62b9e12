"""Text with `${{ }}` parts, and JSON trees of such text.

* A text that is one `${{ }}` and nothing else, not even a space, is the expression's value and keeps its type.
* Else the text is put together: strings as they are, every other value as JSON without white space and with
  sorted keys, so `true`, `3`, `null`, `{"a":1}`.
* `}}` inside a CEL string or a nested map does not end a part.
* There is no escape: as in GitHub Actions, `$${{ x }}` is a dollar sign and a value, and a literal `${{` is
  written `${{ '${{' }}`.
* What an expression returns is never looked at for expressions again.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from pilothouse.records.values import DEPTH_LIMIT, JSON
from pilothouse.workflows.expressions.errors import ExpressionError
from pilothouse.workflows.expressions.references import Path

_OPEN = "${{"

_TOKEN = re.compile(
    r"""
    (?P<close>\}\})
    | (?P<brace>[{}])
    | (?:[bB]?[rR]|[rR][bB])(?: \"{3}[\s\S]*?\"{3} | '{3}[\s\S]*?'{3} | "[^"\r\n]*" | '[^'\r\n]*' )
    | [bB]?(?:
          \"{3}(?:\\[\s\S]|[^\\])*?\"{3} | '{3}(?:\\[\s\S]|[^\\])*?'{3}
        | "(?:\\.|[^"\\\r\n])*" | '(?:\\.|[^'\\\r\n])*'
      )
    | (?P<quote>["'])
    | //(?:(?!\}\})[^\n])*
    | \w+
    | [\s\S]
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Expression:
    """One `${{ }}` part: its CEL source, and the offset of the source in the text, in characters from 0."""

    source: str
    offset: int


@dataclass(frozen=True, slots=True)
class Template:
    """A text, taken apart: literal text and expressions in order, no two literals adjacent, none empty."""

    parts: tuple[str | Expression, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Take a text apart. Raises ExpressionError with the column of a part that does not end or is empty."""
        parts: list[str | Expression] = []
        at = 0
        while (start := text.find(_OPEN, at)) >= 0:
            parts += [text[at:start]] if start > at else []
            end = _end(text, start)
            parts.append(_expression(text, start, end))
            at = end + 2
        return cls((*parts, text[at:]) if at < len(text) else tuple(parts))

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(part for part in self.parts if isinstance(part, Expression))

    @property
    def lone(self) -> Expression | None:
        """The expression, if the text is nothing else."""
        only = self.parts[0] if len(self.parts) == 1 else None
        return only if isinstance(only, Expression) else None

    def render(self, results: Mapping[str, JSON]) -> JSON:
        """The value of the text, given the result of each expression by its source."""
        if self.lone is not None:
            return results[self.lone.source]
        return "".join(part if isinstance(part, str) else as_text(results[part.source]) for part in self.parts)


def walk(value: JSON) -> Iterator[tuple[Path, Template]]:
    """Every text with an expression in a JSON tree, with its path, in the tree's order.

    Keys of maps are never templates. Raises ExpressionError, whose message starts with the path, as
    `Template.parse` does and where the tree is nested deeper than values may be.
    """
    stack: list[tuple[Path, JSON]] = [((), value)]
    while stack:
        path, item = stack.pop()
        if isinstance(item, str):
            if _OPEN in item:
                yield path, _parse_at(path, item)
        else:
            stack.extend(reversed(_children(path, item)))


def render(value: JSON, results: Mapping[str, JSON]) -> JSON:
    """A copy of a JSON tree with every template rendered; `results` holds a value for each source."""
    if isinstance(value, str):
        return Template.parse(value).render(results) if _OPEN in value else value
    if isinstance(value, list):
        return [render(item, results) for item in value]
    if isinstance(value, dict):
        return {key: render(item, results) for key, item in value.items()}
    return value


def format_path(path: Path) -> str:
    """A path as users write it: `value.items[0].name`."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


def _end(text: str, start: int) -> int:
    """The offset of the `}}` that ends the part which starts at `start`."""
    depth, at = 0, start + len(_OPEN)
    while (token := _TOKEN.match(text, at)) is not None:
        if token["quote"]:
            raise ExpressionError("the string that starts here does not end", _column(text, at))
        if token["close"] and depth == 0:
            return at
        brace = token["close"] or token["brace"]
        depth += {"{": 1, "}": -1}.get(token.group()[0], 0) if brace else 0
        depth = max(depth, 0)
        at = at + 1 if brace else token.end()
    raise ExpressionError("`${{` without the `}}` that ends it", _column(text, start))


def _expression(text: str, start: int, end: int) -> Expression:
    inner = text[start + len(_OPEN) : end]
    source = inner.strip()
    if not source:
        raise ExpressionError("`${{ }}` holds no expression", _column(text, start))
    return Expression(source, start + len(_OPEN) + len(inner) - len(inner.lstrip()))


def _column(text: str, offset: int) -> int:
    return offset - text.rfind("\n", 0, offset)


def as_text(value: JSON) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _parse_at(path: Path, text: str) -> Template:
    try:
        return Template.parse(text)
    except ExpressionError as error:
        place = format_path(path)
        raise ExpressionError(f"{place}: {error.message}" if place else error.message, error.column) from None


def _children(path: Path, item: JSON) -> list[tuple[Path, JSON]]:
    if len(path) > DEPTH_LIMIT:
        raise ExpressionError(f"{format_path(path)[:80]}…: nested more than {DEPTH_LIMIT} levels deep")
    if isinstance(item, dict):
        return [((*path, key), child) for key, child in item.items()]
    return [((*path, index), child) for index, child in enumerate(item)] if isinstance(item, list) else []
