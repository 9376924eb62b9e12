"""The connection that listens, and those who give up on it."""

import asyncio

import psycopg
import pytest

from pilothouse.store.postgres import PostgresRunStore
from tests.store.samples import created


async def test_who_gives_up_while_the_connection_is_made_leaves_none_behind(
    postgres: PostgresRunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, made = await created(postgres), asyncio.Queue[psycopg.AsyncConnection]()

    async def stuck(connection: psycopg.AsyncConnection, query: str) -> None:
        assert query == "LISTEN pilothouse"
        made.put_nowait(connection)
        await asyncio.Event().wait()

    async def subscribe() -> None:
        async with postgres.changes(run):
            pass

    monkeypatch.setattr(psycopg.AsyncConnection, "execute", stuck)
    subscribing = asyncio.create_task(subscribe())
    connection = await made.get()
    subscribing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await subscribing
    assert connection.closed
