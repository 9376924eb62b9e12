"""Fixtures for every test that needs a store. A conftest imports what it uses from here.

`server_dsn`   one embedded PostgreSQL for the whole test session
`database`     the DSN of a fresh, migrated database in it
`postgres`     an open store on that database
`memory`       an empty store in memory
`…_over_http`  that store, whose attempts and sessions are reached through a gateway on a socket
"""

import itertools
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio

from pilothouse.store.embedded import embedded_server
from pilothouse.store.memory import MemoryRunStore
from pilothouse.store.ports import RunStore
from pilothouse.store.postgres import PostgresRunStore, migrate, open_store
from tests.store.people import over_http

_TEMPLATE = "template_pilothouse"
_numbers = itertools.count(1)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def server_dsn() -> AsyncIterator[str]:
    with tempfile.TemporaryDirectory(prefix="ph-") as directory:
        async with embedded_server(Path(directory) / "server") as dsn:
            # Nothing here outlives the server, so no test waits for the disk.
            await run_sql(dsn, "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
            await run_sql(dsn, f"CREATE DATABASE {_TEMPLATE}")
            await migrate(in_database(dsn, _TEMPLATE))
            yield dsn


@pytest_asyncio.fixture
async def database(server_dsn: str) -> AsyncIterator[str]:
    name = f"test_{os.getpid()}_{next(_numbers)}"
    await run_sql(server_dsn, f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE}")
    yield in_database(server_dsn, name)
    await run_sql(server_dsn, f"DROP DATABASE {name} WITH (FORCE)")


@pytest_asyncio.fixture
async def empty_database(server_dsn: str) -> AsyncIterator[str]:
    name = f"empty_{os.getpid()}_{next(_numbers)}"
    await run_sql(server_dsn, f"CREATE DATABASE {name}")
    yield in_database(server_dsn, name)
    await run_sql(server_dsn, f"DROP DATABASE {name} WITH (FORCE)")


@pytest_asyncio.fixture
async def postgres(database: str) -> AsyncIterator[PostgresRunStore]:
    async with open_store(database) as store:
        yield store


@pytest.fixture
def memory() -> MemoryRunStore:
    return MemoryRunStore()


@pytest_asyncio.fixture
async def memory_over_http(memory: MemoryRunStore) -> AsyncIterator[RunStore]:
    async with over_http(memory) as store:
        yield store


@pytest_asyncio.fixture
async def postgres_over_http(postgres: PostgresRunStore) -> AsyncIterator[RunStore]:
    async with over_http(postgres) as store:
        yield store


def in_database(dsn: str, name: str) -> str:
    return psycopg.conninfo.make_conninfo(dsn, dbname=name)


async def run_sql(dsn: str, *statements: str) -> None:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            await connection.execute(statement.encode())
