"""The bodies of requests: never more bytes than a route takes, never more large ones than memory holds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from starlette.requests import Request

from pilothouse.gateway.refusals import Busy, TooLarge, TooSlow
from pilothouse.store.remote.wire import SMALL

PATIENCE = 60.0
"""Seconds within which a body must have arrived, and for which a large one waits for its turn."""

LARGE_AT_ONCE = 2
"""Bodies of more than SMALL bytes that are held at the same time: one may take several times its size."""


class Bodies:
    """Reads the bodies of one gateway's requests."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)
        self._patience = patience

    @asynccontextmanager
    async def body_of(self, request: Request, limit: int) -> AsyncIterator[bytes]:
        """The body, which may be used until the context ends. Raises TooLarge beyond `limit` bytes, Busy, TooSlow."""
        declared = _declared(request, limit)
        if declared > limit:
            raise _too_large(limit)
        async with AsyncExitStack() as held:
            if declared > SMALL:
                await held.enter_async_context(self._turn())
            yield await self._read(request, limit)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._patience):
                await self._large.acquire()
        except TimeoutError:
            raise Busy from None
        try:
            yield
        finally:
            self._large.release()

    async def _read(self, request: Request, limit: int) -> bytes:
        body = bytearray()
        try:
            async with asyncio.timeout(self._patience):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > limit:
                        raise _too_large(limit)
        except TimeoutError:
            raise TooSlow(f"the request's body did not arrive within {self._patience:g} s") from None
        return bytes(body)


def _declared(request: Request, limit: int) -> int:
    """The size that the request says it has; as much as may be where it does not say."""
    length = request.headers.get("Content-Length", "")
    return int(length) if length.isdecimal() else limit


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"the request's body has more than the {limit:,} bytes that this route takes")
