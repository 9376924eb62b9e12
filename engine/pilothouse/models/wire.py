"""A format in which models are asked over HTTP."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import httpx

from pilothouse.models.builder import MessageBuilder, Origin
from pilothouse.models.provider import ModelEvent, ModelRequest

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """Who is asked, and where: `base` is the address that an Agent names."""

    origin: Origin
    base: httpx.URL


class Reader(Protocol):
    """Reads one answer from the data of its events."""

    @property
    def complete(self) -> bool:
        """The server has said how the answer ends; a connection that is lost now loses nothing of it."""
        ...

    @property
    def ended(self) -> bool:
        """Nothing more can come."""
        ...

    def read(self, data: str) -> Sequence[ModelEvent]:
        """What one event adds. Raises `CallError` if it is malformed, or says that the server failed."""
        ...

    def finish(self) -> Sequence[ModelEvent]:
        """The events that close the answer, once no more data comes. Raises `CallError` if it is not whole."""
        ...


@dataclass(frozen=True, slots=True)
class Wire:
    """`api` is the format's name in messages, `path` where to post below the base address; `headers` carry the key.

    A format is one of these and nothing else: connections, retries, limits and failures are the same for all.
    """

    api: str
    path: str
    headers: Callable[[str | None], Mapping[str, str]]
    encode: Callable[[ModelRequest, Target], Json]
    reader: Callable[[MessageBuilder, ModelRequest], Reader]

    def endpoint(self, base: httpx.URL) -> httpx.URL:
        """Where to post. A query in the base address is kept, as gateways that want an API version need it; a
        version that is part of the path may stand at its end as well."""
        root = base.path.rstrip("/")
        if self.path.startswith("/v1/"):
            root = root.removesuffix("/v1")
        return base.copy_with(path=root + self.path)


def bearer(key: str | None) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}
