"""Sessions with a name pass from run to run, and every session belongs to one open attempt at a time."""

import asyncio
from uuid import UUID, uuid4

import pytest

from pilothouse.records.queues import QueueName
from pilothouse.records.sessions import Session, ToolOutcome, named_session
from pilothouse.records.states import AttemptState
from pilothouse.records.values import ValueRefused
from pilothouse.store.errors import Conflict, NotFound, SessionBusy, Superseded
from pilothouse.store.ports import AttemptStore, RunStore
from tests.store.samples import TEST, attempt_of, created, message, open_attempt, refused, replaced, tool_call

NAME = "release notes"


async def opened(attempt: AttemptStore, name: str = NAME) -> Session:
    return await attempt.open_session(named_session(attempt.ref.run.tenant, name), name)


async def test_a_named_session_passes_from_run_to_run(store: RunStore) -> None:
    first = await attempt_of(store)
    session = (await opened(first)).id
    [entry] = await first.append(session, None, [message()])
    await first.finish(AttemptState.SUCCEEDED)
    second = await attempt_of(store, first.ref.run.tenant)
    found = await opened(second)
    assert (found.id, found.entries, found.leaf) == (session, (entry,), entry.id)
    [next] = await second.append(session, entry.id, [message()])
    assert (next.parent, next.seq, next.attempt) == (entry.id, 2, second.ref.attempt)
    for run in (first.ref.run, second.ref.run):
        assert [shown.entries for shown in await store.sessions(run)] == [(entry, next)]


async def test_a_session_is_one_open_attempts_at_a_time(store: RunStore) -> None:
    holder = await attempt_of(store)
    session = (await opened(holder)).id
    other = await attempt_of(store, holder.ref.run.tenant)
    async with refused(store, other.ref.run, SessionBusy, f"at work on session {session}"):
        await opened(other)
    assert (await opened(holder)).id == session, "its own holder opens it again"
    await holder.finish(AttemptState.RELEASED)
    assert (await opened(other)).id == session


async def test_two_steps_of_a_run_have_a_session_one_after_the_other(store: RunStore) -> None:
    run, session = await created(store), uuid4()
    build = store.attempt_store(await open_attempt(store, run))
    test = store.attempt_store(await open_attempt(store, run, TEST))
    await build.open_session(session)
    [turn] = await build.append(session, None, [message()])
    async with refused(store, run, SessionBusy):
        await test.open_session(session)
    for use in (
        test.append(session, turn.id, [message()]),
        test.intend(session, tool_call(turn.id)),
        test.record(session, ToolOutcome(turn.id, 0)),
        test.tool_calls(session, turn.id),
    ):
        async with refused(store, run, NotFound, "opened no session"):
            await use
    await build.finish(AttemptState.SUCCEEDED)
    assert (await test.open_session(session)).entries == (turn,)
    assert [found.id for found in await store.sessions(run)] == [session]


async def test_what_an_older_holder_writes_is_refused(store: RunStore) -> None:
    holder = await attempt_of(store)
    session = (await opened(holder)).id
    [turn] = await holder.append(session, None, [message()])
    await replaced(store, holder.ref)
    next = await attempt_of(store, holder.ref.run.tenant)
    await opened(next)
    async with refused(store, next.ref.run, Superseded):
        await holder.append(session, turn.id, [message()])
    await next.append(session, turn.id, [message()])


async def test_an_open_attempt_whose_session_another_took_over_cannot_be(store: RunStore) -> None:
    """Nobody takes a session from an open attempt, not even the run's own next steps, however often they try."""
    holder = await attempt_of(store)
    session = (await opened(holder)).id
    others = [await attempt_of(store, holder.ref.run.tenant) for _ in range(5)]
    verdicts = await asyncio.gather(*map(opened, others), return_exceptions=True)
    assert [type(verdict) for verdict in verdicts] == [SessionBusy] * 5
    await holder.append(session, None, [message()])


async def test_one_of_many_has_a_session_that_became_free(store: RunStore) -> None:
    holder = await attempt_of(store)
    session = (await opened(holder)).id
    others = [await attempt_of(store, holder.ref.run.tenant) for _ in range(10)]
    await holder.finish(AttemptState.FAILED)
    verdicts = await asyncio.gather(*map(opened, others), return_exceptions=True)
    assert sum(type(verdict) is SessionBusy for verdict in verdicts) == 9
    written = await asyncio.gather(
        *(other.append(session, None, [message()]) for other in others), return_exceptions=True
    )
    assert [isinstance(v, Session) for v in verdicts] == [not isinstance(w, BaseException) for w in written]


async def test_a_message_for_the_next_turn_passes_to_the_next_run(store: RunStore) -> None:
    first = await attempt_of(store)
    session, tenant = (await opened(first)).id, first.ref.run.tenant
    await first.finish(AttemptState.SUCCEEDED)
    item = await store.session_store().enqueue(tenant, session, QueueName.NEXT_TURN, {"content": "go on"})
    second = await attempt_of(store, tenant)
    await opened(second)
    assert list(await second.queued(session)) == [item]


async def test_a_session_without_a_name_stays_with_its_run_and_cannot_be_named(store: RunStore) -> None:
    ours = await attempt_of(store)
    session = named_session(ours.ref.run.tenant, NAME)
    await ours.open_session(session)
    await ours.finish(AttemptState.SUCCEEDED)
    theirs = await attempt_of(store, ours.ref.run.tenant)
    async with refused(store, theirs.ref.run, Conflict, "another run"):
        await opened(theirs)


async def test_a_named_session_is_opened_by_its_name(store: RunStore) -> None:
    first = await attempt_of(store)
    session = (await opened(first)).id
    assert (await first.open_session(session)).id == session, "its holder needs no name"
    await first.finish(AttemptState.SUCCEEDED)
    other = await attempt_of(store, first.ref.run.tenant)
    async with refused(store, other.ref.run, Conflict, "another run"):
        await other.open_session(session)


@pytest.mark.parametrize("name", ["", "x" * 254, "a\0b", "a\ud800"])
async def test_a_name_that_can_be_none_is_refused(store: RunStore, name: str) -> None:
    attempt = await attempt_of(store)
    for session in (uuid4(), UUID(int=0)):
        async with refused(store, attempt.ref.run, ValueRefused, "`name`"):
            await attempt.open_session(session, name)


async def test_a_name_that_is_another_sessions_is_refused(store: RunStore) -> None:
    attempt = await attempt_of(store)
    async with refused(store, attempt.ref.run, ValueRefused, "not the one that this tenant names 'release notes'"):
        await attempt.open_session(uuid4(), NAME)
    longest = "é" * 253
    assert (await opened(attempt, longest)).id == named_session(attempt.ref.run.tenant, longest)
