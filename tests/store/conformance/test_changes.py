"""Waiting for changes of a run."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import uuid4

import pytest

from pilothouse.records.events import EventType, NewEvent
from pilothouse.records.runs import RunRef
from pilothouse.records.states import AttemptState, Shutdown
from pilothouse.store.ports import RunStore
from pilothouse.store.transitions import Transition
from tests.store.samples import STARTED, created, message, new_run, open_attempt

Change = Callable[[RunStore, RunRef], Awaitable[object]]


async def _commit(store: RunStore, run: RunRef) -> None:
    await store.commit(run, 1, Transition(events=[STARTED]))


async def _finish(store: RunStore, run: RunRef) -> None:
    [attempt] = await store.attempts(run)
    await store.attempt_store(attempt.ref).finish(AttemptState.SUCCEEDED)


async def _append(store: RunStore, run: RunRef) -> None:
    [attempt] = await store.attempts(run)
    port, session = store.attempt_store(attempt.ref), uuid4()
    await port.open_session(session)
    await port.append(session, None, [message()], [NewEvent(EventType.TURN_RECORDED)])


async def _shut_down(store: RunStore, run: RunRef) -> None:
    await store.request_shutdown(run, Shutdown.STOP)


@pytest.mark.parametrize("change", [_commit, _finish, _append, _shut_down])
async def test_a_change_wakes_everyone_who_waits_for_the_run(store: RunStore, change: Change) -> None:
    run = await created(store)
    await open_attempt(store, run)
    async with store.changes(run) as first, store.changes(run) as second:
        await change(store, run)
        await asyncio.gather(anext(first), anext(second))


async def test_a_change_of_another_run_wakes_nobody(store: RunStore) -> None:
    run = await created(store)
    twin = await store.create_run(new_run(uuid4(), run=run.run))
    async with store.changes(run) as changes, store.changes(twin.ref) as others:
        await _commit(store, twin.ref)
        await anext(others)
        assert await _asleep(changes)


async def test_a_burst_wakes_and_later_changes_wake_again(store: RunStore) -> None:
    run = await created(store)
    async with store.changes(run) as changes:
        for _ in range(5):
            await _commit(store, run)
        await anext(changes)
        await _commit(store, run)
        seen = 0
        while seen < 7:  # RunStarted and six
            await anext(changes)
            seen = len(await store.events(run))


async def test_nothing_is_missed_between_looking_and_waiting(store: RunStore) -> None:
    run, total = await created(store), 60

    async def write() -> None:
        for _ in range(total):
            await _commit(store, run)

    async with store.changes(run) as changes:
        writing = asyncio.create_task(write())
        while len(await store.events(run)) < total + 1:
            await anext(changes)
        await writing


async def _asleep(changes: AsyncIterator[None]) -> bool:
    waiting = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0)
    waiting.cancel()
    [verdict] = await asyncio.gather(waiting, return_exceptions=True)
    return isinstance(verdict, asyncio.CancelledError)
