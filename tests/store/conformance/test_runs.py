"""Creating runs, numbering and listing them."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

from pilothouse.records.events import EventType
from pilothouse.records.runs import NewStep, RunName, RunRef
from pilothouse.records.states import RunState, StepState
from pilothouse.records.values import Inline, ValueRefused
from pilothouse.store.errors import NotFound
from pilothouse.store.ports import RunStore
from pilothouse.store.transitions import RunClosing, Transition
from tests.store.samples import BUILD, TEST, created, everything, new_run


@pytest.mark.feature("B43")
async def test_a_run_exists_with_its_steps_before_the_first_of_them_begins(store: RunStore) -> None:
    new = new_run()
    run = await store.create_run(new)
    snapshot = await store.snapshot(run.ref)
    assert snapshot.run == run
    assert (run.number, run.state, run.event_seq, run.epoch) == (1, RunState.RUNNING, 1, 0)
    assert (run.closure, run.params, run.key) == (new.closure, new.params, new.key)
    assert list(snapshot.steps) == [BUILD, TEST]
    assert {step.state for step in snapshot.steps.values()} == {StepState.PENDING}
    assert snapshot.attempts == {}


async def test_a_run_begins_with_the_event_that_it_started(store: RunStore) -> None:
    run = await created(store)
    [event] = await store.events(run)
    assert (event.run, event.seq, event.type, event.step) == (run, 1, EventType.RUN_STARTED, None)


async def test_creating_the_same_run_again_returns_the_one_that_is_there(store: RunStore) -> None:
    new = new_run()
    first = await store.create_run(new)
    before = await everything(store, first.ref)
    assert await store.create_run(replace(new, closure={"other": True}, steps=[])) == first
    assert await everything(store, first.ref) == before
    following = await store.create_run(new_run(new.tenant))
    assert following.number == 2, "the repeated creation used up a number"


async def test_one_run_comes_of_many_creations_at_once(store: RunStore) -> None:
    new = new_run()
    runs = await asyncio.gather(*(store.create_run(new) for _ in range(10)))
    assert len(set(run.created_at for run in runs)) == 1
    assert len(await store.events(runs[0].ref)) == 1


async def test_numbers_count_from_one_by_tenant_and_workflow(store: RunStore) -> None:
    ours, theirs = uuid4(), uuid4()
    numbers = [
        (await store.create_run(new_run(tenant, workflow=workflow))).number
        for tenant, workflow in [(ours, "a"), (ours, "a"), (ours, "b"), (theirs, "a"), (ours, "a")]
    ]
    assert numbers == [1, 2, 1, 1, 3]


async def test_numbers_have_neither_gaps_nor_twins_when_runs_are_created_at_once(store: RunStore) -> None:
    tenant = uuid4()
    runs = await asyncio.gather(*(store.create_run(new_run(tenant)) for _ in range(20)))
    assert sorted(run.number for run in runs) == list(range(1, 21))


async def test_two_steps_with_one_id_are_refused(store: RunStore) -> None:
    new = new_run(steps=[NewStep(BUILD, "wait"), NewStep(BUILD, "wait")])
    with pytest.raises(ValueRefused, match="same path"):
        await store.create_run(new)
    with pytest.raises(NotFound):
        await store.snapshot(RunRef(new.tenant, new.run))


async def test_the_deadline_is_absolute_and_counts_from_creation(store: RunStore) -> None:
    run = await store.create_run(new_run(deadline_seconds=90.5))
    assert run.deadline == run.created_at + timedelta(seconds=90.5)
    assert (await store.create_run(new_run())).deadline is None


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1.0, 1e18])
async def test_a_deadline_that_is_no_time_is_refused(store: RunStore, seconds: float) -> None:
    with pytest.raises(ValueRefused, match="deadline_seconds"):
        await store.create_run(new_run(deadline_seconds=seconds))


async def test_runs_are_listed_newest_first_and_by_what_was_asked(store: RunStore) -> None:
    tenant = uuid4()
    first, second, third = [
        (await store.create_run(new_run(tenant, workflow=workflow))).ref for workflow in ("a", "b", "a")
    ]
    await store.commit(third, 1, Transition(run=RunClosing(RunState.SUCCEEDED)))
    assert [run.ref for run in await store.runs(tenant)] == [third, second, first]
    assert [run.ref for run in await store.runs(tenant, workflow="a")] == [third, first]
    assert [run.ref for run in await store.runs(tenant, unfinished=True)] == [second, first]
    assert [run.ref for run in await store.runs(limit=2)] == [third, second]


async def test_runs_are_named_as_they_are_listed(store: RunStore) -> None:
    ours, theirs = uuid4(), uuid4()
    made = [
        await store.create_run(new_run(tenant, workflow=name))
        for tenant, name in ((ours, "a"), (ours, "b"), (theirs, "a"), (ours, "a"))
    ]
    first, second, foreign, last = (RunName(run.ref, run.number, run.namespace, run.workflow) for run in made)
    await store.commit(last.ref, 1, Transition(run=RunClosing(RunState.SUCCEEDED)))
    assert [run.number for run in (first, second, foreign, last)] == [1, 1, 1, 2]
    assert list(await store.run_names(ours, limit=9)) == [last, second, first]
    assert list(await store.run_names(ours, workflow="a", limit=9)) == [last, first]
    assert list(await store.run_names(ours, limit=1)) == [last]
    assert list(await store.run_names(unfinished=True, limit=9)) == [foreign, second, first]
    assert list(await store.run_names(theirs, workflow="a", unfinished=True, limit=9)) == [foreign]


async def test_runs_are_listed_by_the_name_of_their_namespace_whatever_its_tenant(store: RunStore) -> None:
    older, newer = new_run(namespace="team-a"), new_run(namespace="team-a")
    for new in (older, new_run(namespace="team-b"), newer):
        await store.create_run(new)
    runs = await store.runs(namespace="team-a", unfinished=True)
    assert [run.ref.tenant for run in runs] == [newer.tenant, older.tenant]
    assert len({run.ref.tenant for run in runs}) == 2
    assert await store.runs(namespace="team-a", workflow="other") == []


async def test_a_run_that_ends_says_how_and_when(store: RunStore) -> None:
    run = await created(store)
    outputs = {"answer": Inline(42)}
    await store.commit(run, 1, Transition(run=RunClosing(RunState.SUCCEEDED, outputs)))
    ended = (await store.snapshot(run)).run
    assert (ended.state, ended.outputs) == (RunState.SUCCEEDED, outputs)
    assert ended.finished_at is not None
    assert ended.finished_at >= ended.created_at


async def test_what_is_not_there_is_said_not_to_be_there(store: RunStore) -> None:
    nowhere = RunRef(uuid4(), uuid4())
    with pytest.raises(NotFound, match=str(nowhere.run)):
        await store.snapshot(nowhere)
    with pytest.raises(NotFound, match=str(nowhere.run)):
        await store.commit(nowhere, 1, Transition())
    assert list(await store.events(nowhere)) == []
    assert list(await store.attempts(nowhere)) == []
    assert list(await store.sessions(nowhere)) == []


async def test_what_a_reader_does_to_a_record_does_not_reach_the_store(store: RunStore) -> None:
    new = new_run()
    run = await store.create_run(new)
    new.closure["steps"].append("sneaked in")
    run.closure["steps"].append("sneaked in")
    assert (await store.snapshot(run.ref)).run.closure == new_run().closure


async def test_the_installation_stays_the_same(store: RunStore) -> None:
    assert await store.installation() == await store.installation()
