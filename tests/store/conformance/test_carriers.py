"""What carries an attempt out, recorded before it may begin; and what else a cluster asks of the store."""

from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import uuid4

import pytest

from pilothouse.records.runs import AttemptRef, NewStep, RunRef
from pilothouse.records.states import StepState
from pilothouse.records.values import Inline
from pilothouse.store.errors import Conflict, Deposed, NotFound
from pilothouse.store.ports import RunStore
from pilothouse.store.transitions import Transition
from tests.store.samples import BUILD, STARTED, TEST, created, new_run, open_attempt, refused, replaced


async def _opened(store: RunStore) -> AttemptRef:
    return await open_attempt(store, await created(store))


async def test_an_attempt_is_found_by_what_carries_it(store: RunStore) -> None:
    ref = await _opened(store)
    await store.carry(ref, 1, "pod-1")
    found = await store.carried("pod-1", "team-a")
    assert (found.ref, found.carrier) == (ref, "pod-1")
    assert (await store.snapshot(ref.run)).attempts[BUILD].carrier == "pod-1"


async def test_nothing_is_found_by_what_carries_nothing(store: RunStore) -> None:
    ref = await _opened(store)
    await store.carry(ref, 1, "pod-1")
    for other in ("pod", "pod-10", ""):
        with pytest.raises(NotFound):
            await store.carried(other, "team-a")


async def test_nothing_is_found_by_what_carries_an_attempt_of_another_namespace(store: RunStore) -> None:
    await store.carry(await _opened(store), 1, "pod-1")
    for other in ("team", "team-a-2", ""):
        with pytest.raises(NotFound):
            await store.carried("pod-1", other)


async def test_recording_the_same_carrier_again_changes_nothing(store: RunStore) -> None:
    ref = await _opened(store)
    await store.carry(ref, 1, "pod-1")
    await store.carry(ref, 1, "pod-1")
    assert (await store.carried("pod-1", "team-a")).ref == ref


async def test_an_attempt_never_has_a_second_carrier(store: RunStore) -> None:
    ref = await _opened(store)
    await store.carry(ref, 1, "pod-1")
    async with refused(store, ref.run, Conflict):
        await store.carry(ref, 1, "pod-2")


async def test_an_attempt_that_ended_takes_no_carrier(store: RunStore) -> None:
    old = await _opened(store)
    await replaced(store, old)
    async with refused(store, old.run, Conflict):
        await store.carry(old, 1, "pod-1")


async def test_a_wrong_fence_takes_no_carrier(store: RunStore) -> None:
    ref = await _opened(store)
    async with refused(store, ref.run, Conflict):
        await store.carry(replace(ref, fence=ref.fence + 1), 1, "pod-1")


async def test_a_leader_that_was_replaced_records_no_carrier(store: RunStore) -> None:
    ref = await _opened(store)
    await store.commit(ref.run, 7, Transition(events=[STARTED]))
    async with refused(store, ref.run, Deposed):
        await store.carry(ref, 6, "pod-1")
    await store.carry(ref, 8, "pod-1")
    async with refused(store, ref.run, Deposed):
        await store.commit(ref.run, 7, Transition(events=[STARTED]))


async def test_a_run_of_another_tenant_takes_no_carrier(store: RunStore) -> None:
    ref = await _opened(store)
    with pytest.raises(NotFound):
        await store.carry(replace(ref, run=RunRef(uuid4(), ref.run.run)), 1, "pod-1")


async def test_the_epoch_of_a_scope_is_that_of_its_newest_leader(store: RunStore) -> None:
    assert await store.epoch_of("operator") == 0
    async with store.lead("operator") as first, store.lead("other"):
        assert await store.epoch_of("operator") == first.epoch
    async with store.lead("operator") as second:
        assert await store.epoch_of("operator") == second.epoch > first.epoch


async def test_the_token_key_is_32_bytes_and_stays_the_same(store: RunStore) -> None:
    key = await store.token_key()
    assert len(key) == 32
    assert await store.token_key() == key


async def test_a_run_keeps_what_had_been_asked_when_it_was_made(store: RunStore) -> None:
    run = await store.create_run(new_run(requests={"rerun": "2026-11-30T10:00:00Z"}))
    assert run.requests == {"rerun": "2026-11-30T10:00:00Z"}
    assert (await store.snapshot(run.ref)).run.requests == run.requests


async def test_a_step_can_come_settled_with_its_outputs(store: RunStore) -> None:
    taken_over = NewStep(BUILD, "transform", StepState.SUCCEEDED, {"value": Inline("as before")})
    run = await store.create_run(new_run(steps=[taken_over, NewStep(TEST, "transform")]))
    steps = (await store.snapshot(run.ref)).steps
    assert (steps[BUILD].state, steps[BUILD].outputs) == (StepState.SUCCEEDED, {"value": Inline("as before")})
    assert steps[BUILD].finished_at is not None
    assert (steps[TEST].state, steps[TEST].finished_at) == (StepState.PENDING, None)


async def test_who_waits_for_any_run_hears_which_changed_however_late(store: RunStore) -> None:
    first, second, third = [await created(store) for _ in range(3)]
    async with store.all_changes() as changes:
        for run in (first, second, first):  # of a burst that comes in pieces, a run may be told of again
            await store.commit(run, 1, Transition(events=[STARTED]))
        assert {await anext(changes), await anext(changes)} == {first, second}
        await store.commit(third, 1, Transition(events=[STARTED]))
        assert third in [run async for run in _until(third, changes)]


async def _until(last: RunRef, changes: AsyncIterator[RunRef | None]) -> AsyncIterator[RunRef | None]:
    async for run in changes:
        yield run
        if run == last:
            return
