"""Where runs of this machine are kept, and how a command gets at them."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from pilothouse.cli.printing import safe
from pilothouse.records.runs import Run
from pilothouse.records.values import ValueRefused
from pilothouse.store.errors import StoreError
from pilothouse.store.ports import RunStore

USAGE = 2
"""Exit status where the command itself could not be carried out."""

PAUSED = 130
"""Exit status of a command that was interrupted."""


PIPE_CLOSED = 141
"""Exit status of a command whose reader went away, as a shell gives it for SIGPIPE."""

_ID_BEGINNING = 8
_ALL = 100_000


class CommandError(Exception):
    """What a command could not do, in a sentence for the user."""


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

        async with self.database() as dsn:
            if self.dsn is None:
                await migrate(dsn)
            async with open_store(dsn) as store:
                yield store


async def tenant_of(store: RunStore, namespace: str) -> UUID:
    """The tenant of a namespace. Without a cluster it has no UID of its own, so one is derived."""
    return uuid5(await store.installation(), f"namespace {namespace}")


async def find_run(store: RunStore, name: str, namespace: str) -> Run:
    """The run of that name: WORKFLOW (its latest), WORKFLOW/NUMBER, or an id or its beginning."""
    tenant = await tenant_of(store, namespace)
    workflow, slash, number = name.partition("/")
    runs = await store.runs(tenant, workflow=workflow, limit=_ALL if slash else 1)
    if slash:
        runs = [run for run in runs if str(run.number) == number]
    if not runs and len(name) >= _ID_BEGINNING:
        runs = [run for run in await store.runs(tenant, limit=_ALL) if str(run.ref.run).startswith(name)]
    if not runs:
        raise CommandError(f"there is no run `{name}` in namespace {namespace}; see `pilothouse get`")
    if len(runs) > 1:
        raise CommandError(f"several runs have an id that begins with {name}: {', '.join(map(name_of, runs))}")
    return runs[0]


def name_of(run: Run) -> str:
    """The name by which a user calls the run."""
    return f"{run.workflow}/{run.number}"


def tell(text: str) -> None:
    """A sentence for the user, beside the result."""
    print(safe(text), file=sys.stderr, flush=True)  # noqa: T201


def complete(command: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """Runs a command to its exit status; what it could not do is told in one line. SIGTERM is as Ctrl-C."""
    try:
        return asyncio.run(_interruptible(command))
    except (CommandError, StoreError, ValueRefused) as error:
        tell(f"pilothouse: {error}")
        return USAGE
    except (KeyboardInterrupt, asyncio.CancelledError):
        return PAUSED
    except BrokenPipeError:
        _silence()
        return PIPE_CLOSED


async def _interruptible(command: Callable[[], Coroutine[Any, Any, int]]) -> int:
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in one
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await command()


def _silence() -> None:
    """What is still to be written goes nowhere: the interpreter flushes once more as it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())


def migrate_database(where: Where) -> int:
    """`pilothouse migrate`."""

    async def command() -> int:
        from pilothouse.store.postgres import migrate

        async with where.database() as dsn:
            applied = await migrate(dsn)
        tell("\n".join(f"applied {name}" for name in applied) or "nothing to do: the schema is this version's")
        return 0

    return complete(command)
