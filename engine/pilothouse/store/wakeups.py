"""Wake-ups by key: many waiters, each woken once for any burst of calls since it last looked."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from uuid import UUID

from pilothouse.records.runs import RunRef


class Wakeups:
    """The waiters of one store: for one key, or for all of them."""

    def __init__(self) -> None:
        self._waiters: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self._all: set[_Burst] = set()

    @contextmanager
    def subscribe(self, key: str) -> Iterator[AsyncIterator[None]]:
        """Wakes count from here on, not from the first `anext`."""
        woken = asyncio.Event()
        self._waiters[key].add(woken)
        try:
            yield _each(woken)
        finally:
            self._waiters[key].discard(woken)
            if not self._waiters[key]:
                del self._waiters[key]

    @contextmanager
    def subscribe_all(self) -> Iterator[AsyncIterator[str | None]]:
        """The keys that are woken, each once for any burst; None where all were woken."""
        burst = _Burst()
        self._all.add(burst)
        try:
            yield burst.each()
        finally:
            self._all.discard(burst)

    def wake(self, key: str) -> None:
        for woken in self._waiters.get(key, ()):
            woken.set()
        for burst in self._all:
            burst.add(key)

    def wake_all(self) -> None:
        for waiters in self._waiters.values():
            for woken in waiters:
                woken.set()
        for burst in self._all:
            burst.add(None)


class _Burst:
    """Keys that one waiter has yet to see, in the order in which they first came."""

    def __init__(self) -> None:
        self._keys: dict[str | None, None] = {}
        self._woken = asyncio.Event()

    def add(self, key: str | None) -> None:
        self._keys[key] = None
        self._woken.set()

    async def each(self) -> AsyncIterator[str | None]:
        while True:
            await self._woken.wait()
            self._woken.clear()
            keys, self._keys = self._keys, {}
            for key in keys:
                yield key


async def _each(woken: asyncio.Event) -> AsyncIterator[None]:
    while True:
        await woken.wait()
        woken.clear()
        yield


async def runs_of(keys: AsyncIterator[str | None]) -> AsyncIterator[RunRef | None]:
    """The runs whose keys, `TENANT/RUN`, these are."""
    async for key in keys:
        tenant, _, run = (key or "").partition("/")
        yield RunRef(UUID(tenant), UUID(run)) if key else None
