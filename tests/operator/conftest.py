"""A cluster in memory before the operator, with each kind of store behind it."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from pilothouse.store.ports import RunStore
from pilothouse.store.postgres import PostgresRunStore, migrate, open_store
from tests.operator.clock import Clock, clock
from tests.operator.desk import Desk, desk_on
from tests.store.fixtures import database, empty_database, in_database, memory, run_sql, server_dsn

__all__ = ["clock", "database", "empty_database", "memory", "server_dsn"]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_database(server_dsn: str) -> str:
    """One database for all of these tests: making one for each takes longer than most of them."""
    await run_sql(server_dsn, "CREATE DATABASE operator")
    dsn = in_database(server_dsn, "operator")
    await migrate(dsn)
    return dsn


@pytest.fixture
async def postgres(shared_database: str) -> AsyncIterator[PostgresRunStore]:
    await run_sql(shared_database, "DELETE FROM runs")
    async with open_store(shared_database) as store:
        yield store


@pytest.fixture(params=["memory", "postgres"])
def store(request: pytest.FixtureRequest) -> RunStore:
    store: RunStore = request.getfixturevalue(request.param)
    return store


@pytest.fixture
async def desk(store: RunStore, clock: Clock) -> AsyncIterator[Desk]:
    async with desk_on(store, clock) as desk:
        yield desk
