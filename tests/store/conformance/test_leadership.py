"""One leader a scope, and a newer leader shuts an older one out."""

import pytest

from pilothouse.records.states import StepState
from pilothouse.records.values import ValueRefused
from pilothouse.store.errors import Conflict, Deposed
from pilothouse.store.ports import RunStore
from pilothouse.store.transitions import StepChange, Transition
from tests.store.samples import RUNNING, STARTED, created, refused, start


async def test_a_scope_has_one_leader_at_a_time(store: RunStore) -> None:
    async with store.lead("run 1"), store.lead("run 2"):
        with pytest.raises(Conflict, match="`run 1` is driven by another process"):
            async with store.lead("run 1"):
                pytest.fail("two leaders at once")
    async with store.lead("run 1") as again:
        assert again.scope == "run 1"


async def test_every_later_leader_has_a_greater_epoch_whatever_its_scope(store: RunStore) -> None:
    epochs = []
    for scope in ("a", "b", "a", "c", "a"):
        async with store.lead(scope) as leadership:
            epochs.append(leadership.epoch)
    assert epochs == sorted(set(epochs))
    assert epochs[0] > 0


async def test_leadership_ends_with_an_error_too(store: RunStore) -> None:
    with pytest.raises(RuntimeError):
        async with store.lead("a"):
            raise RuntimeError
    async with store.lead("a"):
        pass


async def test_an_older_leader_is_deposed_once_a_newer_one_has_written(store: RunStore) -> None:
    run = await created(store)
    async with store.lead("a") as old:
        await store.commit(run, old.epoch, Transition(steps=[start()]))
    async with store.lead("a") as new:
        await store.commit(run, new.epoch, Transition(events=[STARTED]))
    late = Transition(steps=[StepChange(start().id, RUNNING, StepState.SUCCEEDED)], events=[STARTED])
    async with refused(store, run, Deposed, f"newer than epoch {old.epoch}"):
        await store.commit(run, old.epoch, late)
    assert (await store.snapshot(run)).run.epoch == new.epoch
    await store.commit(run, new.epoch, late)


async def test_a_refused_transition_deposes_nobody(store: RunStore) -> None:
    run = await created(store)
    async with refused(store, run, Conflict):
        await store.commit(run, 9, Transition(steps=[StepChange(start().id, RUNNING, StepState.FAILED)]))
    await store.commit(run, 8, Transition(steps=[start()]))


async def test_a_scope_that_no_column_can_hold_is_refused(store: RunStore) -> None:
    with pytest.raises(ValueRefused):
        async with store.lead("a\0"):
            pytest.fail("led")
