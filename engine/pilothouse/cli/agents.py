"""Agent steps as tasks of this process, each with a sandbox of its own beside it."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeAlias
from uuid import UUID

from pilothouse.api.meta import KeyRef
from pilothouse.attempts.agent import AgentAttempt, Surroundings, failure_of
from pilothouse.attempts.assignment import Assignment
from pilothouse.records.failures import Failure, FailureCode
from pilothouse.records.runs import Attempt
from pilothouse.records.states import AttemptState
from pilothouse.store.errors import StoreError, StoreUnavailable, Superseded
from pilothouse.store.patient import Outages, patient
from pilothouse.store.ports import RunStore
from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandbox.local import local_sandbox
from pilothouse.workflows.executor import Ending
from pilothouse.workflows.local.commands import Sources
from pilothouse.workflows.work import AgentWork, ValueSource, Work

STOP_LIMIT = 30.0
"""Seconds that a task which is cancelled has to close its turn; what it writes later is refused."""

CarryOut: TypeAlias = Callable[[AgentAttempt, Assignment, Surroundings], Awaitable[None]]
"""How an attempt is carried out, to its outcome in the store."""


class LocalAgents:
    """Carries out agent attempts. A task ends with this process, and the next runner restarts it: whatever it
    did is in its session, so it goes on from there. `wake` is called whenever one may have ended;
    `tell` hears of outages, through which they wait."""

    def __init__(
        self,
        root: Path,
        store: RunStore,
        sources: Sources,
        wake: Callable[[], None],
        tell: Callable[[str], None],
        carry_out: CarryOut = AgentAttempt.carry_out,
    ) -> None:
        self._root = root
        self._store = store
        self._sources = sources
        self._wake = wake
        self._outages = Outages(tell)
        self._tell = tell
        self._how = carry_out
        self._tasks: dict[UUID, asyncio.Task[Ending | None]] = {}
        self._attempts: dict[UUID, Attempt] = {}
        self._stopped: dict[UUID, Ending] = {}

    async def running(self, attempt: Attempt) -> bool:
        return attempt.ref.attempt in self._tasks

    async def start(self, attempt: Attempt, work: Work) -> None:
        if not isinstance(work, AgentWork):
            raise TypeError(f"step {attempt.step} is not an agent's")
        if await self.running(attempt):
            return
        task = asyncio.create_task(self._run(attempt, work))
        task.add_done_callback(lambda _: self._wake())
        self._tasks[attempt.ref.attempt] = task
        self._attempts[attempt.ref.attempt] = attempt

    async def ending(self, attempt: Attempt) -> Ending | None:
        """An attempt that this executor did not start is lost: its task went with another process, and only
        a new fence keeps that one from writing."""
        id_ = attempt.ref.attempt
        if id_ in self._stopped:
            return self._stopped[id_]
        task = self._tasks.get(id_)
        if task is None or task.cancelled():
            return Ending(AttemptState.LOST, failure=Failure(FailureCode.ENV, "the runner was ended"))
        return task.result() if task.done() else None

    async def stop(self, attempt: Attempt, failure: Failure | None) -> None:
        """Cancels the task and waits for it, though not for ever: the turn is closed first, so that every call
        has its result."""
        await self._cancel(self._tasks.pop(attempt.ref.attempt, None))
        state = AttemptState.CANCELLED if failure is None else AttemptState.FAILED
        self._stopped[attempt.ref.attempt] = Ending(state, failure=failure)
        self._wake()

    async def forget(self, attempt: Attempt) -> None:
        """Lets go of the task, and of the workspace unless a restart goes on in it."""
        self._tasks.pop(attempt.ref.attempt, None)
        self._stopped.pop(attempt.ref.attempt, None)
        self._attempts.pop(attempt.ref.attempt, None)
        workspace = self._workspace(attempt)
        if workspace not in map(self._workspace, self._attempts.values()):
            await asyncio.to_thread(shutil.rmtree, workspace, ignore_errors=True)

    async def close(self) -> None:
        """Cancels every task, and records that they were let go of: a pause uses up no restart."""
        await asyncio.gather(*(self._release(id_, task) for id_, task in list(self._tasks.items())))

    async def _release(self, id_: UUID, task: "asyncio.Task[Ending | None]") -> None:
        over = task.done()
        await self._cancel(task)
        if not over:
            with suppress(StoreError):
                await self._store.attempt_store(self._attempts[id_].ref).finish(AttemptState.RELEASED)

    async def _cancel(self, task: "asyncio.Task[Ending | None] | None") -> None:
        if task is not None:
            task.cancel()
            await asyncio.wait([task], timeout=STOP_LIMIT)

    async def _run(self, attempt: Attempt, work: AgentWork) -> Ending | None:
        """None once the attempt has committed its own end, or another attempt has taken its place."""
        try:
            failure = await failure_of(self._carry_out(attempt, work))
        except Superseded:
            return None
        except StoreUnavailable as error:  # a task that was asked to end does not wait for the store
            return Ending(AttemptState.LOST, failure=Failure(FailureCode.ENV, f"the store was away: {error}"))
        return Ending(AttemptState.FAILED, failure=failure) if failure else None

    async def _carry_out(self, attempt: Attempt, work: AgentWork) -> None:
        store = patient(self._store.attempt_store(attempt.ref), self._outages)
        surroundings = Surroundings(
            self._sandbox(attempt),
            lambda ref: self._value("Secret", ref),
            tell=lambda text: self._tell(f"step {attempt.step}: {text}"),
        )
        assignment = Assignment.of(work, lambda ref: self._value("ConfigMap", ref))
        await self._how(AgentAttempt(store, attempt.step, attempt.number), assignment, surroundings)

    @asynccontextmanager
    async def _sandbox(self, attempt: Attempt) -> AsyncIterator[Sandbox]:
        workspace = self._workspace(attempt)
        workspace.mkdir(parents=True, exist_ok=True)
        async with local_sandbox(workspace) as sandbox:
            if not sandbox.sealed:
                self._tell(f"step {attempt.step}: its tools can reach the network: {sandbox.not_sealed_reason}")
            yield sandbox

    def _value(self, kind: str, ref: KeyRef) -> str:
        return self._sources.value(ValueSource(kind, ref.name, ref.key))

    def _workspace(self, attempt: Attempt) -> Path:
        return self._root / f"{attempt.ref.run.run}-{attempt.step.path}-{attempt.number}"
