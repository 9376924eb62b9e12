"""Every guard of a transition: it holds and all is written, or it does not and nothing is."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from uuid import uuid4

import pytest

from pilothouse.records.events import EventType, NewEvent
from pilothouse.records.failures import Failure, FailureCode
from pilothouse.records.runs import AttemptRef, StepId
from pilothouse.records.states import AttemptState, RunState, StepState
from pilothouse.records.values import BlobRef, Inline, Outputs, ValueRefused
from pilothouse.store.errors import Conflict, NotFound
from pilothouse.store.ports import RunStore
from pilothouse.store.transitions import AttemptClosing, RunClosing, StepChange, Transition
from tests.store.samples import (
    BUILD,
    PENDING,
    RUNNING,
    STARTED,
    TEST,
    created,
    open_attempt,
    opening,
    refused,
    start,
)

FAILURE = Failure(FailureCode.EXE, "exit code 3", "ExitCode")


@pytest.mark.feature("B43")
async def test_a_step_its_attempt_and_its_event_are_written_together(store: RunStore) -> None:
    run, opened = await created(store), replace(opening(), timeout=30)
    await store.commit(run, 1, Transition(steps=[start()], openings=[opened], events=[STARTED]))
    snapshot = await store.snapshot(run)
    step, attempt = snapshot.steps[BUILD], snapshot.attempts[BUILD]
    assert (step.state, step.fence, step.attempts, step.restarts) == (StepState.RUNNING, 1, 1, 0)
    assert attempt.ref == AttemptRef(run, opened.attempt, 1)
    assert (attempt.step, attempt.nonce, attempt.state) == (BUILD, opened.nonce, AttemptState.OPEN)
    assert attempt.deadline == attempt.created_at + timedelta(seconds=30)
    [_, event] = await store.events(run)
    assert (event.seq, event.type, event.step, event.data) == (2, STARTED.type, BUILD, STARTED.data)
    assert snapshot.run.event_seq == 2


@pytest.mark.feature("B44")
async def test_a_finished_step_keeps_its_outputs_for_whoever_resumes(store: RunStore) -> None:
    run = await created(store)
    outputs: Outputs = {"stdout": Inline("ok\0"), "log": BlobRef("sha256:ab", 70_000)}
    await store.commit(run, 1, Transition(steps=[start()]))
    await store.commit(run, 1, Transition(steps=[StepChange(BUILD, RUNNING, StepState.SUCCEEDED, outputs=outputs)]))
    step = (await store.snapshot(run)).steps[BUILD]
    assert (step.state, step.outputs, step.failure) == (StepState.SUCCEEDED, outputs, None)
    assert step.started_at is not None
    assert step.finished_at is not None
    assert step.finished_at > step.started_at


async def test_a_step_that_succeeds_without_an_attempt_began_when_it_ended(store: RunStore) -> None:
    run = await created(store)
    light = StepChange(BUILD, frozenset({StepState.PENDING}), StepState.SUCCEEDED)
    await store.commit(run, 1, Transition(steps=[light]))
    step = (await store.snapshot(run)).steps[BUILD]
    assert step.started_at == step.finished_at
    assert step.started_at is not None


async def test_a_retry_waits_by_the_stores_clock_and_keeps_the_first_start(store: RunStore) -> None:
    run = await created(store)
    await store.commit(run, 1, Transition(steps=[start()]))
    first = (await store.snapshot(run)).steps[BUILD].started_at
    retrying = StepChange(BUILD, RUNNING, StepState.RETRYING, failure=FAILURE, wake_in=60)
    await store.commit(run, 1, Transition(steps=[retrying]))
    snapshot = await store.snapshot(run)
    step = snapshot.steps[BUILD]
    assert step.failure == FAILURE
    assert step.wake_at is not None
    assert timedelta(seconds=50) < step.wake_at - snapshot.now <= timedelta(seconds=60)
    again = StepChange(BUILD, frozenset({StepState.RETRYING}), StepState.RUNNING)
    await store.commit(run, 1, Transition(steps=[again]))
    step = (await store.snapshot(run)).steps[BUILD]
    assert (step.wake_at, step.failure, step.finished_at, step.started_at) == (None, None, None, first)


async def test_changes_of_one_step_apply_in_order(store: RunStore) -> None:
    run = await created(store)
    both = [start(), StepChange(BUILD, RUNNING, StepState.FAILED, failure=FAILURE)]
    await store.commit(run, 1, Transition(steps=both))
    assert (await store.snapshot(run)).steps[BUILD].state is StepState.FAILED


async def test_closing_and_opening_in_one_transition_restarts_a_step(store: RunStore) -> None:
    run = await created(store)
    first = await open_attempt(store, run)
    closing = AttemptClosing(first.attempt, 1, AttemptState.LOST, log=BlobRef("sha256:cd", 9))
    second = replace(opening(after=1), number=1, restart=1)
    await store.commit(run, 1, Transition(closings=[closing], openings=[second]))
    snapshot = await store.snapshot(run)
    assert snapshot.attempts[BUILD].ref == AttemptRef(run, second.attempt, 2)
    assert (snapshot.steps[BUILD].fence, snapshot.steps[BUILD].attempts) == (2, 1)
    assert snapshot.steps[BUILD].restarts == 1
    [old, new] = await store.attempts(run)
    assert (old.state, old.log, new.state) == (AttemptState.LOST, BlobRef("sha256:cd", 9), AttemptState.OPEN)
    assert old.finished_at is not None


async def test_a_closed_attempt_keeps_its_outcome(store: RunStore) -> None:
    run = await created(store)
    ref = await open_attempt(store, run)
    outputs = {"exitCode": Inline(3)}
    await store.commit(
        run, 1, Transition(closings=[AttemptClosing(ref.attempt, 1, AttemptState.FAILED, outputs, FAILURE)])
    )
    [attempt] = await store.attempts(run)
    assert (attempt.state, attempt.outputs, attempt.failure) == (AttemptState.FAILED, outputs, FAILURE)


Guard = Callable[[AttemptRef], Transition]

BROKEN_GUARDS: dict[str, Guard] = {
    "a step in another state": lambda ref: Transition(steps=[StepChange(BUILD, RUNNING, StepState.SUCCEEDED)]),
    "a step that expects nothing": lambda ref: Transition(steps=[StepChange(BUILD, frozenset(), StepState.SUCCEEDED)]),
    "a step with an older fence": lambda ref: Transition(
        steps=[StepChange(BUILD, PENDING, StepState.RUNNING, fence=0)]
    ),
    "a step with a newer fence": lambda ref: Transition(steps=[StepChange(BUILD, PENDING, StepState.RUNNING, fence=2)]),
    "a step that is not there": lambda ref: Transition(steps=[start(StepId("nowhere"))]),
    "another index of a step": lambda ref: Transition(steps=[start(StepId("build", 1))]),
    "a closing with another fence": lambda ref: Transition(
        closings=[AttemptClosing(ref.attempt, 2, AttemptState.FAILED)]
    ),
    "a closing of an unknown attempt": lambda ref: Transition(
        closings=[AttemptClosing(uuid4(), 1, AttemptState.FAILED)]
    ),
    "two closings of one attempt": lambda ref: Transition(
        closings=[AttemptClosing(ref.attempt, 1, AttemptState.FAILED)] * 2
    ),
    "an opening beside an open attempt": lambda ref: Transition(openings=[opening(after=1)]),
    "an opening after an older fence": lambda ref: Transition(
        closings=[AttemptClosing(ref.attempt, 1, AttemptState.LOST)], openings=[opening(after=0)]
    ),
    "an opening after a newer fence": lambda ref: Transition(openings=[opening(TEST, after=1)]),
    "an opening with an attempt's id": lambda ref: Transition(openings=[opening(TEST, attempt=ref.attempt)]),
    "two openings of one step": lambda ref: Transition(openings=[opening(TEST), opening(TEST, after=1)]),
    "an opening of no step": lambda ref: Transition(openings=[opening(StepId("nowhere"))]),
}


@pytest.mark.parametrize("guard", BROKEN_GUARDS.values(), ids=BROKEN_GUARDS.keys())
async def test_nothing_is_written_where_one_guard_does_not_hold(store: RunStore, guard: Guard) -> None:
    run = await created(store)
    broken = guard(await open_attempt(store, run))
    elsewhere = start(TEST)
    transition = replace(broken, steps=[elsewhere, *broken.steps], events=[STARTED])
    async with refused(store, run, Conflict):
        await store.commit(run, 5, transition)
    await store.commit(run, 2, Transition(steps=[elsewhere]))


async def test_a_run_ends_once(store: RunStore) -> None:
    run = await created(store)
    await store.commit(run, 1, Transition(run=RunClosing(RunState.CANCELLED)))
    async with refused(store, run, Conflict, "ended before"):
        await store.commit(run, 1, Transition(steps=[start()], run=RunClosing(RunState.SUCCEEDED), events=[STARTED]))


async def test_a_conflict_names_the_step_and_what_was_expected(store: RunStore) -> None:
    run = await created(store)
    with pytest.raises(Conflict, match=r"step `build` cannot become Succeeded: it is not in {Running} with fence 4"):
        await store.commit(run, 1, Transition(steps=[StepChange(BUILD, RUNNING, StepState.SUCCEEDED, fence=4)]))


async def test_an_open_state_ends_nothing(store: RunStore) -> None:
    run = await created(store)
    ref = await open_attempt(store, run)
    async with refused(store, run, ValueError, "cannot end"):
        await store.commit(run, 1, Transition(closings=[AttemptClosing(ref.attempt, 1, AttemptState.OPEN)]))
    async with refused(store, run, ValueError, "cannot end"):
        await store.commit(run, 1, Transition(run=RunClosing(RunState.RUNNING)))
    async with refused(store, run, ValueError, "cannot end"):
        await store.attempt_store(ref).finish(AttemptState.OPEN)


async def test_a_value_that_cannot_be_stored_leaves_nothing_behind(store: RunStore) -> None:
    run = await created(store)
    bad = NewEvent(EventType.STEP_FAILED, BUILD, {"ratio": float("nan")})
    async with refused(store, run, ValueRefused, "`ratio` is nan"):
        await store.commit(run, 1, Transition(steps=[start()], events=[STARTED, bad]))
    outputs = {"n": Inline(2**63)}
    async with refused(store, run, ValueRefused, "64 bits"):
        await store.commit(run, 1, Transition(steps=[start(), replace(start(TEST), outputs=outputs)]))
    async with refused(store, run, ValueRefused, "wake_in"):
        await store.commit(run, 1, Transition(steps=[replace(start(), wake_in=float("inf"))]))


async def test_one_of_many_drivers_wins_a_step(store: RunStore) -> None:
    run = await created(store)
    transitions = [Transition(steps=[start()], openings=[opening()], events=[STARTED]) for _ in range(20)]
    verdicts = await asyncio.gather(*(store.commit(run, 1, t) for t in transitions), return_exceptions=True)
    assert verdicts.count(None) == 1
    assert all(isinstance(verdict, Conflict) for verdict in verdicts if verdict is not None)
    assert len(await store.attempts(run)) == 1
    assert len(await store.events(run)) == 2


async def test_events_have_no_gap_when_fifty_transitions_are_written_at_once(store: RunStore) -> None:
    run = await created(store)

    async def write(number: int) -> None:
        events = [NewEvent(EventType.TURN_RECORDED, TEST, {"by": number, "nth": n}) for n in range(number % 3 + 1)]
        expect = PENDING if number % 2 else RUNNING  # the latter never holds
        steps = [StepChange(TEST, expect, StepState.PENDING)]
        await store.commit(run, 1, Transition(steps=steps, events=events))

    verdicts = await asyncio.gather(*map(write, range(50)), return_exceptions=True)
    assert verdicts.count(None) == 25
    events = await store.events(run)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert len(events) == 1 + sum(number % 3 + 1 for number in range(1, 50, 2))
    for before, event in pairwise(events):
        if event.data.get("nth"):
            assert event.data["by"] == before.data["by"], "the events of one transition stand together"
    assert (await store.snapshot(run)).run.event_seq == len(events)


async def test_events_are_read_on_from_where_a_reader_stopped(store: RunStore) -> None:
    run = await created(store)
    await store.commit(run, 1, Transition(events=[STARTED] * 5))
    assert [event.seq for event in await store.events(run, after=2, limit=3)] == [3, 4, 5]
    assert [event.seq for event in await store.events(run, after=5)] == [6]
    assert list(await store.events(run, after=6)) == []


async def test_a_run_that_is_not_there_takes_no_transition(store: RunStore) -> None:
    run = await created(store)
    with pytest.raises(NotFound):
        await store.commit(replace(run, run=uuid4()), 1, Transition(events=[STARTED]))
