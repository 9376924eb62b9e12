"""The agent's process, which ends itself with SIGKILL at one write of its store.

    python -m tests.agents.kills.process

reads jobs from its input, a line each, and forks for each one: a child has all modules loaded, and opens its own
connections. For each job it writes a line, the status with which the child ended: 0, or -9.
"""

import asyncio
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast
from uuid import UUID, uuid5

from pydantic import TypeAdapter

from pilothouse.agents.bounds import Limits
from pilothouse.agents.messages import UserMessage, to_wire
from pilothouse.agents.task import AgentTask, run_agent
from pilothouse.records.runs import AttemptRef, StepId
from pilothouse.records.sessions import Entry
from pilothouse.records.states import AttemptState
from pilothouse.store.faults import KillAt, Point, faulty
from pilothouse.store.keeping import keep_own
from pilothouse.store.ports import PagedAttemptStore, RunStore, SessionStore
from pilothouse.store.postgres import open_store
from tests.agents.desk import STEP
from tests.agents.kills.ledger import Ledger
from tests.agents.kills.parts import CountedModel, Meanwhile, tools
from tests.agents.kills.plans import Plan

KILLED = -9


@dataclass(frozen=True)
class Kill:
    """Before or after the `number`th write of the process, counted from 1."""

    number: int
    moment: Literal["before", "after"]

    def __str__(self) -> str:
        return f"{self.moment} write {self.number}"


@dataclass(frozen=True)
class Job:
    """An attempt to be carried out, where it leaves its traces, and when its process dies."""

    dsn: str
    ref: AttemptRef
    session: UUID
    plan: Plan
    file: Path
    kill: Kill | None


JOB = TypeAdapter(Job)


async def carry_out(job: Job) -> None:
    """As the process of an agent step does: runs the task, or goes on with it, and commits the outcome."""
    ledger = Ledger(job.file)
    async with open_store(job.dsn) as opened:
        store = faulty(cast(RunStore, _Witnessed(opened, ledger)), _Strike(ledger, job.kill)).attempt_store(job.ref)
        heard = tools(ledger, _meanwhile(job, opened.session_store(), ledger))
        result = await run_agent(_task(job), store, CountedModel(job.plan.turns, ledger), heard)
        state = AttemptState.FAILED if result.failure else AttemptState.SUCCEEDED
        await store.finish(state, await keep_own(store, result.outputs), result.failure)


def _task(job: Job) -> AgentTask:
    schema = {"type": "integer"} if job.plan.asks_again else None
    limits = Limits(consecutive_errors=None)
    return AgentTask(job.session, "Go.", output_schema=schema, limits=limits, step=StepId(STEP.path))


def _meanwhile(job: Job, outside: SessionStore, ledger: Ledger) -> Meanwhile:
    """Somebody says what the plan has for that call; once, however often the call runs."""

    async def say(call: str) -> None:
        if call in job.plan.said:
            queue, text = job.plan.said[call]
            message, id = to_wire(UserMessage.of(text, 1)), uuid5(job.session, text)
            await outside.enqueue(job.ref.run.tenant, job.session, queue, message, id)
            ledger.note("said", text)

    return say


class _Strike:
    """Notes each write before it is begun, and strikes at one of them."""

    def __init__(self, ledger: Ledger, kill: Kill | None) -> None:
        self._ledger = ledger
        self._at = KillAt(kill.number, kill.moment) if kill else KillAt(0, "before")

    def before(self, point: Point) -> None:
        self._ledger.note("point", point.name)
        self._at.before(point)

    def after(self, point: Point) -> None:
        self._at.after(point)


class _Witnessed:
    """A store whose attempts note each entry that the store says it has."""

    def __init__(self, store: RunStore, ledger: Ledger) -> None:
        self._store = store
        self._ledger = ledger

    def attempt_store(self, ref: AttemptRef) -> PagedAttemptStore:
        return cast(PagedAttemptStore, _WitnessedAttempt(self._store.attempt_store(ref), self._ledger))


class _WitnessedAttempt:
    def __init__(self, store: PagedAttemptStore, ledger: Ledger) -> None:
        self._store = store
        self._ledger = ledger

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def append(self, *args: Any) -> Sequence[Entry]:
        written = await self._store.append(*args)
        for entry in written:
            self._ledger.note("kept", str(entry.id))
        return written


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _be_the_child(line)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _be_the_child(line: str) -> None:
    """Never returns: what the parent has in its buffers is not the child's."""
    status = 1
    try:
        asyncio.run(carry_out(JOB.validate_json(line)))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


if __name__ == "__main__":
    main()
