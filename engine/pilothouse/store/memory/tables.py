"""The tables of the memory store: rows are never changed, only replaced, so a shallow copy is a snapshot."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from pilothouse.records.events import NewEvent
from pilothouse.records.runs import AttemptRef, RunRef, StepId
from pilothouse.store.refusals import entry_there, no_blob, no_run, no_target
from pilothouse.store.rows import Row, blob_ref, event_row
from pilothouse.store.wakeups import Wakeups

CallKey = tuple[UUID, int]
"""A tool call's turn and its ordinal there."""

SessionKey = tuple[UUID, UUID]
"""A session's tenant and its id."""


@dataclass(slots=True)
class RunTables:
    """All rows of one run."""

    run: Row
    steps: dict[StepId, Row] = field(default_factory=dict)
    attempts: dict[UUID, Row] = field(default_factory=dict)
    events: list[Row] = field(default_factory=list)
    sessions: tuple[UUID, ...] = ()
    """Those that attempts of the run opened, the oldest first."""

    def draft(self) -> "RunTables":
        """A copy to change; what it becomes counts once it is put in this one's place."""
        return replace(
            self,
            steps=dict(self.steps),
            attempts=dict(self.attempts),
            events=list(self.events),
        )

    def tell(self, events: Sequence[NewEvent], now: datetime) -> None:
        for event in events:
            seq = self.run["event_seq"] + 1
            self.run = {**self.run, "event_seq": seq}
            key = {"tenant": self.run["tenant"], "run": self.run["id"]}
            self.events.append(key | event_row(event) | {"seq": seq, "at": now})

    def is_open(self, ref: AttemptRef) -> bool:
        row = self.attempts.get(ref.attempt)
        return row is not None and (row["state"], row["fence"]) == ("Open", ref.fence)

    def open_attempt_of(self, step: StepId) -> bool:
        return any(
            row["state"] == "Open" and row["call"] is None and (row["path"], row["index"]) == (step.path, step.index)
            for row in self.attempts.values()
        )


@dataclass(slots=True)
class SessionTables:
    """A session: its leaf, its entries, tool calls and queue. It is one run's, or has a name and is its tenant's;
    `holder` is the attempt that opened it last."""

    name: str | None
    created_at: datetime
    run: RunRef | None = None
    holder: AttemptRef | None = None
    leaf: UUID | None = None
    entries: dict[UUID, Row] = field(default_factory=dict)
    calls: dict[CallKey, Row] = field(default_factory=dict)
    queue: dict[UUID, Row] = field(default_factory=dict)

    def draft(self) -> "SessionTables":
        return replace(self, entries=dict(self.entries), calls=dict(self.calls), queue=dict(self.queue))

    def add_entry(self, session: UUID, columns: Row, attempt: UUID) -> Row:
        id, target = columns["id"], columns["target"]
        if id in self.entries:
            raise entry_there(session)
        self.entries[id] = columns | {"seq": len(self.entries) + 1, "attempt": attempt, "at": clock()}
        if target is not None and target not in self.entries:
            raise no_target(session, target)
        return self.entries[id]

    def waiting(self) -> list[Row]:
        """The items of the queues that wait, in the order of acceptance."""
        return [row for row in self.queue.values() if row["state"] == "Waiting"]

    def settle(self, items: Iterable[Row], state: str, clearing: UUID | None = None) -> None:
        for row in items:
            self.queue[row["id"]] = row | {"state": state, "clearing": clearing}


class Tables:
    """Everything that one store holds."""

    def __init__(self) -> None:
        self.runs: dict[RunRef, RunTables] = {}
        self.sessions: dict[SessionKey, SessionTables] = {}
        self.blobs: dict[tuple[UUID, str], bytes] = {}
        self.wakeups = Wakeups()

    def of(self, run: RunRef) -> RunTables:
        """Raises NotFound."""
        if run not in self.runs:
            raise no_run(run)
        return self.runs[run]

    def put(self, run: RunRef, tables: RunTables, wake: bool = True) -> None:
        """Makes a draft count, and wakes those who wait for the run."""
        self.runs[run] = tables
        if wake:
            self.wakeups.wake(channel(run))

    def is_open(self, ref: AttemptRef | None) -> bool:
        return ref is not None and ref.run in self.runs and self.runs[ref.run].is_open(ref)

    def get_blob(self, tenant: UUID, digest: str) -> bytes:
        if (tenant, digest) not in self.blobs:
            raise no_blob(digest)
        return self.blobs[tenant, digest]

    def put_blob(self, tenant: UUID, data: bytes) -> None:
        self.blobs[tenant, blob_ref(data).digest] = bytes(data)


def channel(run: RunRef) -> str:
    return f"{run.tenant}/{run.run}"


def clock() -> datetime:
    return datetime.now(UTC)


def after(now: datetime, seconds: float | None) -> datetime | None:
    return None if seconds is None else now + timedelta(seconds=seconds)
