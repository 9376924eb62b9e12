"""The form of what the store API carries: JSON in ASCII, in which stored values stand as they are, each encoded once.

Both sides read what the other one says with `Fields`, and believe nothing of it.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

T = TypeVar("T")

SMALL = 8 * 1024 * 1024
LARGE = 72 * 1024 * 1024
"""Bytes of a request: SMALL where it carries no value, LARGE where it carries one of up to VALUE_LIMIT."""

PATH = "/store/v1"
LIMITS = {
    "open_session": SMALL,
    "append": LARGE,
    "queued": SMALL,
    "clear": SMALL,
    "tool_calls": SMALL,
    "intend": LARGE,
    "record": LARGE,
    "put_blob": LARGE,
    "get_blob": SMALL,
    "finish": LARGE,
}
"""The route of each method of the port, below PATH, and the size that its requests may have."""


class Misread(ValueError):  # noqa: N818
    """What the other side said is not what is said there; the message names the member."""


class Text(str):
    """JSON text: `dump` takes it as it is."""


_ENCODER = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"), default=str)


def dump(members: Mapping[str, object]) -> Text:
    """The object as text. A member is Text, a list of Text, or a plain value."""
    return Text("{" + ",".join(f'"{name}":{_dumped(value)}' for name, value in members.items()) + "}")


def _dumped(value: object) -> str:
    if isinstance(value, Text):
        return value
    if isinstance(value, list):
        return "[" + ",".join(map(_dumped, value)) + "]"
    return _ENCODER.encode(value)


def parse(data: bytes) -> "Fields":
    """The object that the bytes hold. Raises Misread."""
    try:
        return Fields(json.loads(data.decode()))
    except (ValueError, RecursionError):
        raise Misread("the body is not a JSON object in UTF-8") from None


class Fields:
    """The members of a JSON object. Taking one raises Misread where it is absent or of another type."""

    def __init__(self, body: object) -> None:
        if type(body) is not dict:
            raise Misread("the body is not a JSON object")
        self._body: dict[str, Any] = body

    def __iter__(self) -> Iterator[str]:
        return iter(self._body)

    def any(self, name: str) -> Any:
        if name not in self._body:
            raise Misread(f"`{name}` is missing")
        return self._body[name]

    def text(self, name: str) -> str:
        return self._of(name, str)

    def number(self, name: str) -> int:
        return self._of(name, int)

    def flag(self, name: str) -> bool:
        return self._of(name, bool)

    def object(self, name: str) -> dict[str, Any]:
        return self._of(name, dict)

    def uuid(self, name: str) -> UUID:
        return self.read(name, UUID)

    def time(self, name: str) -> datetime:
        return self.read(name, datetime.fromisoformat)

    def optional(self, name: str, take: Callable[[str], T]) -> T | None:
        """What `take` makes of the member, None where it is null or absent."""
        return None if self._body.get(name) is None else take(name)

    def fields(self, name: str) -> "Fields":
        return Fields(self.object(name))

    def each(self, name: str) -> Iterator["Fields"]:
        """The objects of a list."""
        return map(Fields, self._of(name, list))

    def list_of(self, name: str, meaning: Callable[[str], T]) -> list[T]:
        """What the texts of a list mean."""
        return [Fields({name: text}).read(name, meaning) for text in self._of(name, list)]

    def read(self, name: str, meaning: Callable[[str], T]) -> T:
        """What the member's text means."""
        text = self.text(name)
        try:
            return meaning(text)
        except ValueError:
            raise Misread(f"`{name}` cannot be read") from None

    def _of(self, name: str, kind: type[T]) -> T:
        value = self._body.get(name)
        if type(value) is not kind:
            raise Misread(f"`{name}` must be a {kind.__name__}")
        return value
