"""A write of an attempt and the end of that attempt wait for each other, also where no event orders them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from pilothouse.records.queues import QueueName
from pilothouse.records.sessions import ToolOutcome
from pilothouse.store.errors import Superseded
from pilothouse.store.ports import AttemptStore
from pilothouse.store.postgres import PostgresRunStore
from tests.store.samples import attempt_of, message, refused, tool_call, with_turn

_CLOSE = b"UPDATE attempts SET state = 'Lost', finished_at = now()"
_WAITING = b"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"

Write = Callable[[AttemptStore, UUID, UUID], Awaitable[object]]

WRITES: dict[str, Write] = {
    "open_session": lambda attempt, session, turn: attempt.open_session(uuid4()),
    "append": lambda attempt, session, turn: attempt.append(session, turn, [message()]),
    "append with a result": lambda attempt, session, turn: attempt.append(
        session, turn, [message()], (), [ToolOutcome(turn, 0)]
    ),
    "clear": lambda attempt, session, turn: attempt.clear(session, list(QueueName)),
    "intend": lambda attempt, session, turn: attempt.intend(session, tool_call(turn, ordinal=1)),
    "record": lambda attempt, session, turn: attempt.record(session, ToolOutcome(turn, 0)),
    "put_blob": lambda attempt, session, turn: attempt.put_blob(b"late"),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
async def test_a_write_waits_for_a_closing_that_is_under_way(
    postgres: PostgresRunStore, database: str, write: Write
) -> None:
    attempt = await attempt_of(postgres)
    session, turn = await with_turn(attempt)
    await attempt.intend(session, tool_call(turn))
    async with await psycopg.AsyncConnection.connect(database) as closer:
        await closer.execute(_CLOSE)
        writing = asyncio.ensure_future(write(attempt, session, turn))
        await until_waiting(database, writing)
        await closer.commit()
    async with refused(postgres, attempt.ref.run, Superseded):
        await writing


async def until_waiting(database: str, writing: "asyncio.Future[Any]") -> None:
    """Returns once the write waits for a lock, or did not wait at all."""
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as watcher:
        while not writing.done():
            row = await (await watcher.execute(_WAITING)).fetchone()
            if row == (1,):
                return
