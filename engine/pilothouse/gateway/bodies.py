"""The bodies of requests: never more bytes than a route takes, never more at a time than memory holds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import Request

from pilothouse.gateway.refusals import TooLarge, TooSlow
from pilothouse.gateway.room import Room

ARRIVAL = 30.0
"""Seconds within which a body must arrive."""


class Bodies:
    """Reads the bodies of one gateway's requests."""

    def __init__(self, room: Room, arrival: float = ARRIVAL) -> None:
        self._room = room
        self._arrival = arrival

    @asynccontextmanager
    async def body_of(self, request: Request, limit: int) -> AsyncIterator[bytes]:
        """The body, which may be used until the context ends. Raises TooLarge beyond `limit` bytes, Busy, TooSlow."""
        size = _declared(request, limit)
        if size > limit:
            raise _too_large(limit)
        async with self._room.held(size):
            yield await self._read(request, limit)

    async def _read(self, request: Request, limit: int) -> bytes:
        body = bytearray()
        try:
            async with asyncio.timeout(self._arrival):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > limit:
                        raise _too_large(limit)
        except TimeoutError:
            raise TooSlow(f"the request's body did not arrive within {self._arrival:g} s") from None
        return bytes(body)


def _declared(request: Request, limit: int) -> int:
    """The size that the request says it has; as much as may be where it does not say."""
    length = request.headers.get("Content-Length", "")
    return int(length) if length.isdecimal() else limit


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"the request's body has more than the {limit:,} bytes that this route takes")
