"""JSON documents, one after the other, within the bounds of every document."""

import json
import re
from typing import Any

from pilothouse.cli.documents.document import MAX_DEPTH, MAX_NODES, Document, Refused, check_count
from pilothouse.cli.documents.scalars import ScalarRefused, integer, number

_SPACE = re.compile(r"\s*")


def json_documents(text: str) -> list[Document]:
    """The documents of a JSON text. Raises json.JSONDecodeError where it is none, Refused as the reader says."""
    decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_int=integer, parse_float=number, parse_constant=number)
    found: list[Document] = []
    at = _skip(text, 0)
    while at < len(text):
        count = len(found) + 1
        check_count(count)
        try:
            value, at = decoder.raw_decode(text, at)
        except RecursionError:
            raise _too_deep(count) from None
        except ScalarRefused as error:
            raise Refused(str(error), document=count) from None
        _check_bounds(value, count)
        found.append(Document(count, value))
        at = _skip(text, at)
    return found


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise Refused(f"the key {json.dumps(key[:80])} stands twice in one mapping")
        found[key] = value
    return found


def _check_bounds(value: Any, document: int) -> None:
    level, count = [value], 1
    for _ in range(MAX_DEPTH):
        level = [child for item in level for child in _children(item)]
        count += len(level)
        if count > MAX_NODES:
            raise Refused(f"holds more than {MAX_NODES:,} values", document=document)
        if not level:
            return
    raise _too_deep(document)


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _too_deep(document: int) -> Refused:
    return Refused(f"is nested deeper than {MAX_DEPTH} levels", document=document)
