"""One LISTEN connection for all who wait for changes of a run."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import chain, repeat

from psycopg import Error

from pilothouse.records.runs import RunRef
from pilothouse.store.errors import StoreError, StoreUnavailable
from pilothouse.store.postgres.meaning import translated
from pilothouse.store.postgres.pool import Connection, Pool
from pilothouse.store.wakeups import Wakeups, runs_of

_PAUSES = (0.1, 0.5, 1.0, 2.0)
"""Seconds before each attempt to listen again after an outage; the last one repeats."""


class Listener:
    """Listens from the first subscriber on. After an outage it wakes everyone once, for what was missed."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._wakeups = Wakeups()
        self._starting = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._away = False

    @asynccontextmanager
    async def subscribe(self, key: str) -> AsyncIterator[AsyncIterator[None]]:
        """Raises StoreUnavailable where the server cannot be reached now."""
        with self._wakeups.subscribe(key) as changes:
            await self._start()
            yield changes

    @asynccontextmanager
    async def subscribe_all(self) -> AsyncIterator[AsyncIterator[RunRef | None]]:
        """Raises StoreUnavailable as `subscribe` does."""
        with self._wakeups.subscribe_all() as changes:
            await self._start()
            yield runs_of(changes)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _start(self) -> None:
        async with self._starting:
            if self._task is None:
                connection = await self._listen()
                self._task = asyncio.create_task(self._serve(connection), name="pilothouse-listen")
        if self._away:
            raise StoreUnavailable("PostgreSQL cannot be reached now: the listening connection is lost")

    async def _serve(self, connection: Connection) -> None:
        while True:
            try:
                with suppress(Error):
                    async for notification in connection.notifies():
                        self._wakeups.wake(notification.payload)
            finally:
                await connection.close()
            self._away = True
            connection = await self._listen_again()
            self._away = False
            self._wakeups.wake_all()

    async def _listen_again(self) -> Connection:
        for pause in chain(_PAUSES, repeat(_PAUSES[-1])):
            await asyncio.sleep(pause)
            with suppress(StoreError):
                return await self._listen()
        raise AssertionError("the pauses never end")

    async def _listen(self) -> Connection:
        async with AsyncExitStack() as stack:
            connection = await self._pool.connect()
            stack.push_async_callback(connection.close)
            with translated():
                await connection.execute("LISTEN pilothouse")
            stack.pop_all()  # it listens: whoever serves it closes it
        return connection
