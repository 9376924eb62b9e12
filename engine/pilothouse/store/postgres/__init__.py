"""The store on PostgreSQL 15 or newer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pilothouse.store.postgres.migrate import migrate
from pilothouse.store.postgres.pool import Pool, alone
from pilothouse.store.postgres.runs import PostgresRunStore
from pilothouse.store.postgres.schema import check_usable, installation_of

__all__ = ["PostgresRunStore", "installation_of", "migrate", "open_store"]


@asynccontextmanager
async def open_store(dsn: str) -> AsyncIterator[PostgresRunStore]:
    """The store of a migrated database. Raises StoreUnavailable where the server is away, StoreUnusable
    where it refuses the DSN or the schema is not one that this version works with."""
    async with alone(dsn) as connection:
        await check_usable(connection)
    async with Pool(dsn) as pool, PostgresRunStore(pool) as store:
        yield store
