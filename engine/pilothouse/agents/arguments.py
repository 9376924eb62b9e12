"""The arguments of a tool call, as text that a model wrote."""

import json
from typing import Never

from pydantic import JsonValue

MAX_DEPTH = 100
"""Nested arrays and objects: far above any tool's schema, far below what makes a parser fail."""


class ArgumentsError(ValueError):
    """The text is not the JSON object that a tool call needs; says what is wrong, never quotes the text."""


def parse_arguments(text: str) -> dict[str, JsonValue]:
    """The JSON object in `text`; blank text is an empty one, as several servers send it for no arguments.

    Refuses what has no single meaning in canonical JSON (RFC 8785): duplicate keys, NaN and infinities, lone
    surrogates. Raises `ArgumentsError`.
    """
    if not text.strip():
        return {}
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ArgumentsError("arguments hold half of a surrogate pair, which is no character") from None
    except RecursionError:
        raise ArgumentsError(f"arguments are nested deeper than {MAX_DEPTH} levels") from None
    except ArgumentsError:
        raise
    except json.JSONDecodeError as error:
        raise ArgumentsError(f"arguments are not valid JSON: {error.msg} at character {error.pos}") from None
    except ValueError:
        raise ArgumentsError("arguments hold a number that is too long") from None
    if not isinstance(value, dict):
        raise ArgumentsError(f"arguments must be a JSON object, not {_kind(value)}")
    if _deeper_than(MAX_DEPTH, value):
        raise ArgumentsError(f"arguments are nested deeper than {MAX_DEPTH} levels")
    return value


def _deeper_than(limit: int, value: JsonValue) -> bool:
    level: list[JsonValue] = [value]
    for _ in range(limit + 1):
        level = [child for item in level for child in _children(item)]
        if not level:
            return False
    return True


def _children(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ArgumentsError("arguments name the same key twice in one object")
    return result


def _no_constant(name: str) -> Never:
    raise ArgumentsError(f"arguments hold {name}, which JSON does not have")


def _kind(value: object) -> str:
    if value is None:
        return "null"
    kinds = {bool: "a boolean", str: "a string", list: "an array"}
    return kinds.get(type(value), "a number")
