"""Calls of the functions in the database that write: each is one statement, and so one transaction.

Rows travel as JSON. What goes into a json column is encoded before that, so it is a string in there, and the server
looks at nothing inside it.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from psycopg import AsyncClientCursor, Error
from psycopg.rows import DictRow

from pilothouse.records.runs import RunRef
from pilothouse.store.errors import StoreError
from pilothouse.store.pages import Page
from pilothouse.store.postgres.pool import Pool
from pilothouse.store.rows import Row

Refusals: TypeAlias = Mapping[str, Callable[[int], StoreError]]
"""What each refusal of a function means. It is told the place of the refused item in its list, 0 if there is none."""

_REFUSED = "PH001"
"""The SQLSTATE with which our functions refuse."""

_KEPT = 4 * 1024 * 1024
"""Bytes of one value with which a connection is used again: libpq never gives back what its buffers grew to, so
ten connections that each carried 64 MiB once would hold 640 for good."""

_SIZED = (str, bytes)

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


async def call(
    pool: Pool, sql: bytes, params: Mapping[str, Any], refusals: Refusals, *, binary: bool = False
) -> list[DictRow]:
    """The rows that the function returns. Raises what its refusal means, and then nothing is written."""
    try:
        return await fetch(pool, sql, params, binary=binary)
    except Error as error:
        if error.sqlstate != _REFUSED:
            raise
        refuse = refusals[error.diag.message_primary or ""]
        raise refuse(int(error.diag.message_detail or 0)) from None


async def fetch(pool: Pool, sql: bytes, params: Mapping[str, Any], *, binary: bool = False) -> list[DictRow]:
    """The rows of one statement that refuses nothing. `binary` is for rows of bytes, which take twice the room as
    text."""
    async with pool.connection() as connection:
        cursor = await connection.execute(sql, params, binary=binary)
        rows = await cursor.fetchall() if cursor.description else []
        if _large(params.values()) or any(_large(row.values()) for row in rows):
            await connection.close()
        return rows


def _large(values: Iterable[object]) -> bool:
    return any(isinstance(value, _SIZED) and len(value) > _KEPT for value in values)


async def fetch_together(pool: Pool, sql: bytes, params: Mapping[str, Any]) -> list[list[DictRow]]:
    """The rows of each query among several statements, which travel as one message."""
    async with pool.connection() as connection:
        cursor = AsyncClientCursor(connection)
        await cursor.execute(sql, params)
        found = []
        more: bool | None = True
        while more:
            if cursor.description:
                found.append(await cursor.fetchall())
            more = cursor.nextset()
        return found


def page_of(rows: Sequence[DictRow], large: str) -> Page:
    """A page that was measured by the server: of a row that has no place, `large` is null and `size` tells its size."""
    fitting = [row for row in rows if row[large] is not None]
    return Page(fitting, rows[-1]["size"] if len(fitting) < len(rows) else 0)


def row_json(row: Row) -> str:
    return _ENCODER.encode(row)


def rows_json(rows: Iterable[Row]) -> str:
    """The rows as one list, each with its `place` in it."""
    return _ENCODER.encode([{"place": place, **row} for place, row in enumerate(rows)])


def run_params(run: RunRef) -> dict[str, Any]:
    return {"tenant": run.tenant, "run": run.run}


def digest_param(digest: str) -> str:
    """The digest; for what no column can hold, one that no blob has."""
    return digest if digest.isprintable() else ""
