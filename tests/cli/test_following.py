"""Following a run's events: all of them, once, in order, whatever happens to the store meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import pytest

from pilothouse.cli import following
from pilothouse.cli.following import follow, recorded
from pilothouse.records.events import Event, EventType, NewEvent
from pilothouse.records.runs import NewRun, NewStep, Run, RunRef, StepId
from pilothouse.records.states import RunState, StepState
from pilothouse.store.errors import StoreUnavailable
from pilothouse.store.memory import MemoryRunStore
from pilothouse.store.transitions import RunClosing, StepChange, Transition


class Store(MemoryRunStore):
    """A store that may be away, and whose hints may all get lost."""

    away = 0
    silent = False

    async def events(self, run: RunRef, after: int = 0, limit: int = 1_000) -> Sequence[Event]:
        if self.away:
            self.away -= 1
            raise StoreUnavailable("the server is away")
        return await super().events(run, after, limit)

    @asynccontextmanager
    async def changes(self, run: RunRef) -> AsyncIterator[AsyncIterator[None]]:
        async with super().changes(run) as changes:
            yield _never() if self.silent else changes


async def _never() -> AsyncIterator[None]:
    await asyncio.Event().wait()
    yield


@pytest.fixture
async def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(following, "SWEEP", 0.01)
    monkeypatch.setattr(following, "OUTAGE_PAUSE", 0.0)
    return Store()


async def new_run(store: Store) -> Run:
    steps = [NewStep(StepId("a"), "transform")]
    return await store.create_run(NewRun(UUID(int=1), uuid4(), "default", "w", UUID(int=2), "k", {}, {}, steps))


async def tell(store: Store, run: Run, count: int) -> None:
    events = [NewEvent(EventType.TOOL_STARTED, StepId("a"), {"tool": str(index)}) for index in range(count)]
    await store.commit(run.ref, 1, Transition(events=events))


async def end(store: Store, run: Run) -> None:
    change = StepChange(StepId("a"), frozenset({StepState.PENDING}), StepState.SUCCEEDED)
    closing = RunClosing(RunState.SUCCEEDED, {}, None)
    await store.commit(run.ref, 1, Transition(steps=[change], run=closing, events=[NewEvent(EventType.RUN_SUCCEEDED)]))


async def test_more_events_than_fit_one_page_are_all_told(store: Store) -> None:
    run = await new_run(store)
    await tell(store, run, 2_500)
    assert [event.seq async for event in recorded(store, run.ref)] == list(range(1, 2_502))
    assert [event.seq async for event in recorded(store, run.ref, 2_400)] == list(range(2_401, 2_502))
    await end(store, run)
    assert [event.seq async for event in follow(store, run.ref)] == list(range(1, 2_503))


@pytest.mark.parametrize("silent", [False, True], ids=["told", "hints lost"])
async def test_following_ends_with_the_run_and_tells_each_event_once(store: Store, silent: bool) -> None:
    store.silent = silent
    run = await new_run(store)
    seen: list[int] = []

    async def read() -> None:
        async for event in follow(store, run.ref):
            seen.append(event.seq)

    reading = asyncio.create_task(read())
    for expected in (1, 4, 7):
        while len(seen) < expected:  # noqa: ASYNC110 - the other task of this loop fills it
            await asyncio.sleep(0)
        store.away = 3
        await tell(store, run, 3)
    await end(store, run)
    await reading
    assert seen == list(range(1, 12))
