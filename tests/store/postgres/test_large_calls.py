"""What a connection carried, its buffers keep: so one that carried much is not used again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from pilothouse.store.postgres.calls import fetch
from pilothouse.store.postgres.pool import Connection, Pool, alone

MiB = 1024 * 1024


class OneConnection:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        yield self._connection


@pytest.mark.parametrize(("size", "again"), [(1, True), (3 * MiB, True), (5 * MiB, False)])
@pytest.mark.parametrize("sent", [True, False], ids=["sent", "received"])
async def test_a_connection_that_carried_much_is_not_used_again(
    database: str, size: int, again: bool, sent: bool
) -> None:
    async with alone(database) as connection:
        pool = cast(Pool, OneConnection(connection))
        if sent:
            await fetch(pool, b"SELECT length(%(data)s::text) AS size", {"data": "x" * size})
        else:
            [row] = await fetch(pool, b"SELECT repeat('x', %(size)s) AS data", {"size": size})
            assert len(row["data"]) == size
        assert connection.closed is not again
