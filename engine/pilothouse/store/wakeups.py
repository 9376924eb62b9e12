"""Wake-ups by key: many waiters, each woken once for any burst of calls since it last looked."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager


class Wakeups:
    """The waiters of one store."""

    def __init__(self) -> None:
        self._waiters: defaultdict[str, set[asyncio.Event]] = defaultdict(set)

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

    def wake(self, key: str) -> None:
        for woken in self._waiters.get(key, ()):
            woken.set()

    def wake_all(self) -> None:
        for key in list(self._waiters):
            self.wake(key)


async def _each(woken: asyncio.Event) -> AsyncIterator[None]:
    while True:
        await woken.wait()
        woken.clear()
        yield
