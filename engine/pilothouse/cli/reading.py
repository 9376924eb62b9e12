"""What the commands read that show runs and sessions: the same of this machine's store and of a cluster."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from pilothouse.records.events import Event
from pilothouse.records.runs import Attempt, Run, RunRef, Snapshot
from pilothouse.records.sessions import Session
from pilothouse.store.history import RunLine

if TYPE_CHECKING:
    from pilothouse.cli.sessions.reading import Sessions


class RunReader(Protocol):
    """The part of `RunStore` that shows one run. What comes of a cluster lacks the closure and the outputs of steps
    and attempts."""

    async def snapshot(self, run: RunRef) -> Snapshot: ...

    async def attempts(self, run: RunRef) -> Sequence[Attempt]: ...

    async def events(self, run: RunRef, after: int = 0, limit: int = 1_000) -> Sequence[Event]: ...

    def changes(self, run: RunRef) -> AbstractAsyncContextManager[AsyncIterator[None]]: ...

    async def sessions(self, run: RunRef) -> Sequence[Session]: ...

    async def get_blob(self, tenant: UUID, digest: str) -> bytes: ...


class Reading(Protocol):
    """The runs of one namespace. `poll` is the seconds between two looks at the output of running commands, of which
    nothing tells."""

    @property
    def namespace(self) -> str: ...

    @property
    def store(self) -> RunReader: ...

    @property
    def poll(self) -> float: ...

    async def find(self, name: str) -> Run:
        """The run of that name. Raises CommandError where it is none, or one of several."""
        ...

    async def lines(self) -> Sequence[RunLine]:
        """The newest runs, the newest first."""
        ...

    async def output(self, run: Run, attempt: Attempt) -> bytes:
        """What an attempt has printed whose log is not kept yet; nothing where nobody can say."""
        ...


class Source(Protocol):
    """Where runs are read: this machine, or a cluster."""

    def reading(self, namespace: str | None) -> AbstractAsyncContextManager[Reading]:
        """The runs of the namespace; of the source's own where none is given."""
        ...

    def sessions(self, namespace: str | None, only: UUID | None = None) -> AbstractAsyncContextManager["Sessions"]:
        """The sessions of the namespace. `only`: the one that will be asked for, where its id is known; who has rights
        on that one alone needs no others then."""
        ...
