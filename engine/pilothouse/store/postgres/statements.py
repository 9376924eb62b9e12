"""Statements that travel together, and what it means when one of them finds no row."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from psycopg import AsyncCursor, AsyncPipeline, Error, IntegrityError
from psycopg.pq.abc import PGconn
from psycopg.rows import DictRow
from psycopg.waiting import Ready, Wait

from pilothouse.records.events import NewEvent
from pilothouse.records.runs import RunRef
from pilothouse.store.errors import StoreError
from pilothouse.store.postgres.pool import Connection, Pool
from pilothouse.store.postgres.queries import queries
from pilothouse.store.rows import event_row

_TRANSITIONS = queries("transitions")


@dataclass(frozen=True, slots=True)
class Statement:
    """One query. Where `refusal` is given, the query is a guard: it must find exactly `rows` rows."""

    sql: bytes
    params: Mapping[str, Any] = field(default_factory=dict)
    refusal: StoreError | None = None
    rows: int = 1


async def transact(pool: Pool, statements: Sequence[Statement]) -> list[list[DictRow]]:
    """Runs the statements as one transaction and returns the rows of each. Raises the refusal of the first
    guard that did not hold, and then nothing is written."""
    async with pool.connection() as connection, connection.pipeline() as pipeline, connection.transaction():
        return await _run(connection, pipeline, statements)


async def fetch(pool: Pool, statements: Sequence[Statement]) -> list[list[DictRow]]:
    """The same for statements that need no common transaction."""
    async with pool.connection() as connection, connection.pipeline() as pipeline:
        return await _run(connection, pipeline, statements)


async def _run(connection: Connection, pipeline: AsyncPipeline, statements: Sequence[Statement]) -> list[list[DictRow]]:
    """Sends all statements without waiting for the ones before, then reads their verdicts in order."""
    cursors: list[AsyncCursor[DictRow]] = []
    try:
        for statement in statements:
            cursors.append(cursor := connection.cursor())
            await cursor.execute(statement.sql, statement.params)
        await _sync(connection, pipeline)
    except IntegrityError:
        with suppress(Error):
            await _sync(connection, pipeline)
        # A statement may fail just because a guard before it did not hold: the guard says why.
        _check_guards(statements, cursors)
        raise
    _check_guards(statements, cursors)
    return [await cursor.fetchall() if cursor.description else [] for cursor in cursors]


async def _sync(connection: Connection, pipeline: AsyncPipeline) -> None:
    """`pipeline.sync`, but safe for statements larger than the socket's buffer: psycopg 3.3 leaves the rest
    of such a statement unsent and waits for its result for ever (as in its issue 685)."""
    await connection.wait(_flush(connection.pgconn))
    await pipeline.sync()


def _flush(connection: PGconn) -> Generator[Wait, Ready | int, None]:
    while connection.flush():
        ready = yield Wait.RW
        if ready & Ready.R:
            connection.consume_input()


def _check_guards(statements: Sequence[Statement], cursors: Sequence[AsyncCursor[DictRow]]) -> None:
    for statement, cursor in zip(statements, cursors, strict=False):
        if cursor.rowcount < 0:
            return  # not reached
        if statement.refusal is not None and cursor.rowcount != statement.rows:
            raise statement.refusal


def run_params(run: RunRef) -> dict[str, Any]:
    return {"tenant": run.tenant, "run": run.run}


def event_statements(run: RunRef, events: Sequence[NewEvent]) -> list[Statement]:
    """Writes events under the numbers by which a statement before has advanced the run's counter."""
    if not events:
        return []
    rows = [event_row(event) for event in events]
    columns = {
        "types": [row["type"] for row in rows],
        "paths": [row["path"] for row in rows],
        "indexes": [row["index"] for row in rows],
        "datas": [row["data"] for row in rows],
    }
    return [Statement(_TRANSITIONS["insert_events"], run_params(run) | columns | {"events": len(rows)})]
