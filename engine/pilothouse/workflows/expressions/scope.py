"""The values that an expression is given: only those that it reads, and only those that CEL can hold."""

import re
from collections.abc import Iterable, Iterator, Mapping

from pilothouse.records.values import JSON, ValueRefused, encode
from pilothouse.workflows.expressions.errors import ExpressionError, ExpressionLimit
from pilothouse.workflows.expressions.references import Path

SCOPE_LIMIT = 256 * 1024
"""Bytes, as JSON, of the values that one expression reads."""

_ODD = re.compile("[\\0\ud800-\udfff]")


def prune(scope: Mapping[str, JSON], paths: Iterable[Path]) -> dict[str, JSON]:
    """The part of `scope` that the paths lead to. A path that leads nowhere leads to nothing; lists stay whole,
    so that an index means the same."""
    kept: dict[str, JSON] = {}
    by_key: dict[str, list[Path]] = {}
    for path in paths:
        by_key.setdefault(str(path[0]), []).append(path[1:])
    for key, below in by_key.items():
        if key in scope:
            kept[key] = _below(scope[key], below)
    return kept


def _below(value: JSON, paths: list[Path]) -> JSON:
    if isinstance(value, dict) and all(path and isinstance(path[0], str) for path in paths):
        return prune(value, paths)
    return value


def encode_scope(scope: Mapping[str, JSON]) -> str:
    """The values as JSON.

    Raises ExpressionLimit beyond SCOPE_LIMIT, ExpressionError for a value that CEL cannot hold: an integer
    beyond 64 bits, NaN, a lone surrogate, a NUL character (the library would cut the text there).
    """
    if _more_than(scope, SCOPE_LIMIT):
        raise _too_large()
    try:
        text = encode(scope)
    except ValueRefused as refused:
        raise ExpressionError(f"the expression reads a value that it cannot hold: {refused}") from None
    if len(text) > SCOPE_LIMIT:
        raise _too_large()
    if "\\ud" in text or "\\u0000" in text:
        _refuse_characters(scope)
    return text


def _too_large() -> ExpressionLimit:
    return ExpressionLimit(
        f"the expression reads more than {SCOPE_LIMIT:,} bytes of values; read smaller parts of them"
    )


def _more_than(scope: Mapping[str, JSON], limit: int) -> bool:
    """Whether the values surely take more than `limit` bytes; a look that ends there, however large they are."""
    size = 0
    for value in _leaves(scope, limit):
        size += len(value) + 2 if isinstance(value, str) else 1
        if size > limit:
            return True
    return False


def _refuse_characters(scope: Mapping[str, JSON]) -> None:
    for text in _leaves(scope, SCOPE_LIMIT):
        if isinstance(text, str) and (odd := _ODD.search(text)):
            kind = "NUL character" if odd.group() == "\0" else f"lone surrogate (U+{ord(odd.group()):04X})"
            raise ExpressionError(f"the expression reads a text with a {kind}, which CEL text cannot hold")


def _leaves(scope: Mapping[str, JSON], limit: int) -> Iterator[JSON]:
    """Keys and values, and of a list no more than `limit` elements; an empty place for each list and map."""
    stack: list[JSON] = [dict(scope)]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            yield from value
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value[:limit])
        yield None if isinstance(value, dict | list) else value
