"""The ports of the store. Each has a conformance suite that every implementation passes.

`RunStore` serves those who drive runs (the local runner, the operator) and those who show them.
`AttemptStore` serves one attempt: what its process may read and write, and nothing else.
`SessionStore` serves those who talk to agents from outside of their attempts.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from pilothouse.records.events import Event, NewEvent
from pilothouse.records.failures import Failure
from pilothouse.records.queues import QueueItem, QueueName
from pilothouse.records.runs import Attempt, AttemptRef, NewRun, Run, RunName, RunRef, Snapshot
from pilothouse.records.sessions import (
    Appended,
    Entry,
    NewEntry,
    NewToolCall,
    Session,
    SessionHead,
    ToolCallRow,
    ToolOutcome,
)
from pilothouse.records.states import AttemptState, Shutdown
from pilothouse.records.values import BlobRef, Outputs, Stored
from pilothouse.store.pages import AttemptPages, Page, SessionReading
from pilothouse.store.transitions import Transition


class Blobs(Protocol):
    """Bytes by digest, each within its tenant: another tenant's blob of the same bytes is not found."""

    async def put_blob(self, tenant: UUID, data: bytes) -> BlobRef:
        """Stores the bytes under their digest; storing them again changes nothing."""
        ...

    async def get_blob(self, tenant: UUID, digest: str) -> bytes:
        """The bytes. Raises NotFound."""
        ...


@dataclass(frozen=True, slots=True)
class Leadership:
    """The right to drive what `scope` names. Every write carries `epoch`; a newer epoch shuts it out."""

    scope: str
    epoch: int


class RunStore(Blobs, Protocol):
    """Runs as those see them who drive or show them. Every call raises StoreUnavailable in an outage."""

    async def installation(self) -> UUID:
        """The id that the migration gave this database."""
        ...

    def lead(self, scope: str) -> AbstractAsyncContextManager[Leadership]:
        """Leadership of `scope`, held until the context ends or this process dies.

        Raises Conflict at once where another holder lives; the message says so.
        """
        ...

    async def epoch_of(self, scope: str) -> int:
        """The epoch of the newest leader of `scope`, 0 where there never was one. Its holder asks now and then: where
        it is not its own any more, another process leads."""
        ...

    async def token_key(self) -> bytes:
        """32 bytes that only this database knows, to sign tokens with that any gateway on it verifies."""
        ...

    async def create_run(self, new: NewRun) -> Run:
        """Inserts the run, its steps and the event RunStarted. The number counts from 1 by tenant and
        workflow. Creating the same run id again returns the run that is there."""
        ...

    async def snapshot(self, run: RunRef) -> Snapshot:
        """The run, its steps and the newest attempt of each, in one consistent read. Raises NotFound."""
        ...

    async def commit(self, run: RunRef, epoch: int, transition: Transition) -> None:
        """Writes the transition and its events together, and notifies the run's subscribers.

        Raises Conflict where a guard does not hold, Deposed where a newer epoch has written; then
        nothing is written. ValueRefused where an output or an event cannot be stored faithfully.
        """
        ...

    async def request_shutdown(self, run: RunRef, verb: Shutdown) -> Run:
        """Asks the run's driver to end it, with the event ShutdownRequested. Asking a finished run
        changes nothing, nor does a weaker verb than the one that stands (Terminate, Cancel, Stop)."""
        ...

    async def runs(
        self,
        tenant: UUID | None = None,
        *,
        namespace: str | None = None,
        workflow: str | None = None,
        unfinished: bool = False,
        limit: int = 100,
    ) -> Sequence[Run]:
        """Runs, newest first. A namespace that was created anew is another tenant of the same name."""
        ...

    async def run_names(
        self, tenant: UUID | None = None, *, workflow: str | None = None, unfinished: bool = False, limit: int
    ) -> Sequence[RunName]:
        """What `runs` finds, without what is large in it: for those who look through all runs that there are."""
        ...

    async def attempts(self, run: RunRef) -> Sequence[Attempt]:
        """Every attempt of the run, oldest first."""
        ...

    async def events(self, run: RunRef, after: int = 0, limit: int = 1_000) -> Sequence[Event]:
        """Events with a `seq` greater than `after`, in order."""
        ...

    def changes(self, run: RunRef) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        """Yields once for each time (or burst of times) the run may have changed since the context was
        entered. A hint only: it carries no data and a lost one must not matter."""
        ...

    def all_changes(self) -> AbstractAsyncContextManager[AsyncIterator[RunRef | None]]:
        """Yields the runs that may have changed since the context was entered, each once for any burst of times.
        None: any run may have, for changes went by unseen. A hint only, as of `changes`."""
        ...

    async def carry(self, ref: AttemptRef, epoch: int, carrier: str) -> None:
        """Records what carries the attempt out, before it may begin. The same again changes nothing.

        Raises Conflict where the attempt has another carrier or is not the open one, Deposed as `commit` does.
        """
        ...

    async def carried(self, carrier: str, namespace: str) -> Attempt:
        """The attempt that `carrier` carries out, whatever its state, of a run of that namespace. Raises NotFound."""
        ...

    async def sessions(self, run: RunRef) -> Sequence[Session]:
        """The sessions that attempts of this run opened, with their entries."""
        ...

    def attempt_store(self, ref: AttemptRef) -> "PagedAttemptStore":
        """The store as the process of that attempt sees it."""
        ...

    def session_store(self) -> "PagedSessionStore":
        """The store as those see it who are outside of every attempt."""
        ...


