"""The schema's files, and which of them a database has.

`NN_pre_words.sql` is applied before the code that needs it runs, and the code before it keeps working;
`NN_post_words.sql` once no older code runs any more.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from uuid import UUID

from psycopg.errors import UndefinedTable

from pilothouse.store.errors import StoreUnusable
from pilothouse.store.postgres.meaning import MIGRATE
from pilothouse.store.postgres.pool import Connection, alone

_FILE = re.compile(r"(?P<version>\d\d)_(?P<phase>pre|post)_[a-z_]+\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    """One file of the schema, or what a database recorded of it."""

    name: str
    checksum: str
    sql: bytes = b""

    @classmethod
    def of(cls, name: str, sql: bytes) -> "Migration":
        return cls(name, hashlib.sha256(sql).hexdigest(), sql)

    @property
    def version(self) -> int:
        return int(self._part("version"))

    @property
    def needed_first(self) -> bool:
        """Whether code of its version needs it, and code before its version survives it."""
        return self._part("phase") == "pre"

    def _part(self, group: str) -> str:
        match = _FILE.fullmatch(self.name)
        if match is None:
            raise ValueError(f"`{self.name}` is not named like 01_pre_words.sql")
        return match[group]


@cache
def shipped() -> Sequence[Migration]:
    """The migrations that come with this version, in order."""
    folder = files("pilothouse.store.postgres").joinpath("migrations")
    found = (Migration.of(file.name, file.read_bytes()) for file in folder.iterdir())
    return tuple(sorted(found, key=lambda migration: migration.version))


async def applied(connection: Connection) -> dict[int, Migration]:
    """What was applied, by version. Raises StoreUnusable where nothing ever was."""
    try:
        rows = await (await connection.execute(b"SELECT name, checksum FROM migrations")).fetchall()
    except UndefinedTable:
        raise StoreUnusable(f"the database has no tables of pilothouse yet; {MIGRATE}") from None
    found = (Migration(row["name"], row["checksum"]) for row in rows)
    return {migration.version: migration for migration in found}


def check_known(present: Iterable[Migration], known: Sequence[Migration]) -> None:
    """Refuses a database that holds what these files do not say."""
    by_version = {migration.version: migration for migration in known}
    for migration in present:
        ours = by_version.get(migration.version)
        if ours is None:
            raise StoreUnusable(
                f"the database is newer than this pilothouse: it has `{migration.name}`; install the newer version"
            )
        if ours.checksum != migration.checksum:
            raise StoreUnusable(
                f"`{ours.name}` differs from what was applied to the database as `{migration.name}`; "
                "a migration never changes: restore the file"
            )


async def check_usable(connection: Connection) -> None:
    """Refuses a database that code of this version cannot work with: one that lacks a `pre` file of this
    version, or has a `post` file of a newer one."""
    present = await applied(connection)
    newest = shipped()[-1].version
    check_known((m for m in present.values() if m.version <= newest or not m.needed_first), shipped())
    missing = [m.name for m in shipped() if m.needed_first and m.version not in present]
    if missing:
        raise StoreUnusable(f"the database lacks {', '.join(missing)}; {MIGRATE}")


async def installation_of(dsn: str) -> UUID | None:
    """The id of the installation that the database belongs to, whatever its version; None where it has no tables of
    ours. Changes nothing."""
    async with alone(dsn) as connection:
        try:
            rows = await (await connection.execute(b"SELECT id FROM installation")).fetchall()
        except UndefinedTable:
            return None
    return UUID(str(rows[0]["id"])) if rows else None
