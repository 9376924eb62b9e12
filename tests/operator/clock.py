"""A clock that a test can put forward: that of the running event loop, and the operator's own."""

import asyncio
import time
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from pilothouse_operator import executor


@dataclass
class Clock:
    """Time goes on as it does, and in jumps of the test's: timers of the loop that are due by then fire."""

    ahead: float = 0.0

    def epoch(self) -> float:
        """Seconds since the epoch."""
        return time.time() + self.ahead

    def advance(self, seconds: float) -> None:
        self.ahead += seconds


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock, loop = Clock(), asyncio.get_running_loop()
    real = loop.time
    monkeypatch.setattr(loop, "time", lambda: real() + clock.ahead)
    monkeypatch.setattr(executor, "time", SimpleNamespace(time=clock.epoch))
    return clock
