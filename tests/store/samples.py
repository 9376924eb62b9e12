"""Runs, attempts and sessions to test with, and how to see that nothing was written."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from pilothouse.records.events import EventType, NewEvent
from pilothouse.records.runs import AttemptRef, NewRun, NewStep, RunRef, StepId
from pilothouse.records.sessions import NewEntry, NewToolCall
from pilothouse.records.states import AttemptState, StepState
from pilothouse.store.ports import AttemptStore, RunStore
from pilothouse.store.transitions import AttemptClosing, AttemptOpening, StepChange, Transition

BUILD, TEST = StepId("build"), StepId("test")
PENDING, RUNNING = frozenset({StepState.PENDING}), frozenset({StepState.RUNNING})
STARTED = NewEvent(EventType.STEP_STARTED, BUILD, {"attempt": 1})


def new_run(tenant: UUID | None = None, **changes: Any) -> NewRun:
    run = NewRun(
        tenant=tenant or uuid4(),
        run=uuid4(),
        namespace="team-a",
        workflow="nightly",
        workflow_uid=uuid4(),
        key="sha256:1",
        closure={"steps": [{"name": "build"}, {"name": "test"}]},
        params={"branch": "main"},
        steps=[NewStep(BUILD, "runCommand"), NewStep(TEST, "invokeAgent")],
    )
    return replace(run, **changes)


async def created(store: RunStore, tenant: UUID | None = None) -> RunRef:
    return (await store.create_run(new_run(tenant))).ref


def opening(step: StepId = BUILD, after: int = 0, attempt: UUID | None = None) -> AttemptOpening:
    return AttemptOpening(step, attempt or uuid4(), after, number=after + 1, restart=0, nonce=f"nonce{after}")


def start(step: StepId = BUILD) -> StepChange:
    return StepChange(step, PENDING, StepState.RUNNING)


async def open_attempt(store: RunStore, run: RunRef, step: StepId = BUILD, after: int = 0) -> AttemptRef:
    opened = opening(step, after)
    await store.commit(run, 1, Transition(openings=[opened]))
    return AttemptRef(run, opened.attempt, after + 1)


async def replaced(store: RunStore, ref: AttemptRef) -> AttemptRef:
    """The next attempt of the same step, after this one was closed."""
    closing = AttemptClosing(ref.attempt, ref.fence, AttemptState.LOST)
    opened = opening(after=ref.fence)
    await store.commit(ref.run, 1, Transition(closings=[closing], openings=[opened]))
    return AttemptRef(ref.run, opened.attempt, ref.fence + 1)


async def successor(store: RunStore, attempt: AttemptStore, session: UUID) -> AttemptStore:
    """The store of the attempt that replaces this one and goes on with its session."""
    next = store.attempt_store(await replaced(store, attempt.ref))
    await next.open_session(session)
    return next


async def attempt_of(store: RunStore, tenant: UUID | None = None) -> AttemptStore:
    """The store of an open attempt of a new run."""
    return store.attempt_store(await open_attempt(store, await created(store, tenant)))


def message(text: str = "hello") -> NewEntry:
    return NewEntry(uuid4(), "message", {"role": "user", "content": text})


async def with_turn(attempt: AttemptStore) -> tuple[UUID, UUID]:
    """A session of the attempt and a turn in it."""
    session, turn = uuid4(), message("a turn")
    await attempt.open_session(session)
    await attempt.append(session, None, [turn])
    return session, turn.id


def tool_call(turn: UUID, **changes: Any) -> NewToolCall:
    call = NewToolCall(turn, 0, "call-1", "shell", b'{"command":"ls"}', idempotent=False)
    return replace(call, **changes)


@dataclass(frozen=True, slots=True)
class Everything:
    """All that the ports show of a run, but for the clock."""

    snapshot: object
    attempts: Sequence[object]
    events: Sequence[object]
    sessions: Sequence[object]


async def everything(store: RunStore, run: RunRef) -> Everything:
    snapshot = await store.snapshot(run)
    return Everything(
        (snapshot.run, snapshot.steps, snapshot.attempts),
        await store.attempts(run),
        await store.events(run),
        await store.sessions(run),
    )


@asynccontextmanager
async def refused(
    store: RunStore, run: RunRef, error: type[Exception], match: str | None = None
) -> AsyncIterator[None]:
    """What runs inside raises exactly that error and writes nothing."""
    before = await everything(store, run)
    with pytest.raises(error, match=match) as raised:
        yield
    assert raised.type is error
    assert await everything(store, run) == before
