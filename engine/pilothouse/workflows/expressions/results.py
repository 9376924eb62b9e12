"""A CEL result as JSON."""

import math
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pilothouse.workflows.expressions.errors import ExpressionError

if TYPE_CHECKING:
    from pilothouse.records.values import JSON


def to_json(value: object) -> "JSON":
    """The plain value of a CEL result as JSON.

    Timestamps become RFC 3339 text in UTC, to the microsecond; durations become seconds as CEL writes them
    (`"90s"`, `"0.5s"`). Raises ExpressionError for what JSON has not: bytes, types, NaN and infinities,
    optional values, keys that are not strings.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return _finite(value)
    if isinstance(value, list):
        return [to_json(item) for item in value]
    if isinstance(value, dict):
        return {_key(key): to_json(item) for key, item in value.items()}
    return _special(value)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ExpressionError(f"the result holds the number {value}, which JSON has not")
    return value


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise ExpressionError(f"the result is a map with the key {key}; keys must be strings")
    return key


def _special(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return _seconds(value)
    if isinstance(value, bytes | bytearray):
        raise ExpressionError("the result holds bytes; use string(...) or base64.encode(...)")
    raise ExpressionError(f"the result holds a {type(value).__name__.lower()}, which is no JSON value")


def _seconds(value: timedelta) -> str:
    microseconds = value // timedelta(microseconds=1)
    whole, part = divmod(abs(microseconds), 1_000_000)
    fraction = f".{part:06}".rstrip("0") if part else ""
    return f"{'-' if microseconds < 0 else ''}{whole}{fraction}s"
