"""The memory that the large bodies and answers of one gateway share: what does not fit has to wait."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pilothouse.gateway.refusals import Busy
from pilothouse.store.remote.wire import LARGE

FREE = 1024 * 1024
"""Bytes up to which nothing needs room."""

ROOM = LARGE
"""Bytes of all that is larger which are held at a time: on its way into a row, a body takes six times its size."""

PATIENCE = 15.0
"""Seconds that a request waits for room. Together with the store's own limits they are less than a client waits, so
what it gave up on does not happen later."""


class Room:
    """Of one gateway. Nobody who holds some of it may wait for more."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._left = ROOM
        self._more = asyncio.Condition()

    @asynccontextmanager
    async def held(self, size: int) -> AsyncIterator[None]:
        """Room for so many bytes until the context ends; for all that there is where they are more. Raises Busy."""
        if size <= FREE:
            yield
            return
        size = min(size, ROOM)
        await self._take(size)
        try:
            yield
        finally:
            async with self._more:
                self._left += size
                self._more.notify_all()

    async def _take(self, size: int) -> None:
        try:
            async with asyncio.timeout(self._patience), self._more:
                await self._more.wait_for(lambda: self._left >= size)
                self._left -= size
        except TimeoutError:
            raise Busy from None
