"""Asking a run to end early."""

import asyncio
from itertools import product

import pytest

from pilothouse.records.events import EventType
from pilothouse.records.runs import RunRef
from pilothouse.records.states import RunState, Shutdown
from pilothouse.store.errors import NotFound
from pilothouse.store.ports import RunStore
from pilothouse.store.transitions import RunClosing, Transition
from tests.store.samples import created, everything, new_run

STRENGTH = [Shutdown.STOP, Shutdown.CANCEL, Shutdown.TERMINATE]


@pytest.mark.parametrize(("first", "second"), list(product(STRENGTH, STRENGTH)))
async def test_the_stronger_verb_stands(store: RunStore, first: Shutdown, second: Shutdown) -> None:
    run = await created(store)
    assert (await store.request_shutdown(run, first)).shutdown is first
    stronger = STRENGTH.index(second) > STRENGTH.index(first)
    asked = await store.request_shutdown(run, second)
    assert asked.shutdown is (second if stronger else first)
    assert asked == (await store.snapshot(run)).run
    verbs = [event.data["verb"] for event in await store.events(run) if event.type == "ShutdownRequested"]
    assert verbs == ([first, second] if stronger else [first])


async def test_a_finished_run_is_left_as_it_is(store: RunStore) -> None:
    run = await created(store)
    await store.commit(run, 1, Transition(run=RunClosing(RunState.SUCCEEDED)))
    before = await everything(store, run)
    asked = await store.request_shutdown(run, Shutdown.TERMINATE)
    assert (asked.state, asked.shutdown) == (RunState.SUCCEEDED, None)
    assert await everything(store, run) == before


async def test_many_who_ask_leave_one_event(store: RunStore) -> None:
    run = await created(store)
    await asyncio.gather(*(store.request_shutdown(run, Shutdown.CANCEL) for _ in range(10)))
    assert [event.type for event in await store.events(run)] == [EventType.RUN_STARTED, EventType.SHUTDOWN_REQUESTED]


async def test_a_shutdown_outlives_the_writes_of_a_driver_that_has_not_seen_it(store: RunStore) -> None:
    run = await created(store)
    await asyncio.gather(
        store.request_shutdown(run, Shutdown.STOP),
        *(store.commit(run, 1, Transition()) for _ in range(5)),
    )
    assert (await store.snapshot(run)).run.shutdown is Shutdown.STOP


async def test_a_run_that_is_not_there_is_not_asked(store: RunStore) -> None:
    new = new_run()
    with pytest.raises(NotFound):
        await store.request_shutdown(RunRef(new.tenant, new.run), Shutdown.STOP)
