"""Values that are stored: JSON, kept faithfully or refused by name, inline or as a blob."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

JSON: TypeAlias = bool | int | float | str | list["JSON"] | dict[str, "JSON"] | None

INLINE_LIMIT = 64 * 1024
"""Bytes of encoded JSON up to which a value is kept in its row; larger ones become blobs."""

VALUE_LIMIT = 64 * 1024 * 1024
"""Bytes of encoded JSON up to which a value is stored at all."""

DEPTH_LIMIT = 200
"""Levels of nesting of a value that is stored."""

INTEGER_LIMIT = 2**63
"""Integers beyond 64 bits cannot be read by an expression, so they are refused when they are stored."""


class ValueRefused(ValueError):  # noqa: N818 - the outcome, as a store says it
    """A value that cannot be stored faithfully. The message names the place and the reason."""


def encode(value: object, where: str = "", around: int = 0) -> str:
    """The one text form in which values are stored: compact JSON in ASCII, so that NUL characters and
    lone surrogates survive. `where` is the value's name; `around` counts outer levels that are a row's own and none of
    the value's. Raises ValueRefused for anything that JSON cannot hold faithfully."""
    try:
        text = _ENCODER.encode(value)
    except (ValueError, TypeError, RecursionError):
        _check(value, where, DEPTH_LIMIT + around)  # names the place, which the encoder does not
        raise
    if not _fits(value, DEPTH_LIMIT + around):
        _check(value, where, DEPTH_LIMIT + around)
    if len(text) > VALUE_LIMIT:
        raise ValueRefused(f"{_place(where)} takes {len(text):,} bytes as JSON; at most {VALUE_LIMIT:,} are stored")
    return text


_ENCODER = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def decode(text: str | bytes) -> Any:
    """The value of a stored text."""
    return json.loads(text)


def digest(data: bytes) -> str:
    """`sha256:` and the hex digest of the bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Inline:
    """A value kept in its row."""

    value: JSON

    def to_json(self) -> dict[str, Any]:
        return {"value": self.value}


@dataclass(frozen=True, slots=True)
class BlobRef:
    """A value kept in `blobs`: `size` bytes of encoded JSON under their digest."""

    digest: str
    size: int

    def to_json(self) -> dict[str, Any]:
        return {"blob": self.digest, "size": self.size}


Stored: TypeAlias = Inline | BlobRef
Outputs: TypeAlias = Mapping[str, Stored]


def outputs_to_json(outputs: Outputs) -> dict[str, Any]:
    return {name: stored.to_json() for name, stored in outputs.items()}


def outputs_from_json(body: Mapping[str, Any]) -> dict[str, Stored]:
    return {name: _stored(item) for name, item in body.items()}


def _stored(item: Mapping[str, Any]) -> Stored:
    if "blob" in item:
        return BlobRef(item["blob"], item["size"])
    return Inline(item["value"])


_SCALARS = frozenset({str, float, bool, type(None)})
_CONTAINERS = frozenset({dict, list, tuple})


def _fits(root: object, deepest: int) -> bool:
    """Whether a value that JSON can express is also faithful to it: keys are strings, integers and the depth
    within their limits. Fast, and keeps no places. May say no to what is unusual, such as members of an enum:
    then `_check` decides."""
    level: list[Any] = [(root,)]
    for _ in range(deepest + 1):
        below: list[Any] = []
        for container in level:
            if type(container) is dict and not all(type(key) is str for key in container):
                return False
            if not _scan(container, below):
                return False
        if not below:
            return True
        level = below
    return False


def _scan(container: Any, below: list[Any]) -> bool:
    """Whether the container's scalars fit; adds the containers in it to `below`."""
    for value in container.values() if type(container) is dict else container:
        kind = type(value)
        if kind in _SCALARS:
            continue
        if kind in _CONTAINERS:
            below.append(value)
        elif kind is not int or not -INTEGER_LIMIT <= value < INTEGER_LIMIT:
            return False
    return True


def _check(root: object, where: str, deepest: int) -> None:
    """Raises ValueRefused with the place of what JSON cannot hold."""
    stack: list[tuple[object, int, str]] = [(root, 0, where[:40])]
    while stack:
        value, depth, where = stack.pop()
        if depth > deepest:
            raise ValueRefused(f"{_place(where)} is nested more than {DEPTH_LIMIT} levels deep")
        if isinstance(value, dict | list | tuple):
            stack.extend((child, depth + 1, where + step) for step, child in _children(value, where))
        else:
            _check_scalar(value, where)


def _children(value: object, where: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for key, child in value.items():
            if not isinstance(key, str):
                raise ValueRefused(f"{_place(where)} has the key {key!r}; keys must be strings")
            yield f".{key[:40]}", child
    elif isinstance(value, list | tuple):
        for index, child in enumerate(value):
            yield f"[{index}]", child


def _check_scalar(value: object, where: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueRefused(f"{_place(where)} is {value}; JSON has no such number")
    if isinstance(value, int) and not -INTEGER_LIMIT <= value < INTEGER_LIMIT:
        raise ValueRefused(f"{_place(where)} is an integer beyond 64 bits; send it as a string")
    if value is not None and not isinstance(value, bool | int | float | str):
        raise ValueRefused(f"{_place(where)} is a {type(value).__name__}; only JSON values are stored")


def _place(where: str) -> str:
    shown = where.lstrip(".")
    return f"`{shown[:200]}`" if shown else "the value"
