"""The tables of the memory store: rows are never changed, only replaced, so a shallow copy is a snapshot."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from pilothouse.records.events import NewEvent
from pilothouse.records.runs import RunRef, StepId
from pilothouse.store.refusals import no_blob, no_run
from pilothouse.store.rows import Row, blob_ref, event_row
from pilothouse.store.wakeups import Wakeups

CallKey = tuple[UUID, int]
"""A tool call's turn and its ordinal there."""


@dataclass(slots=True)
class RunTables:
    """All rows of one run."""

    run: Row
    steps: dict[StepId, Row] = field(default_factory=dict)
    attempts: dict[UUID, Row] = field(default_factory=dict)
    events: list[Row] = field(default_factory=list)
    sessions: dict[UUID, "SessionTables"] = field(default_factory=dict)

    def draft(self) -> "RunTables":
        """A copy to change; what it becomes counts once it is put in this one's place."""
        return replace(
            self,
            steps=dict(self.steps),
            attempts=dict(self.attempts),
            events=list(self.events),
            sessions={id: tables.draft() for id, tables in self.sessions.items()},
        )

    def tell(self, events: Sequence[NewEvent], now: datetime) -> None:
        for event in events:
            seq = self.run["event_seq"] + 1
            self.run = {**self.run, "event_seq": seq}
            key = {"tenant": self.run["tenant"], "run": self.run["id"]}
            self.events.append(key | event_row(event) | {"seq": seq, "at": now})

    def open_attempt_of(self, step: StepId) -> bool:
        return any(
            row["state"] == "Open" and row["call"] is None and (row["path"], row["index"]) == (step.path, step.index)
            for row in self.attempts.values()
        )


@dataclass(slots=True)
class SessionTables:
    """A session's leaf, its entries and tool calls."""

    leaf: UUID | None = None
    entries: dict[UUID, Row] = field(default_factory=dict)
    calls: dict[CallKey, Row] = field(default_factory=dict)

    def draft(self) -> "SessionTables":
        return replace(self, entries=dict(self.entries), calls=dict(self.calls))


class Tables:
    """Everything that one store holds."""

    def __init__(self) -> None:
        self.runs: dict[RunRef, RunTables] = {}
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

    def owner_of(self, tenant: UUID, session: UUID) -> RunRef | None:
        return next((run for run, t in self.runs.items() if run.tenant == tenant and session in t.sessions), None)

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
