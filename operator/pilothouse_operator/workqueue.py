"""The work queue: keys of objects to look at. A key is worked on by one worker at a time, however often it is added.

Keys stand in lanes, which take turns: however many keys are due in one, those of another do not wait for them.
"""

import asyncio
import heapq
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

FIRST_PAUSE = 0.05
"""Seconds before a key whose work failed is tried again; each further failure doubles them."""

LONGEST_PAUSE = 60.0

_DOUBLINGS = 11
"""After these the pause is the longest."""


class WorkQueue(Generic[K]):
    """`add` asks for work on a key, now or later. One that is added while a worker has it is worked on again after."""

    def __init__(self, lane_of: Callable[[K], Hashable]) -> None:
        self._lane_of = lane_of
        self._lanes: dict[Hashable, dict[K, None]] = {}
        self._active: set[K] = set()
        self._again: set[K] = set()
        self._later: list[tuple[float, int, K]] = []
        self._sooner: dict[K, float] = {}
        self._failures: defaultdict[K, int] = defaultdict(int)
        self._changed = asyncio.Event()
        self._count = 0

    def __len__(self) -> int:
        return sum(map(len, self._lanes.values()))

    def add(self, key: K, after: float = 0.0) -> None:
        """`after` is in seconds. Of several times that are asked for, the first counts."""
        if after > 0:
            self._schedule(key, after)
        elif key in self._active:
            self._again.add(key)
        else:
            self._put(key)
        self._changed.set()

    def _put(self, key: K) -> None:
        self._lanes.setdefault(self._lane_of(key), {})[key] = None

    def _pop(self) -> K | None:
        """The key that has waited longest in the lane whose turn it is, which then is the last one."""
        if not self._lanes:
            return None
        lane = next(iter(self._lanes))
        keys = self._lanes.pop(lane)
        key = next(iter(keys))
        del keys[key]
        if keys:
            self._lanes[lane] = keys
        return key

    def _schedule(self, key: K, after: float) -> None:
        at = asyncio.get_running_loop().time() + after
        if at < self._sooner.get(key, float("inf")):
            self._sooner[key] = at
            self._count += 1
            heapq.heappush(self._later, (at, self._count, key))

    def failed(self, key: K) -> float:
        """Asks for the key again after a pause that grows with each failure in a row; returns the pause in seconds."""
        self._failures[key] += 1
        longest = min(FIRST_PAUSE * 2 ** min(self._failures[key] - 1, _DOUBLINGS), LONGEST_PAUSE)
        pause: float = longest * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, keeps no secret
        self.add(key, pause)
        return pause

    def succeeded(self, key: K) -> None:
        self._failures.pop(key, None)

    async def work(self, do: Callable[[K], Awaitable[None]]) -> None:
        """Takes keys and works on them until it is cancelled. `do` handles its own failures."""
        while True:
            key = await self._take()
            try:
                await do(key)
            finally:
                self._active.discard(key)
                if key in self._again:
                    self._again.discard(key)
                    self._put(key)
                    self._changed.set()

    async def _take(self) -> K:
        while True:
            self._promote()
            if (key := self._pop()) is not None:
                self._active.add(key)
                return key
            self._changed.clear()
            await self._wait()

    def _promote(self) -> None:
        """Makes due what was asked for later and is due by now."""
        now = asyncio.get_running_loop().time()
        while self._later and self._later[0][0] <= now:
            at, _, key = heapq.heappop(self._later)
            if self._sooner.get(key) == at:
                del self._sooner[key]
                self.add(key)

    async def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        limit = max(self._later[0][0] - loop.time(), 0.0) if self._later else None
        try:
            async with asyncio.timeout(limit):
                await self._changed.wait()
        except TimeoutError:
            return
