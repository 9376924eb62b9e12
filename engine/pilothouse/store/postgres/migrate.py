"""Brings a database to this version of the schema."""

from collections.abc import Sequence

from pilothouse.store.postgres.pool import Connection, alone
from pilothouse.store.postgres.schema import Migration, applied, check_known, shipped

_TABLE = b"""
CREATE TABLE IF NOT EXISTS migrations (
    version    integer     PRIMARY KEY,
    name       text        NOT NULL,
    checksum   text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)"""
_UNHURRIED = b"SET statement_timeout = 0; SET lock_timeout = 0"
_LOCK = b"SELECT pg_advisory_lock(hashtextextended('pilothouse migrate', 0))"
_RECORD = b"INSERT INTO migrations (version, name, checksum) VALUES (%(version)s, %(name)s, %(checksum)s)"


async def migrate(dsn: str, migrations: Sequence[Migration] | None = None) -> list[str]:
    """Applies what is missing, each file in one transaction, and returns the files' names. Of several
    migrators at once one works and the others wait, then find nothing to do.

    The first file also makes the installation id. Raises StoreUnusable, having changed nothing, where an
    applied file has changed since or the database is newer than the files.
    """
    wanted = shipped() if migrations is None else migrations
    async with alone(dsn) as connection:
        await connection.execute(_UNHURRIED)
        await connection.execute(_LOCK)
        await connection.execute(_TABLE)
        present = await applied(connection)
        check_known(present.values(), wanted)
        missing = [migration for migration in wanted if migration.version not in present]
        for migration in missing:
            await _apply(connection, migration)
    return [migration.name for migration in missing]


async def _apply(connection: Connection, migration: Migration) -> None:
    async with connection.transaction():
        await connection.execute(migration.sql)
        record = {"version": migration.version, "name": migration.name, "checksum": migration.checksum}
        await connection.execute(_RECORD, record)
