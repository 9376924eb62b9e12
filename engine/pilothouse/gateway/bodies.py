"""The bodies of requests: never more bytes than a route takes, never more at a time than memory holds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from starlette.requests import Request

from pilothouse.gateway.refusals import Busy, TooLarge, TooSlow
from pilothouse.store.remote.wire import LARGE

FREE = 1024 * 1024
"""Bytes up to which a body needs no room."""

ROOM = LARGE
"""Bytes of all larger bodies that are held at a time: on its way into a row, a body takes six times its size."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds that a request waits for room, and within which its body must arrive. Together with the store's own
    limits they are less than a client waits, so what it gave up on does not happen later."""

    room: float = 15.0
    arrival: float = 30.0


class Bodies:
    """Reads the bodies of one gateway's requests."""

    def __init__(self, patience: Patience | None = None) -> None:
        self._patience = patience or Patience()
        self._room = ROOM
        self._more_room = asyncio.Condition()

    @asynccontextmanager
    async def body_of(self, request: Request, limit: int) -> AsyncIterator[bytes]:
        """The body, which may be used until the context ends. Raises TooLarge beyond `limit` bytes, Busy, TooSlow."""
        size = _declared(request, limit)
        if size > limit:
            raise _too_large(limit)
        async with AsyncExitStack() as held:
            if size > FREE:
                await held.enter_async_context(self._held(size))
            yield await self._read(request, limit)

    @asynccontextmanager
    async def _held(self, size: int) -> AsyncIterator[None]:
        await self._take(size)
        try:
            yield
        finally:
            async with self._more_room:
                self._room += size
                self._more_room.notify_all()

    async def _take(self, size: int) -> None:
        try:
            async with asyncio.timeout(self._patience.room), self._more_room:
                await self._more_room.wait_for(lambda: self._room >= size)
                self._room -= size
        except TimeoutError:
            raise Busy from None

    async def _read(self, request: Request, limit: int) -> bytes:
        body = bytearray()
        try:
            async with asyncio.timeout(self._patience.arrival):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > limit:
                        raise _too_large(limit)
        except TimeoutError:
            raise TooSlow(f"the request's body did not arrive within {self._patience.arrival:g} s") from None
        return bytes(body)


def _declared(request: Request, limit: int) -> int:
    """The size that the request says it has; as much as may be where it does not say."""
    length = request.headers.get("Content-Length", "")
    return int(length) if length.isdecimal() else limit


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"the request's body has more than the {limit:,} bytes that this route takes")
