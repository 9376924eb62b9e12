"""Two tenants that use the very same ids see, and change, nothing of each other."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from uuid import UUID, uuid4

import pytest

from pilothouse.records.events import EventType, NewEvent
from pilothouse.records.queues import QueueName
from pilothouse.records.runs import AttemptRef, RunRef
from pilothouse.records.sessions import ToolOutcome, named_session
from pilothouse.records.states import AttemptState, RunState, Shutdown
from pilothouse.records.values import ValueRefused, digest
from pilothouse.store.errors import InvalidState, NotFound, QueueNotEmpty, Superseded
from pilothouse.store.ports import AttemptStore, RunStore
from pilothouse.store.transitions import RunClosing, Transition
from tests.store.samples import Everything, everything, message, new_run, opening, start, tool_call

ITEM = {queue: uuid4() for queue in QueueName}
NOTED = NewEvent(EventType.TURN_RECORDED)


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant's run; all its ids but the tenant's own are shared with the other tenant."""

    run: RunRef
    attempt: AttemptStore
    session: UUID
    turn: UUID


async def two_tenants(store: RunStore) -> tuple[Tenant, Tenant]:
    run, attempt, session, turn = uuid4(), uuid4(), uuid4(), message()
    tenants = []
    for tenant in (uuid4(), uuid4()):
        ref = (await store.create_run(new_run(tenant, run=run))).ref
        await store.commit(ref, 1, Transition(openings=[opening(attempt=attempt)]))
        port = store.attempt_store(AttemptRef(ref, attempt, 1))
        await port.open_session(session)
        await port.append(session, None, [turn])
        await port.intend(session, tool_call(turn.id))
        for queue in QueueName:
            await store.session_store().enqueue(tenant, session, queue, {"content": queue}, ITEM[queue])
        tenants.append(Tenant(ref, port, session, turn.id))
    return tenants[0], tenants[1]


Write = Callable[[RunStore, Tenant], Awaitable[object]]

WRITES: dict[str, Write] = {
    "create_run": lambda store, t: store.create_run(new_run(t.run.tenant)),
    "commit a step": lambda store, t: store.commit(t.run, 7, Transition(steps=[start()], events=[NOTED])),
    "commit an opening": lambda store, t: store.commit(t.run, 7, Transition(openings=[opening(start().id, 1)])),
    "commit an end": lambda store, t: store.commit(t.run, 7, Transition(run=RunClosing(RunState.FAILED))),
    "request_shutdown": lambda store, t: store.request_shutdown(t.run, Shutdown.CANCEL),
    "open_session": lambda store, t: t.attempt.open_session(uuid4()),
    "append": lambda store, t: t.attempt.append(t.session, t.turn, [message()], [NOTED]),
    "append with a result": lambda store, t: t.attempt.append(
        t.session, t.turn, [message()], [NOTED], [ToolOutcome(t.turn, 0, {"a": "x" * 70_000})]
    ),
    "intend": lambda store, t: t.attempt.intend(t.session, tool_call(t.turn, ordinal=1), [NOTED]),
    "record": lambda store, t: t.attempt.record(t.session, ToolOutcome(t.turn, 0, {"a": 1}), [NOTED]),
    "record a blob": lambda store, t: t.attempt.record(t.session, ToolOutcome(t.turn, 0, {"a": "x" * 70_000})),
    "append a message of a queue": lambda store, t: t.attempt.append(
        t.session, t.turn, [message()], consumed=[ITEM[QueueName.STEER]]
    ),
    "clear": lambda store, t: t.attempt.clear(t.session, list(QueueName)),
    "enqueue": lambda store, t: store.session_store().enqueue(t.run.tenant, t.session, QueueName.STEER, {"a": 1}),
    "cancel": lambda store, t: store.session_store().cancel(t.run.tenant, t.session, list(ITEM.values())),
    "import_session": lambda store, t: store.session_store().import_session(t.run.tenant, "notes", [message()]),
    "open_session by name": lambda store, t: t.attempt.open_session(named_session(t.run.tenant, "notes"), "notes"),
    "finish": lambda store, t: t.attempt.finish(AttemptState.FAILED),
    "put_blob": lambda store, t: store.put_blob(t.run.tenant, b"bytes"),
    "put_blob of an attempt": lambda store, t: t.attempt.put_blob(b"bytes"),
}


async def all_of(store: RunStore, tenant: Tenant) -> tuple[Everything, *tuple[object, ...]]:
    outside = store.session_store()
    return (
        await everything(store, tenant.run),
        await store.runs(tenant.run.tenant),
        await tenant.attempt.tool_calls(tenant.session, tenant.turn),
        await tenant.attempt.queued(tenant.session),
        await outside.sessions(tenant.run.tenant),
        await outside.queued(tenant.run.tenant, tenant.session),
    )


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
async def test_a_write_of_one_tenant_changes_nothing_of_the_other(store: RunStore, write: Write) -> None:
    ours, theirs = await two_tenants(store)
    if write is WRITES["commit an opening"]:
        await ours.attempt.finish(AttemptState.FAILED)
    before = await all_of(store, theirs)
    await write(store, ours)
    assert await all_of(store, theirs) == before
    with pytest.raises(NotFound):
        await store.get_blob(theirs.run.tenant, digest(b"bytes"))


