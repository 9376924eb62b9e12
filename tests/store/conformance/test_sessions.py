"""The session tree: entries are appended as a chain below the leaf, and the leaf moves."""

import asyncio
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from pilothouse.records.events import EventType, NewEvent
from pilothouse.records.sessions import NewEntry
from pilothouse.records.values import ValueRefused
from pilothouse.store.errors import Conflict, NotFound
from pilothouse.store.ports import AttemptStore, RunStore
from tests.store.samples import BUILD, attempt_of, created, message, open_attempt, refused, replaced

TURN = NewEvent(EventType.TURN_RECORDED, BUILD, {"turn": 1})


def leaf_entry(target: object) -> NewEntry:
    return NewEntry(uuid4(), "leaf", {"targetId": target})


async def opened(attempt: AttemptStore) -> UUID:
    session = uuid4()
    await attempt.open_session(session)
    return session


async def test_a_session_is_created_empty_and_then_found(store: RunStore) -> None:
    attempt, id = await attempt_of(store), uuid4()
    first = await attempt.open_session(id)
    assert (first.id, first.leaf, first.entries) == (id, None, ())
    entries = await attempt.append(id, None, [message("one"), message("two")])
    again = await attempt.open_session(id)
    assert (again.entries, again.leaf) == (tuple(entries), entries[-1].id)


@pytest.mark.feature("A43")
async def test_entries_hang_one_below_the_other(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session = await opened(attempt)
    new = [message("one"), message("two"), message("three")]
    one, two, three = await attempt.append(session, None, new)
    assert [entry.id for entry in (one, two, three)] == [entry.id for entry in new]
    assert (one.parent, two.parent, three.parent) == (None, one.id, two.id)
    assert [entry.seq for entry in (one, two, three)] == [1, 2, 3]
    assert (two.type, two.body, two.attempt) == ("message", new[1].body, attempt.ref.attempt)
    [four] = await attempt.append(session, three.id, [message("four")])
    assert (four.parent, four.seq) == (three.id, 4)


@pytest.mark.feature("A43")
async def test_a_leaf_entry_moves_the_leaf_and_the_next_entry_begins_a_branch(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session = await opened(attempt)
    one, two = await attempt.append(session, None, [message("one"), message("two")])
    moved, branch = await attempt.append(session, two.id, [leaf_entry(str(one.id)), message("branch")])
    assert (moved.parent, branch.parent) == (two.id, one.id)
    assert (await attempt.open_session(session)).leaf == branch.id
    await attempt.append(session, branch.id, [leaf_entry(None)])
    assert (await attempt.open_session(session)).leaf is None
    [root] = await attempt.append(session, None, [message("a second root")])
    assert root.parent is None


async def test_a_chain_hangs_below_the_leaf_that_the_writer_knew_or_nowhere(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session, run = await opened(attempt), attempt.ref.run
    [one, _] = await attempt.append(session, None, [message(), message()])
    for stale in (None, one.id, uuid4()):
        async with refused(store, run, Conflict, "leaf of session"):
            await attempt.append(session, stale, [message("late")], [TURN])


async def test_an_id_is_used_once_in_a_session(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session, first = await opened(attempt), message()
    await attempt.append(session, None, [first])
    async with refused(store, attempt.ref.run, Conflict, "same id"):
        await attempt.append(session, first.id, [message("new"), first], [TURN])
    twin = message()
    async with refused(store, attempt.ref.run, Conflict, "same id"):
        await attempt.append(session, first.id, [twin, twin])


async def test_the_leaf_moves_only_to_an_entry_of_the_session(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session, other = await opened(attempt), await opened(attempt)
    [elsewhere] = await attempt.append(other, None, [message()])
    [here] = await attempt.append(session, None, [message()])
    for target in (uuid4(), elsewhere.id):
        async with refused(store, attempt.ref.run, Conflict, "no entry"):
            await attempt.append(session, here.id, [message(), leaf_entry(str(target))])
    later = message()
    async with refused(store, attempt.ref.run, Conflict, "no entry"):
        await attempt.append(session, here.id, [leaf_entry(str(later.id)), later])
    for nonsense in ("here", 7, ["x"], ""):
        async with refused(store, attempt.ref.run, ValueRefused, "targetId"):
            await attempt.append(session, here.id, [leaf_entry(nonsense)])


async def test_appending_nothing_changes_nothing_but_checks(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session = await opened(attempt)
    assert list(await attempt.append(session, None, [])) == []
    async with refused(store, attempt.ref.run, Conflict):
        await attempt.append(session, uuid4(), [])


async def test_entries_and_events_are_written_together(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session = await opened(attempt)
    await attempt.append(session, None, [message()], [TURN, TURN])
    events = await store.events(attempt.ref.run)
    assert [(event.seq, event.type) for event in events[1:]] == [(2, TURN.type), (3, TURN.type)]


async def test_one_of_many_writers_moves_the_leaf(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session = await opened(attempt)
    writes = (attempt.append(session, None, [message(str(n))], [TURN]) for n in range(20))
    verdicts = await asyncio.gather(*writes, return_exceptions=True)
    assert sum(not isinstance(verdict, Exception) for verdict in verdicts) == 1
    assert sum(type(verdict) is Conflict for verdict in verdicts) == 19
    assert [event.seq for event in await store.events(attempt.ref.run)] == [1, 2]
    assert len((await attempt.open_session(session)).entries) == 1


async def test_a_session_belongs_to_one_run(store: RunStore) -> None:
    ours = await attempt_of(store)
    session = await opened(ours)
    await ours.append(session, None, [message()])
    theirs = store.attempt_store(await open_attempt(store, await created(store, ours.ref.run.tenant)))
    async with refused(store, theirs.ref.run, Conflict, "another run"):
        await theirs.open_session(session)
    async with refused(store, ours.ref.run, NotFound, "no session"):
        await theirs.append(session, None, [message()])
    assert list(await store.sessions(theirs.ref.run)) == []
    assert [found.id for found in await store.sessions(ours.ref.run)] == [session]


async def test_a_session_must_be_opened_first(store: RunStore) -> None:
    attempt = await attempt_of(store)
    async with refused(store, attempt.ref.run, NotFound, "no session"):
        await attempt.append(uuid4(), None, [message()])
    with pytest.raises(NotFound):
        await attempt.tool_calls(uuid4(), uuid4())


@pytest.mark.feature("B44")
async def test_the_next_attempt_of_a_step_goes_on_with_its_session(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session = await opened(attempt)
    entries = await attempt.append(session, None, [message(), message()])
    run = attempt.ref.run
    second = store.attempt_store(await replaced(store, attempt.ref))
    found = await second.open_session(session)
    assert found.entries == tuple(entries)
    [next] = await second.append(session, found.leaf, [message()])
    assert (next.parent, next.attempt) == (entries[-1].id, second.ref.attempt)
    [shown] = await store.sessions(run)
    assert shown.entries == (*entries, next)


async def test_a_body_that_cannot_be_stored_is_refused(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session = await opened(attempt)
    bad = NewEntry(uuid4(), "message", {"content": {1: "x"}})
    async with refused(store, attempt.ref.run, ValueRefused, "keys must be strings"):
        await attempt.append(session, None, [message(), bad], [TURN])
    async with refused(store, attempt.ref.run, ValueRefused, "NUL"):
        await attempt.append(session, None, [replace(message(), type="mes\0sage")])
