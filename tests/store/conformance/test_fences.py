"""The attempt's row is the fence: a superseded attempt reads and writes nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from pilothouse.records.events import EventType, NewEvent
from pilothouse.records.failures import Failure, FailureCode
from pilothouse.records.queues import QueueName
from pilothouse.records.runs import AttemptRef
from pilothouse.records.sessions import ToolOutcome
from pilothouse.records.states import AttemptState, StepState
from pilothouse.records.values import Inline
from pilothouse.store.errors import Conflict, Superseded
from pilothouse.store.ports import AttemptStore, RunStore
from pilothouse.store.transitions import AttemptClosing, StepChange, Transition
from tests.store.samples import (
    BUILD,
    RUNNING,
    attempt_of,
    created,
    message,
    open_attempt,
    refused,
    replaced,
    start,
    tool_call,
    with_turn,
)

EVENT = NewEvent(EventType.TURN_RECORDED, BUILD)

Use = Callable[[AttemptStore, UUID, UUID], Awaitable[object]]

USES: dict[str, Use] = {
    "open_session": lambda attempt, session, turn: attempt.open_session(session),
    "open a new session": lambda attempt, session, turn: attempt.open_session(uuid4()),
    "append": lambda attempt, session, turn: attempt.append(session, turn, [message()], [EVENT]),
    "append without events": lambda attempt, session, turn: attempt.append(session, turn, [message()]),
    "queued": lambda attempt, session, turn: attempt.queued(session),
    "clear": lambda attempt, session, turn: attempt.clear(session, list(QueueName)),
    "tool_calls": lambda attempt, session, turn: attempt.tool_calls(session, turn),
    "intend": lambda attempt, session, turn: attempt.intend(session, tool_call(turn, ordinal=1), [EVENT]),
    "intend again": lambda attempt, session, turn: attempt.intend(session, tool_call(turn, idempotent=True)),
    "record": lambda attempt, session, turn: attempt.record(session, ToolOutcome(turn, 0), [EVENT]),
    "put_blob": lambda attempt, session, turn: attempt.put_blob(b"late"),
    "get_blob": lambda attempt, session, turn: attempt.get_blob("sha256:00"),
    "finish": lambda attempt, session, turn: attempt.finish(AttemptState.SUCCEEDED),
}

every_use = pytest.mark.parametrize("use", USES.values(), ids=USES.keys())


async def in_use(store: RunStore) -> tuple[AttemptStore, UUID, UUID]:
    attempt = await attempt_of(store)
    session, turn = await with_turn(attempt)
    await attempt.intend(session, tool_call(turn, idempotent=True))
    return attempt, session, turn


@every_use
async def test_a_replaced_attempt_is_superseded(store: RunStore, use: Use) -> None:
    attempt, session, turn = await in_use(store)
    await replaced(store, attempt.ref)
    async with refused(store, attempt.ref.run, Superseded, str(attempt.ref.attempt)):
        await use(attempt, session, turn)


@every_use
async def test_an_attempt_that_has_ended_is_superseded(store: RunStore, use: Use) -> None:
    attempt, session, turn = await in_use(store)
    await attempt.finish(AttemptState.FAILED)
    async with refused(store, attempt.ref.run, Superseded):
        await use(attempt, session, turn)


@every_use
async def test_an_attempt_with_another_fence_is_superseded(store: RunStore, use: Use) -> None:
    attempt, session, turn = await in_use(store)
    for fence in (0, 2):
        async with refused(store, attempt.ref.run, Superseded):
            await use(store.attempt_store(replace(attempt.ref, fence=fence)), session, turn)


@every_use
async def test_an_attempt_of_no_run_is_superseded(store: RunStore, use: Use) -> None:
    attempt, session, turn = await in_use(store)
    nowhere = replace(attempt.ref, run=replace(attempt.ref.run, run=uuid4()))
    async with refused(store, attempt.ref.run, Superseded):
        await use(store.attempt_store(nowhere), session, turn)


async def test_nothing_of_a_refused_blob_is_kept(store: RunStore) -> None:
    attempt, _, _ = await in_use(store)
    next = store.attempt_store(await replaced(store, attempt.ref))
    with pytest.raises(Superseded):
        await attempt.put_blob(b"late")
    ref = await next.put_blob(b"in time")
    assert await next.get_blob(ref.digest) == b"in time"


@pytest.mark.feature("B43")
async def test_an_attempt_ends_itself_and_the_driver_settles_the_step(store: RunStore) -> None:
    run = await created(store)
    await store.commit(run, 1, Transition(steps=[start()]))
    ref = await open_attempt(store, run)
    outputs, failure = {"text": Inline("hi")}, Failure(FailureCode.DEP, "the model is away")
    await store.attempt_store(ref).finish(AttemptState.FAILED, outputs, failure)
    snapshot = await store.snapshot(run)
    attempt = snapshot.attempts[next(iter(snapshot.attempts))]
    assert (attempt.state, attempt.outputs, attempt.failure) == (AttemptState.FAILED, outputs, failure)
    assert attempt.finished_at is not None
    assert snapshot.steps[attempt.step].state is StepState.RUNNING
    settled = StepChange(attempt.step, RUNNING, StepState.FAILED, fence=ref.fence, failure=failure)
    await store.commit(run, 1, Transition(steps=[settled]))


async def test_finishing_and_closing_at_once_has_one_verdict_two_hundred_times(store: RunStore) -> None:
    run, fence, finished = await created(store), 0, 0
    for _ in range(200):
        ref = await open_attempt(store, run, after=fence)
        fence = ref.fence
        by_itself, by_driver = await asyncio.gather(
            store.attempt_store(ref).finish(AttemptState.SUCCEEDED, {"n": Inline(fence)}),
            _cancel(store, ref),
            return_exceptions=True,
        )
        attempt = next(iter((await store.snapshot(run)).attempts.values()))
        if by_itself is None:
            finished += 1
            assert type(by_driver) is Conflict
            assert (attempt.state, attempt.outputs) == (AttemptState.SUCCEEDED, {"n": Inline(fence)})
        else:
            assert (type(by_itself), by_driver) == (Superseded, None)
            assert (attempt.state, attempt.outputs) == (AttemptState.CANCELLED, {})
    events = await store.events(run)
    assert len(events) == 1 + 200 - finished, "a refused closing leaves no event"


async def _cancel(store: RunStore, ref: AttemptRef) -> None:
    closing = AttemptClosing(ref.attempt, ref.fence, AttemptState.CANCELLED)
    await store.commit(ref.run, 1, Transition(closings=[closing], events=[EVENT]))


async def test_writing_and_closing_at_once_leaves_no_write_after_the_end(store: RunStore) -> None:
    run, fence = await created(store), 0
    for _ in range(40):
        ref = await open_attempt(store, run, after=fence)
        fence = ref.fence
        attempt = store.attempt_store(ref)
        session = uuid4()
        await attempt.open_session(session)
        written, _ = await asyncio.gather(
            attempt.append(session, None, [message()], [EVENT]), _cancel(store, ref), return_exceptions=True
        )
        entries = next(s.entries for s in await store.sessions(run) if s.id == session)
        assert len(entries) == (0 if isinstance(written, Superseded) else 1)
    seqs = [event.seq for event in await store.events(run)]
    assert seqs == list(range(1, len(seqs) + 1))
