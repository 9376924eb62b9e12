"""Sessions as those see them who are outside of every attempt."""

from uuid import uuid4

import pytest

from pilothouse.records.queues import QueueName
from pilothouse.records.runs import RunName
from pilothouse.records.sessions import FROM_OUTSIDE, NewEntry, SessionHead, named_session
from pilothouse.records.states import AttemptState
from pilothouse.records.values import ValueRefused
from pilothouse.store.errors import Conflict, NotFound
from pilothouse.store.ports import RunStore
from tests.store.samples import attempt_of, message, with_turn

STEER, NEXT_TURN = QueueName.STEER, QueueName.NEXT_TURN


async def test_sessions_are_listed_newest_first_in_pages(store: RunStore) -> None:
    attempt = await attempt_of(store)
    outside, tenant = store.session_store(), attempt.ref.run.tenant
    assert list(await outside.sessions(tenant)) == []
    ids = [(await with_turn(attempt))[0] for _ in range(3)]
    ids.append(await outside.import_session(tenant, "notes", []))
    heads = await outside.sessions(tenant)
    assert [head.id for head in heads] == ids[::-1]
    assert [head.name for head in heads] == ["notes", None, None, None]
    assert [head.holder for head in heads] == [None, *[attempt.ref] * 3]
    assert list(await outside.sessions(tenant, limit=2)) == list(heads[:2])
    assert list(await outside.sessions(tenant, before=ids[2], limit=1)) == [heads[2]]
    assert list(await outside.sessions(tenant, before=ids[0])) == []
    assert list(await outside.sessions(tenant, before=uuid4())) == []


async def test_a_line_of_the_list_tells_how_the_session_stands(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session, turn = await with_turn(attempt)
    outside, tenant = store.session_store(), attempt.ref.run.tenant
    [head] = await outside.sessions(tenant)
    run = (await store.snapshot(attempt.ref.run)).run
    name = RunName(run.ref, run.number, run.namespace, run.workflow)
    [entry] = await outside.entries(tenant, session)
    assert head == SessionHead(session, None, turn, 1, head.created_at, entry.at, attempt.ref, name, {})
    assert await outside.session(tenant, session) == head
    items = [await outside.enqueue(tenant, session, queue, {}) for queue in (STEER, NEXT_TURN, STEER)]
    written = await attempt.append(session, turn, [message(), message()], consumed=[items[0].id])
    await attempt.finish(AttemptState.FAILED)
    [head] = await outside.sessions(tenant)
    assert (head.entries, head.holder, head.changed_at) == (3, None, written[-1].at)
    assert head.waiting == {STEER: 1, NEXT_TURN: 1}


async def test_a_line_of_the_list_names_the_newest_run_that_had_the_session(store: RunStore) -> None:
    tenant, outside = uuid4(), store.session_store()
    session = await outside.import_session(tenant, "notes", [])
    head = await outside.session(tenant, session)
    assert (head.name, head.run, head.changed_at) == ("notes", None, head.created_at)
    for number in (1, 2):
        attempt = await attempt_of(store, tenant)
        await attempt.open_session(session, "notes")
        await attempt.finish(AttemptState.SUCCEEDED)
        head = await outside.session(tenant, session)
        assert head.run is not None
        assert (head.run.ref, head.run.number) == (attempt.ref.run, number)


async def test_entries_are_read_in_order_and_in_pages(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session, turn = await with_turn(attempt)
    await attempt.append(session, turn, [message(), message()])
    entries = (await attempt.open_session(session)).entries
    outside, tenant = store.session_store(), attempt.ref.run.tenant
    assert tuple(await outside.entries(tenant, session)) == entries
    assert tuple(await outside.entries(tenant, session, after=1, limit=1)) == entries[1:2]
    assert list(await outside.entries(tenant, session, after=3)) == []


async def test_an_imported_session_is_the_tenants(store: RunStore) -> None:
    attempt = await attempt_of(store)
    outside, tenant = store.session_store(), attempt.ref.run.tenant
    one, two = message("one"), message("two")
    branch = [one, two, NewEntry(uuid4(), "leaf", {"targetId": str(one.id)}), message("branch")]
    session = await outside.import_session(tenant, "notes", branch)
    assert session == named_session(tenant, "notes")
    found = await attempt.open_session(session, "notes")
    assert [(entry.id, entry.type, entry.body) for entry in found.entries] == [(e.id, e.type, e.body) for e in branch]
    assert [entry.parent for entry in found.entries] == [None, one.id, two.id, one.id]
    assert [entry.seq for entry in found.entries] == [1, 2, 3, 4]
    assert {entry.attempt for entry in found.entries} == {FROM_OUTSIDE}
    assert found.leaf == branch[-1].id
    await attempt.append(session, found.leaf, [message()])


async def test_a_session_is_imported_whole_or_not_at_all(store: RunStore) -> None:
    attempt = await attempt_of(store)
    outside, tenant, one = store.session_store(), attempt.ref.run.tenant, message()
    nowhere, later = [NewEntry(uuid4(), "leaf", {"targetId": str(id)}) for id in (uuid4(), one.id)]
    for entries, says in [([one, one], "same id"), ([one, nowhere], "no entry"), ([later, one], f"no entry {one.id}")]:
        with pytest.raises(Conflict, match=says):
            await outside.import_session(tenant, "notes", entries)
    with pytest.raises(ValueRefused, match="keys must be strings"):
        await outside.import_session(tenant, "notes", [one, NewEntry(uuid4(), "message", {"content": {1: 1}})])
    for name in ("", "x" * 254, "a\0"):
        with pytest.raises(ValueRefused, match="`name`"):
            await outside.import_session(tenant, name, [one])
    assert list(await outside.sessions(tenant)) == []


async def test_no_import_goes_into_a_session_that_is_there(store: RunStore) -> None:
    attempt = await attempt_of(store)
    outside, tenant = store.session_store(), attempt.ref.run.tenant
    session = await outside.import_session(tenant, "notes", [message()])
    with pytest.raises(Conflict, match="there is a session 'notes' already"):
        await outside.import_session(tenant, "notes", [message()])
    assert len(await outside.entries(tenant, session)) == 1


async def test_a_session_that_is_not_there_is_not_found(store: RunStore) -> None:
    outside, tenant = store.session_store(), uuid4()
    for use in (
        outside.session(tenant, uuid4()),
        outside.entries(tenant, uuid4()),
        outside.queued(tenant, uuid4()),
        outside.cancel(tenant, uuid4(), []),
    ):
        with pytest.raises(NotFound, match="this tenant has no session"):
            await use
