"""Arbitrary JSON inside a manifest, and its canonical digest."""

from __future__ import annotations

import hashlib
import math

import rfc8785
from pydantic import JsonValue
from pydantic_core import PydanticCustomError

MAX_DEPTH = 64
MAX_INTEGER = 2**63 - 1
_EXACT = 2**53 - 1  # beyond this RFC 8785 has no integers


def check_json(value: object) -> JsonValue:
    """The value itself, if it is JSON that every reader reads alike.

    Refused: nesting deeper than 64, keys that are not strings, NaN and infinities, integers outside 64 bits (the API
    server would turn them into floats), lone surrogates, and what YAML can say but JSON cannot (dates, sets, bytes).
    """
    _check(value, MAX_DEPTH)
    return value  # type: ignore[return-value]  # _check has just proved it


def check_object(value: object) -> JsonValue:
    """As `check_json`, for an object."""
    if not isinstance(value, dict):
        raise PydanticCustomError("dict_type", "must be a mapping")
    return check_json(value)


def _check(value: object, depth: int) -> None:
    if depth == 0:
        raise _refuse(f"is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        for key, item in value.items():
            _check_key(key)
            _check(item, depth - 1)
    elif isinstance(value, list):
        for item in value:
            _check(item, depth - 1)
    else:
        _check_scalar(value)


def _check_key(key: object) -> None:
    if not isinstance(key, str):
        raise _refuse(f"has the key {key!r}, which is not a string: quote it")
    _check_scalar(key)


def _check_scalar(value: object) -> None:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, int):
        if abs(value) > MAX_INTEGER:
            raise _refuse(f"holds {value}, which does not fit into 64 bits: quote it")
    elif not isinstance(value, float):
        raise _refuse(f"holds a {type(value).__name__}, which JSON does not have: quote it")
    elif not math.isfinite(value):
        raise _refuse(f"holds {value}, which JSON does not have")


def _check_text(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _refuse("holds a lone surrogate, which is not text") from None


def _refuse(problem: str) -> PydanticCustomError:
    return PydanticCustomError("rule", "{problem}", {"problem": problem})


def digest(value: JsonValue) -> str:
    """`sha256:` over the canonical JSON (RFC 8785) of a value.

    Key order does not matter, nor whether a whole number was written 1 or 1.0 (the API server changes that).
    """
    return "sha256:" + hashlib.sha256(rfc8785.dumps(_exact(value))).hexdigest()


def _exact(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _exact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_exact(item) for item in value]
    if isinstance(value, int) and abs(value) > _EXACT:
        return f"int:{value}"
    return value
