"""While the server is away work waits; once it is back, the same store goes on."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
import pytest_asyncio

from pilothouse.store.embedded.cluster import Cluster
from pilothouse.store.embedded.owner import Owner
from pilothouse.store.errors import StoreUnavailable
from pilothouse.store.postgres import PostgresRunStore, migrate, open_store
from pilothouse.store.transitions import Transition
from tests.store.fixtures import run_sql
from tests.store.samples import STARTED, created, everything


@dataclass
class Server:
    cluster: Cluster
    store: PostgresRunStore


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Server]:
    with TemporaryDirectory(prefix="ph-") as directory:
        cluster = Cluster.at(Path(directory) / "server", await Owner.find())
        await cluster.start()
        await migrate(cluster.dsn)
        async with open_store(cluster.dsn) as store:
            yield Server(cluster, store)
        await cluster.stop()


async def until_back(store: PostgresRunStore) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                await store.installation()
            except StoreUnavailable:
                continue
            return


async def test_an_outage_pauses_and_nothing_is_lost(server: Server) -> None:
    store = server.store
    run = await created(store)
    before = await everything(store, run)
    async with store.changes(run) as changes:
        await server.cluster.stop()
        for call in (
            store.commit(run, 1, Transition(events=[STARTED])),
            store.snapshot(run),
            store.put_blob(run.tenant, b"x"),
        ):
            with pytest.raises(StoreUnavailable, match="cannot be reached now"):
                await call
        with pytest.raises(StoreUnavailable):
            async with store.lead("a"):
                pytest.fail("led")
        await server.cluster.start()
        await until_back(store)
        await anext(changes)  # for what was missed
        assert await everything(store, run) == before
        await store.commit(run, 1, Transition(events=[STARTED]))
        await anext(changes)


async def test_a_store_is_not_opened_while_the_server_is_away(server: Server) -> None:
    await server.cluster.stop()
    with pytest.raises(StoreUnavailable):
        async with open_store(server.cluster.dsn):
            pytest.fail("opened")
    await server.cluster.start()


async def test_connections_that_the_server_ended_cost_at_most_one_call(
    postgres: PostgresRunStore, database: str
) -> None:
    run = await created(postgres)
    await asyncio.gather(*(postgres.snapshot(run) for _ in range(20)))
    await end_all_connections(database)
    with pytest.raises(StoreUnavailable):
        await postgres.snapshot(run)
    await postgres.snapshot(run)


async def test_leadership_is_free_again_once_its_connection_is_lost(postgres: PostgresRunStore, database: str) -> None:
    async with postgres.lead("a") as old:
        await end_all_connections(database)
        async with open_store(database) as other, other.lead("a") as new:
            assert new.epoch > old.epoch


async def end_all_connections(dsn: str) -> None:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


async def test_a_wake_survives_the_loss_of_the_listening_connection(postgres: PostgresRunStore, database: str) -> None:
    run = await created(postgres)
    async with postgres.changes(run) as changes:
        await run_sql(
            database,
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'",
        )
        await anext(changes)
