"""Agent steps as tasks of the runner: however a task ends, the run learns of it."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn
from uuid import UUID

from pilothouse.cli.agents import LocalAgents
from pilothouse.records.runs import Attempt, AttemptRef, RunRef, StepId
from pilothouse.records.states import AttemptState
from pilothouse.store.memory import MemoryRunStore
from pilothouse.workflows.work import AgentWork, ValueSource


class CancelledWithin(MemoryRunStore):
    """Ends the task that uses it as a library does whose own cancellation gets out."""

    def attempt_store(self, ref: AttemptRef) -> NoReturn:
        raise asyncio.CancelledError


class NoSources:
    def value(self, source: ValueSource) -> str:
        raise AssertionError(source)


async def test_a_task_that_nobody_stopped_and_that_is_cancelled_is_lost_rather_than_running(tmp_path: Path) -> None:
    woken = asyncio.Event()
    agents = LocalAgents(tmp_path, CancelledWithin(), NoSources(), woken.set, print)
    ref = AttemptRef(RunRef(UUID(int=1), UUID(int=2)), UUID(int=3), 1)
    attempt = Attempt(ref, StepId("a"), 1, 0, "0" * 32, AttemptState.OPEN, datetime.now(UTC))
    await agents.start(attempt, AgentWork("worker", {}, "Go.", {}))
    await woken.wait()
    ending = await agents.ending(attempt)
    assert ending is not None
    assert ending.state is AttemptState.LOST