class SessionStore(Protocol):
    """Sessions and their queues, from outside of the attempts that work on them. What names a session raises NotFound
    where the tenant has none of that id."""

    async def sessions(self, tenant: UUID, before: UUID | None = None, limit: int = 100) -> Sequence[SessionHead]:
        """The tenant's sessions, newest first, from below the session `before` on."""
        ...

    async def session(self, tenant: UUID, session: UUID) -> SessionHead:
        """How the session stands."""
        ...

    async def entries(self, tenant: UUID, session: UUID, after: int = 0, limit: int = 1_000) -> Sequence[Entry]:
        """Entries with a `seq` greater than `after`, in order."""
        ...

    async def import_session(self, tenant: UUID, name: str, entries: Sequence[NewEntry]) -> UUID:
        """Makes the session of that name of the entries, a chain as `AttemptStore.append` writes it, in one
        transaction; returns its id. Raises Conflict where there is one."""
        ...

    async def enqueue(
        self, tenant: UUID, session: UUID, queue: QueueName, message: Mapping[str, Any], id: UUID | None = None
    ) -> QueueItem:
        """Accepts the message for good. The same again under its id changes nothing, whatever became of it; another
        message under that id is a Conflict. `steer` and `followUp` are for an attempt that is at work on the session;
        raises InvalidState where none is."""
        ...

    async def queued(self, tenant: UUID, session: UUID) -> Sequence[QueueItem]:
        """What waits, in the order of acceptance."""
        ...

    async def cancel(self, tenant: UUID, session: UUID, ids: Sequence[UUID]) -> Sequence[QueueItem]:
        """Takes those of the items back that wait. Returns those that will not be delivered: any other was, or is
        not there."""
        ...


class AttemptStore(Protocol):
    """What the process of one attempt may read and write.

    Every write checks that the attempt is the open one of its step and raises Superseded if not; then
    nothing is written. Reads of a superseded attempt raise Superseded too.
    """

    ref: AttemptRef

    async def open_session(self, session: UUID, name: str | None = None) -> Session:
        """The session with its entries; created empty where it is not there. From then on it is this attempt's until
        the attempt is over. With a name it is the tenant's, and `named_session` is its id; without, it is this run's.

        Raises SessionBusy where another open attempt has it, Conflict where it belongs to another run.
        """
        ...

    async def append(
        self,
        session: UUID,
        leaf: UUID | None,
        entries: Sequence[NewEntry],
        events: Sequence[NewEvent] = (),
        outcomes: Sequence[ToolOutcome] = (),
        consumed: Sequence[UUID] = (),
    ) -> Appended:
        """Appends the entries as a chain below `leaf` and moves the leaf, all in one transaction with the
        events and with the results of tool calls, which are written as `record` does. A `leaf` entry moves
        the leaf to its target, an entry that is there by then. Guard: the session's leaf is `leaf`; raises
        Conflict if not. An entry whose id is there already is a Conflict, too.

        `consumed` are the items of the session's queues whose messages these entries hold: they are delivered
        thereby. An item that does not wait any more is a Conflict. What is returned tells whether any waits then, so
        that nobody has to ask each turn."""
        ...

    async def queued(self, session: UUID) -> Sequence[QueueItem]:
        """What waits in the session's queues, in the order of acceptance."""
        ...

    async def clear(self, session: UUID, queues: Sequence[QueueName], id: UUID | None = None) -> Sequence[QueueItem]:
        """Takes back what waits in those queues, and returns it. `id` names this clearing: the same again returns
        what was taken back under it before, too."""
        ...

    async def tool_calls(self, session: UUID, turn: UUID) -> Sequence[ToolCallRow]:
        """What is recorded of the calls of one turn, by ordinal."""
        ...

    async def intend(self, session: UUID, call: NewToolCall, events: Sequence[NewEvent] = ()) -> ToolCallRow:
        """Writes the intent before the effect. Where the row is there already without a result and the
        very same call (id, tool, arguments) was and is declared idempotent, it passes to this attempt;
        otherwise raises Conflict. Raises NotFound where the session has no such turn."""
        ...

    async def record(self, session: UUID, outcome: ToolOutcome, events: Sequence[NewEvent] = ()) -> Stored:
        """Writes the result of an intended call, whichever attempt of the run intended it, and tells where it is
        kept; one over INLINE_LIMIT becomes a blob. A second result is a Conflict, one without intent NotFound."""
        ...

    async def put_blob(self, data: bytes) -> BlobRef:
        """Stores bytes under their digest in the attempt's tenant."""
        ...

    async def get_blob(self, digest: str) -> bytes:
        """The bytes of the attempt's tenant. Raises NotFound."""
        ...

    async def finish(self, state: AttemptState, outputs: Outputs | None = None, failure: Failure | None = None) -> None:
        """Ends the attempt with its own outcome and notifies the run's driver. The step is settled by the
        driver. An attempt does not succeed while a message for it waits in `steer` or `followUp` of a session that
        it has: raises QueueNotEmpty."""
        ...


class PagedAttemptStore(AttemptStore, AttemptPages, Protocol):
    """What a gateway serves a Pod from."""


class PagedSessionStore(SessionStore, SessionReading, Protocol):
    """What a gateway serves people from."""

    async def cancelled_page(self, tenant: UUID, session: UUID, ids: Sequence[UUID], after: int, size: int) -> Page:
        """As `cancel`: items with a `seq` greater than `after`. Each page takes back what still waits."""
        ...
