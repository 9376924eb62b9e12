"""What a harness is doing. One thing at a time."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

from pilothouse.agents.errors import AgentError

Phase: TypeAlias = Literal["idle", "turn", "compaction", "branch_summary"]


class Phases:
    def __init__(self) -> None:
        self.now: Phase = "idle"
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def idle(self) -> bool:
        return self.now == "idle"

    @contextmanager
    def enter(self, phase: Phase) -> Iterator[None]:
        """Raises AgentError `busy`."""
        if not self.idle:
            raise AgentError("busy", f"the harness is busy ({self.now}); wait until it is idle, or abort")
        self.now = phase
        self._idle.clear()
        try:
            yield
        finally:
            self.now = "idle"
            self._idle.set()

    async def wait_for_idle(self) -> None:
        await self._idle.wait()
