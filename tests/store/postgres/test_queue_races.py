"""A message for an attempt and the end of that attempt: whichever locks the attempt's row first decides, and the other
one waits for it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import TypeVar
from uuid import UUID, uuid4

import psycopg
import pytest

from pilothouse.records.queues import QueueName
from pilothouse.records.sessions import named_session
from pilothouse.records.states import AttemptState
from pilothouse.store.errors import Conflict, InvalidState, QueueNotEmpty, SessionBusy
from pilothouse.store.postgres import PostgresRunStore
from tests.store.postgres.test_fence_lock import until_waiting
from tests.store.samples import attempt_of, message, with_turn

T = TypeVar("T")

_ENQUEUE = b"SELECT * FROM enqueue(%(tenant)s, %(session)s, gen_random_uuid(), 'steer', '{}')"
_CANCEL = b"SELECT * FROM cancel_items(%(tenant)s, %(session)s, (SELECT array_agg(id) FROM queue_items))"
_OPEN = b"SELECT * FROM open_session(%(by)s, %(session)s, 'notes')"
_FINISH = (
    b"SELECT finish_attempt(ROW(tenant, run, id, fence)::attempt_key, %(outcome)s)"
    b" FROM attempts WHERE tenant = %(tenant)s AND state = 'Open'"
)
_SUCCESS = '{"state": "Succeeded", "outputs": "{}"}'


@asynccontextmanager
async def under_way(database: str, sql: bytes, **params: object) -> AsyncIterator[psycopg.AsyncConnection[object]]:
    """Another process has made this write and not yet committed it."""
    async with await psycopg.AsyncConnection.connect(database) as connection:
        await connection.execute(sql, params)
        yield connection


async def after(database: str, other: psycopg.AsyncConnection[object], write: Awaitable[T]) -> T:
    """What becomes of the write, which is begun before the other one is committed."""
    writing = asyncio.ensure_future(write)
    await until_waiting(database, writing)
    assert not writing.done(), "it did not wait"
    await other.commit()
    return await writing


async def test_an_attempt_waits_for_the_message_that_comes_first_and_does_not_succeed(
    postgres: PostgresRunStore, database: str
) -> None:
    attempt = await attempt_of(postgres)
    session, _ = await with_turn(attempt)
    async with under_way(database, _ENQUEUE, tenant=attempt.ref.run.tenant, session=session) as other:
        with pytest.raises(QueueNotEmpty):
            await after(database, other, attempt.finish(AttemptState.SUCCEEDED))
    [item] = await attempt.queued(session)
    assert item.queue is QueueName.STEER


async def test_a_message_waits_for_the_success_that_comes_first_and_is_refused(
    postgres: PostgresRunStore, database: str
) -> None:
    attempt = await attempt_of(postgres)
    session, _ = await with_turn(attempt)
    outside, tenant = postgres.session_store(), attempt.ref.run.tenant
    async with under_way(database, _FINISH, tenant=tenant, outcome=_SUCCESS) as other:
        with pytest.raises(InvalidState):
            await after(database, other, outside.enqueue(tenant, session, QueueName.STEER, {}))
    assert list(await outside.queued(tenant, session)) == []


async def test_a_message_for_the_next_turn_waits_for_no_attempt(postgres: PostgresRunStore, database: str) -> None:
    attempt = await attempt_of(postgres)
    session, _ = await with_turn(attempt)
    outside, tenant = postgres.session_store(), attempt.ref.run.tenant
    async with under_way(database, _FINISH, tenant=tenant, outcome=_SUCCESS):
        item = await outside.enqueue(tenant, session, QueueName.NEXT_TURN, {})
    assert list(await outside.queued(tenant, session)) == [item]


async def test_a_delivery_waits_for_a_cancellation_that_comes_first(postgres: PostgresRunStore, database: str) -> None:
    attempt = await attempt_of(postgres)
    session, turn = await with_turn(attempt)
    tenant = attempt.ref.run.tenant
    item = await postgres.session_store().enqueue(tenant, session, QueueName.STEER, {})
    async with under_way(database, _CANCEL, tenant=tenant, session=session) as other:
        with pytest.raises(Conflict, match="not all these messages wait"):
            await after(database, other, attempt.append(session, turn, [message()], consumed=[item.id]))


async def test_who_opens_a_session_waits_for_the_one_that_comes_first(
    postgres: PostgresRunStore, database: str
) -> None:
    first, second = [await attempt_of(postgres, tenant) for tenant in [uuid4()] * 2]
    session = named_session(first.ref.run.tenant, "notes")
    await postgres.session_store().import_session(first.ref.run.tenant, "notes", [])
    by = f"({first.ref.run.tenant},{first.ref.run.run},{first.ref.attempt},{first.ref.fence})"
    async with under_way(database, _OPEN, by=by, session=session) as other:
        with pytest.raises(SessionBusy):
            await after(database, other, second.open_session(session, "notes"))
    await first.append(session, None, [message()])


async def test_all_kinds_of_writers_at_once_end_without_a_deadlock(postgres: PostgresRunStore) -> None:
    attempt = await attempt_of(postgres)
    session, leaf = await with_turn(attempt)
    outside, tenant = postgres.session_store(), attempt.ref.run.tenant

    async def speak() -> list[UUID]:
        return [(await outside.enqueue(tenant, session, queue, {})).id for queue in [*QueueName] * 5]

    async def take_back() -> set[UUID]:
        """One that is taken back again is told of again."""
        waiting = [await outside.queued(tenant, session) for _ in range(5)]
        told = [await outside.cancel(tenant, session, [item.id for item in items[:1]]) for items in waiting]
        return {item.id for items in told for item in items}

    async def deliver() -> set[UUID]:
        nonlocal leaf
        delivered = set()
        for _ in range(15):
            for item in (await attempt.queued(session))[:1]:
                try:
                    [entry] = await attempt.append(session, leaf, [message()], consumed=[item.id])
                except Conflict:
                    continue
                leaf = entry.id
                delivered.add(item.id)
        return delivered

    said, back, delivered = await asyncio.gather(speak(), take_back(), deliver())
    left = {item.id for item in await attempt.clear(session, list(QueueName))}
    assert back | delivered | left == set(said)
    assert len(back) + len(delivered) + len(left) == len(said)
