"""Where runs of this machine are kept, and how a command gets at them."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from pilothouse.cli.command import CommandError
from pilothouse.cli.names import DEFAULT_NAMESPACE, find_run, tenant_of
from pilothouse.cli.reading import Reading
from pilothouse.cli.sessions.reading import Sessions
from pilothouse.records.runs import Attempt, Run
from pilothouse.store.history import RunLine, Wanted
from pilothouse.store.ports import RunStore
from pilothouse.workflows.local.place import Place

LINES = 100
"""Runs that a list of them shows at most, as a gateway's does."""


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
        async with self._opened() as (_, store):
            yield store

    @asynccontextmanager
    async def reading(self, namespace: str | None) -> AsyncIterator[Reading]:
        """The runs of a namespace, as the commands read them that show runs."""
        async with self._opened() as (dsn, store):
            yield _LocalReading(self, dsn, store, namespace or DEFAULT_NAMESPACE)

    @asynccontextmanager
    async def sessions(self, namespace: str | None, only: UUID | None = None) -> AsyncIterator[Sessions]:
        name = namespace or DEFAULT_NAMESPACE
        async with self.store() as store:
            yield Sessions(name, await tenant_of(store, name), store.session_store())

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[tuple[str, RunStore]]:
        from pilothouse.store.postgres import migrate, open_store

        logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)  # an outage is told of in a sentence, once
        async with self.database() as dsn:
            if self.dsn is None:
                await migrate(dsn)
            async with open_store(dsn) as store:
                yield dsn, store


@dataclass(frozen=True, slots=True)
class _LocalReading:
    where: Where
    dsn: str
    store: RunStore
    namespace: str
    poll: float = 0.3

    async def find(self, name: str) -> Run:
        return await find_run(self.store, name, self.namespace)

    async def lines(self) -> Sequence[RunLine]:
        from pilothouse.store.postgres.history import open_history

        wanted = Wanted(await tenant_of(self.store, self.namespace), self.namespace)
        async with open_history(self.dsn) as history:
            return await history.lines(wanted, LINES)

    async def output(self, run: Run, attempt: Attempt) -> bytes:
        return await asyncio.to_thread(Place.of(self.where.attempts, attempt).data)
