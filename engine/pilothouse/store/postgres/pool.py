"""Connections to PostgreSQL: a small pool for short work, and connections of one's own for long holds."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self, TypeAlias

from psycopg import AsyncConnection, ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import DictRow, dict_row
from psycopg.types.string import TextLoader
from psycopg_pool import AsyncConnectionPool

from pilothouse.store.errors import StoreUnavailable, StoreUnusable
from pilothouse.store.postgres.meaning import translated

Connection: TypeAlias = AsyncConnection[DictRow]

OLDEST_SERVER = 150_000
"""PostgreSQL 15: the oldest that has what the tables use."""

_SERVER_SETTINGS = {
    "statement_timeout": "30s",
    "lock_timeout": "15s",
    "idle_in_transaction_session_timeout": "60s",
    "timezone": "UTC",
}
"""So that a stuck peer costs one failed call, never a wedged store."""

_CLIENT_SETTINGS = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "client_encoding": "utf8",
    "application_name": "pilothouse",
}

_WAIT = 5.0
"""Seconds that a call waits for a connection before it raises StoreUnavailable."""

_RECONNECT = 5.0
"""Seconds after which the pool gives up on a new connection. The next call asks for one afresh, so the
store is back at most a few seconds after its server is."""


class Pool:
    """The connections of one store. Every error of the driver leaves here as one of the store's."""

    def __init__(self, dsn: str, *, checked: bool = False) -> None:
        """`checked`: each connection is tried before it is given out, for one more round trip. So a caller who would
        not try again meets no connection that an outage has broken since."""
        self._dsn = dsn
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            with_settings(dsn),
            kwargs={"autocommit": True, "row_factory": dict_row},
            min_size=1,
            max_size=10,
            timeout=_WAIT,
            reconnect_timeout=_RECONNECT,
            configure=_configure,
            check=AsyncConnectionPool.check_connection if checked else None,
            open=False,
        )

    async def __aenter__(self) -> Self:
        await self._pool.open()
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self._pool.close()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection in autocommit mode."""
        try:
            with translated():
                async with self._pool.connection() as connection:
                    yield connection
        except StoreUnavailable:
            await self._pool.drain()
            raise

    async def connect(self) -> Connection:
        """A connection of one's own, outside the pool."""
        return await connect(self._dsn)

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[Connection]:
        """A connection of one's own, closed at the end."""
        async with alone(self._dsn) as connection:
            yield connection


async def connect(dsn: str) -> Connection:
    """Raises StoreUnavailable or, with a reason that the server gave, StoreUnusable."""
    with translated():
        connection = await AsyncConnection.connect(with_settings(dsn), autocommit=True, row_factory=dict_row)
    await _configure(connection)
    if connection.info.server_version < OLDEST_SERVER:
        await connection.close()
        raise StoreUnusable(f"the server is older than PostgreSQL {OLDEST_SERVER // 10_000}; use a newer one")
    return connection


@asynccontextmanager
async def alone(dsn: str) -> AsyncIterator[Connection]:
    """A connection outside any pool, closed at the end."""
    connection = await connect(dsn)
    try:
        with translated():
            yield connection
    finally:
        await connection.close()


def with_settings(dsn: str) -> str:
    """The DSN with our settings below its own. Raises StoreUnusable where it is no DSN."""
    try:
        given = conninfo_to_dict(dsn)
    except ProgrammingError:
        raise StoreUnusable("the DSN cannot be read; write it as postgresql://user@host/database") from None
    ours = " ".join(f"-c {name}={value}" for name, value in _SERVER_SETTINGS.items())
    options = f"{ours} {given.pop('options', None) or ''}".strip()
    return make_conninfo("", **(_CLIENT_SETTINGS | _present(given)), options=options)


def _present(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


async def _configure(connection: Connection) -> None:
    connection.adapters.register_loader("json", TextLoader)
