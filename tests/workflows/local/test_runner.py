"""The runner: waits through an outage, gives way to a newer leader, and leaves nothing behind."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import pytest

from pilothouse.api.workflow import WorkflowSpec
from pilothouse.records.failures import Failure
from pilothouse.records.runs import Attempt, NewRun, NewStep, Run, RunRef, Snapshot, StepId
from pilothouse.records.states import AttemptState, RunState, Shutdown
from pilothouse.store.errors import Conflict, Deposed, StoreUnavailable
from pilothouse.store.memory import MemoryRunStore
from pilothouse.store.transitions import Transition
from pilothouse.workflows.closure import Closure
from pilothouse.workflows.executor import Ending, Executor
from pilothouse.workflows.expressions.evaluator import Evaluator
from pilothouse.workflows.local import runner as runners
from pilothouse.workflows.local.runner import Runner
from pilothouse.workflows.work import Work

SPEC = WorkflowSpec.model_validate({"steps": [{"name": "a", "runCommand": {"command": ["x"]}}]})


class Flaky(MemoryRunStore):
    """A store that is away for the next `away` calls."""

    away = 0
    asked = 0

    def _answer(self) -> None:
        self.asked += 1
        if self.away > 0:
            self.away -= 1
            raise StoreUnavailable("the server is away")

    async def snapshot(self, run: RunRef) -> Snapshot:
        self._answer()
        return await super().snapshot(run)

    async def commit(self, run: RunRef, epoch: int, transition: Transition) -> None:
        self._answer()
        await super().commit(run, epoch, transition)

    @asynccontextmanager
    async def changes(self, run: RunRef) -> AsyncIterator[AsyncIterator[None]]:
        self._answer()
        async with super().changes(run) as changes:
            yield changes


class Held:
    """An executor whose only process ends when the test says so."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self.wake = wake
        self.begun = asyncio.Event()
        self.over: Ending | None = None
        self.forgotten: list[Attempt] = []
        self.closed = False

    async def running(self, attempt: Attempt) -> bool:
        return self.begun.is_set()

    async def start(self, attempt: Attempt, work: Work) -> None:
        self.begun.set()

    async def ending(self, attempt: Attempt) -> Ending | None:
        return self.over

    async def stop(self, attempt: Attempt, failure: Failure | None) -> None:
        self.end(AttemptState.CANCELLED)

    async def forget(self, attempt: Attempt) -> None:
        self.forgotten.append(attempt)

    async def close(self) -> None:
        self.closed = True

    def end(self, state: AttemptState) -> None:
        self.over = Ending(state)
        self.wake()


class Stage:
    """A run, its store, and a runner with its executor."""

    def __init__(self, store: Flaky, run: Run) -> None:
        self.store = store
        self.run = run
        self.told: list[str] = []
        self.executors: list[Held] = []

    def _executors(self, closure: Closure, wake: Callable[[], None]) -> Mapping[str, Executor]:
        self.executors.append(Held(wake))
        return {"runCommand": self.executors[-1]}

    def runner(self, evaluator: Evaluator) -> Runner:
        return Runner(self.store, evaluator, self._executors, self.told.append)

    @asynccontextmanager
    async def driven(self) -> AsyncIterator[tuple[asyncio.Task[Run], Held]]:
        """A runner that has started the step."""
        async with Evaluator() as evaluator:
            driving = asyncio.create_task(self.runner(evaluator).drive(self.run.ref))
            while not self.executors:  # noqa: ASYNC110 - the other task of this loop makes it
                await asyncio.sleep(0)
            await self.executors[-1].begun.wait()
            yield driving, self.executors[-1]
            driving.cancel()
            await asyncio.gather(driving, return_exceptions=True)


@pytest.fixture
async def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(runners, "OUTAGE_PAUSE", 0.0)
    store = Flaky()
    steps = [NewStep(StepId("a"), "runCommand")]
    new = NewRun(UUID(int=1), uuid4(), "default", "w", UUID(int=2), "k", Closure(SPEC).to_json(), {}, steps)
    return Stage(store, await store.create_run(new))


async def test_an_outage_of_the_store_is_told_once_and_waited_for(stage: Stage) -> None:
    async with stage.driven() as (driving, process):
        stage.store.away = 5
        process.end(AttemptState.SUCCEEDED)
        assert (await driving).state is RunState.SUCCEEDED
    assert stage.told == ["the store is away, the run waits: the server is away", "the store is back, the run goes on"]
    assert process.closed


async def test_an_outage_while_it_begins_to_listen_does_not_deafen_the_runner(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    listened = asyncio.Event()
    listens, refusals = Flaky.changes, [StoreUnavailable("the server is away")] * 3

    @asynccontextmanager
    async def changes(self: Flaky, run: RunRef) -> AsyncIterator[AsyncIterator[None]]:
        if refusals:
            raise refusals.pop()
        async with listens(self, run) as found:
            listened.set()
            yield found

    monkeypatch.setattr(Flaky, "changes", changes)
    async with stage.driven() as (driving, _):
        await listened.wait()
        await stage.store.request_shutdown(stage.run.ref, Shutdown.CANCEL)  # wakes only who listens
        assert (await driving).state is RunState.CANCELLED


async def test_a_run_has_one_driver_at_a_time(stage: Stage) -> None:
    async with stage.driven() as (driving, process):
        async with Evaluator() as evaluator:
            with pytest.raises(Conflict, match="is driven by another process"):
                await stage.runner(evaluator).drive(stage.run.ref)
        process.end(AttemptState.SUCCEEDED)
        assert (await driving).state is RunState.SUCCEEDED


async def test_who_was_deposed_stops_driving(stage: Stage) -> None:
    async with stage.driven() as (driving, process):
        async with stage.store.lead("another scope") as newer:
            await stage.store.commit(stage.run.ref, newer.epoch, Transition())
        process.end(AttemptState.SUCCEEDED)
        with pytest.raises(Deposed):
            await driving
    assert process.closed
    assert (await stage.store.snapshot(stage.run.ref)).run.state is RunState.RUNNING


async def test_every_attempt_of_an_ended_run_is_forgotten(stage: Stage) -> None:
    """Also those whose runner was killed between recording their end and cleaning up."""
    async with stage.driven() as (driving, process):
        process.end(AttemptState.SUCCEEDED)
        await driving
    attempts = {attempt.ref.attempt for attempt in await stage.store.attempts(stage.run.ref)}
    assert process.forgotten[-1].state is AttemptState.SUCCEEDED
    assert {attempt.ref.attempt for attempt in process.forgotten} == attempts
    assert len(process.forgotten) == 2


async def test_a_paused_runner_lets_go_without_ending_anything(stage: Stage) -> None:
    async with stage.driven() as (driving, process):
        driving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await driving
    assert process.closed
    assert process.over is None
    assert [attempt.state for attempt in await stage.store.attempts(stage.run.ref)] == [AttemptState.OPEN]
