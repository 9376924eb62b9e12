"""Where runs of this machine are kept, and how a command gets at them."""

import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pilothouse.cli.command import CommandError
from pilothouse.store.ports import RunStore


@dataclass(frozen=True, slots=True)
class Where:
    """The folder of this machine's runs, and the database if it is not the embedded one."""

    state: Path
    dsn: str | None

    @classmethod
    def of(cls, state: Path | None, dsn: str | None) -> "Where":
        data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share")
        return cls((state or data / "pilothouse").absolute(), dsn)

    @property
    def attempts(self) -> Path:
        """Where the processes of attempts have their directories."""
        return self.state / "attempts"

    def make(self) -> None:
        """Makes the folder where it is not there."""
        try:
            self.state.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = f"{self.state} cannot be used: {error.strerror}"
            raise CommandError(f"{reason}; name another folder with --state") from None

    @asynccontextmanager
    async def database(self) -> AsyncIterator[str]:
        """The DSN of a server that runs."""
        if self.dsn is not None:
            yield self.dsn
            return
        from pilothouse.store.embedded import embedded_server

        self.make()
        async with embedded_server(self.state / "postgres") as dsn:
            yield dsn

    @asynccontextmanager
    async def store(self) -> AsyncIterator[RunStore]:
        """The store; the embedded one is migrated first, one of the user's own is not touched."""
        from pilothouse.store.postgres import migrate, open_store

        logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)  # an outage is told of in a sentence, once
        async with self.database() as dsn:
            if self.dsn is None:
                await migrate(dsn)
            async with open_store(dsn) as store:
                yield store