async def test_reads_show_only_the_tenants_own(store: RunStore) -> None:
    ours, theirs = await two_tenants(store)
    await ours.attempt.append(ours.session, ours.turn, [message()], [NOTED])
    assert [run.ref for run in await store.runs(ours.run.tenant)] == [ours.run]
    assert {run.ref for run in await store.runs()} == {ours.run, theirs.run}
    shown = await everything(store, theirs.run)
    assert len(shown.events) == 1
    assert [attempt.ref.run for attempt in await store.attempts(theirs.run)] == [theirs.run]
    [session] = await store.sessions(theirs.run)
    assert [entry.id for entry in session.entries] == [theirs.turn]
    assert len((await theirs.attempt.open_session(theirs.session)).entries) == 1
    await ours.attempt.clear(ours.session, list(QueueName))
    outside, tenant = store.session_store(), theirs.run.tenant
    assert [item.id for item in await outside.queued(tenant, theirs.session)] == list(ITEM.values())
    assert [item.id for item in await theirs.attempt.queued(theirs.session)] == list(ITEM.values())
    assert [entry.id for entry in await outside.entries(tenant, theirs.session)] == [theirs.turn]
    [head] = await outside.sessions(tenant)
    assert (head.id, head.entries, head.holder) == (theirs.session, 1, theirs.attempt.ref)
    assert head.run is not None
    assert (head.run.ref, head.waiting) == (theirs.run, dict.fromkeys(QueueName, 1))
    assert await outside.session(tenant, theirs.session) == head


async def test_a_session_of_one_tenant_is_not_there_for_another(store: RunStore) -> None:
    ours, _ = await two_tenants(store)
    outside, stranger = store.session_store(), uuid4()
    assert list(await outside.sessions(stranger)) == []
    assert list(await outside.sessions(stranger, before=ours.session)) == []
    for use in (
        outside.session(stranger, ours.session),
        outside.entries(stranger, ours.session),
        outside.queued(stranger, ours.session),
        outside.cancel(stranger, ours.session, list(ITEM.values())),
        outside.enqueue(stranger, ours.session, QueueName.NEXT_TURN, {}),
        outside.enqueue(
            stranger, ours.session, QueueName.NEXT_TURN, {"content": "nextTurn"}, ITEM[QueueName.NEXT_TURN]
        ),
    ):
        with pytest.raises(NotFound, match="this tenant has no session"):
            await use


async def test_messages_and_attempts_of_one_tenant_count_for_that_tenant_alone(store: RunStore) -> None:
    ours, theirs = await two_tenants(store)
    await ours.attempt.clear(ours.session, list(QueueName))
    await ours.attempt.finish(AttemptState.SUCCEEDED)
    with pytest.raises(InvalidState):
        await store.session_store().enqueue(ours.run.tenant, ours.session, QueueName.STEER, {})
    with pytest.raises(QueueNotEmpty):
        await theirs.attempt.finish(AttemptState.SUCCEEDED)


async def test_the_sessions_of_one_name_are_two_in_two_tenants(store: RunStore) -> None:
    ours, theirs = await two_tenants(store)
    for tenant in (ours, theirs):
        opened = await tenant.attempt.open_session(named_session(tenant.run.tenant, "notes"), "notes")
        await tenant.attempt.append(opened.id, None, [message()])
    assert named_session(ours.run.tenant, "notes") != named_session(theirs.run.tenant, "notes")
    with pytest.raises(ValueRefused, match="not the one"):
        await ours.attempt.open_session(named_session(theirs.run.tenant, "notes"), "notes")
    assert (await ours.attempt.open_session(named_session(theirs.run.tenant, "notes"))).entries == ()


async def test_the_ids_of_one_tenant_open_nothing_for_another(store: RunStore) -> None:
    ours = await store.create_run(new_run())
    stranger = uuid4()
    foreign = RunRef(stranger, ours.ref.run)
    with pytest.raises(NotFound):
        await store.snapshot(foreign)
    with pytest.raises(NotFound):
        await store.commit(foreign, 1, Transition(steps=[start()]))
    with pytest.raises(NotFound):
        await store.request_shutdown(foreign, Shutdown.STOP)
    for rows in (await store.events(foreign), await store.attempts(foreign), await store.sessions(foreign)):
        assert list(rows) == []
    await store.commit(ours.ref, 1, Transition(openings=[opened := opening()]))
    ref = AttemptRef(ours.ref, opened.attempt, 1)
    with pytest.raises(Superseded):
        await store.attempt_store(replace(ref, run=foreign)).finish(AttemptState.SUCCEEDED)


async def test_a_blob_of_the_same_bytes_is_another_tenants_own(store: RunStore) -> None:
    ours, theirs = await two_tenants(store)
    ref = await store.put_blob(ours.run.tenant, b"secret")
    for read in (store.get_blob(theirs.run.tenant, ref.digest), theirs.attempt.get_blob(ref.digest)):
        with pytest.raises(NotFound, match="no blob"):
            await read
    assert await ours.attempt.get_blob(ref.digest) == b"secret"
