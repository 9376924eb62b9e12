"""The port through which people read what is recorded of runs, in pages and without what is large.

Beside `RunStore` it leaves out what no reader is shown: the closure (it holds texts of ConfigMaps, which a person who
may read runs need not be allowed to read), the verbs that were asked, and the outputs of steps and attempts.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from pilothouse.records.events import Event
from pilothouse.records.runs import Attempt, Run, RunRef, Snapshot
from pilothouse.store.pages import Page, SessionReading

LEAST, GREATEST = UUID(int=0), UUID(int=2**128 - 1)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs of one namespace are looked for. `tenant` is the UID of the namespace and `namespace` its name: rows
    must hold both. `first` and `last` bound the ids."""

    tenant: UUID
    namespace: str
    workflow: str | None = None
    number: int | None = None
    first: UUID = LEAST
    last: UUID = GREATEST


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run as one row of a list, without params and outputs. `settled` counts its steps in a final state; `now` is
    the database's clock."""

    run: Run
    steps: int
    settled: int
    now: datetime


@dataclass(frozen=True, slots=True)
class SessionLine:
    """A session without its entries, of which it has `entries`."""

    id: UUID
    leaf: UUID | None
    entries: int


class RunHistory(Protocol):
    """Pages begin after the first `after` items of a list that only grows at its end, or after the item that is named
    so. Every call raises StoreUnavailable in an outage. Nothing is ever written."""

    async def lines(self, wanted: Wanted, limit: int, before: UUID | None = None) -> Sequence[RunLine]:
        """Runs, newest first, from below the run `before` on."""
        ...

    async def head(self, run: RunRef, namespace: str) -> Run | None:
        """The run without params and outputs; None where the tenant has none of that id in that namespace."""
        ...

    async def snapshot(self, run: RunRef, after: int, limit: int) -> Snapshot:
        """The run and a page of its steps. Raises NotFound."""
        ...

    async def attempts(self, run: RunRef, after: int, limit: int) -> Sequence[Attempt]:
        """Oldest first."""
        ...

    async def attempt(self, run: RunRef, attempt: UUID) -> Attempt:
        """Raises NotFound."""
        ...

    async def events(self, run: RunRef, after: int, limit: int) -> Sequence[Event]:
        """Events with a `seq` greater than `after`, in order."""
        ...

    async def sessions(self, run: RunRef, after: int, limit: int) -> Sequence[SessionLine]:
        """The sessions that attempts of this run opened, oldest first."""
        ...

    async def entries(self, run: RunRef, session: UUID, after: int, limit: int, size: int) -> Page:
        """Entries of a session of this run with a `seq` greater than `after`, in order: at most `limit`, and no more
        than `size` bytes. `next` tells of an entry within the limit that has no place."""
        ...

    def session_pages(self) -> SessionReading:
        """The sessions of tenants, as `RunStore.session_store` reads them."""
        ...

    def changes(self, run: RunRef) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        """As `RunStore.changes`."""
        ...

    async def blob_size(self, tenant: UUID, digest: str) -> int:
        """Bytes of the blob. Raises NotFound."""
        ...

    async def blob_piece(self, tenant: UUID, digest: str, start: int, length: int) -> bytes:
        """The blob's bytes from `start` on, at most `length`. Raises NotFound."""
        ...
