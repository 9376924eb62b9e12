"""The rows of an agent's conversation: a session, its tree of entries, and the tool calls of its turns."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from pilothouse.records.queues import QueueName
from pilothouse.records.runs import AttemptRef, RunName, RunRef, StepId
from pilothouse.records.values import Stored


def session_of(run: RunRef, step: StepId) -> UUID:
    """The session that all attempts of an agent step go on with."""
    return uuid5(run.run, f"session {step}")


def named_session(tenant: UUID, name: str) -> UUID:
    """The session of that name, which all runs of the tenant go on with."""
    return uuid5(tenant, f"session {name}")


def child_session(parent: UUID, turn: UUID, ordinal: int) -> UUID:
    """The session of an agent that another agent asked: that of the call, however often it is made."""
    return uuid5(parent, f"call {turn} {ordinal}")


FROM_OUTSIDE = UUID(int=0)
"""Stands for the attempt of an entry that no attempt wrote: it was imported."""


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry to be appended as a child of the session's leaf. `type` and `body` are the seed's: a
    `message` holds a message in its wire form, a `leaf` holds the `targetId` that becomes the leaf."""

    id: UUID
    type: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """A node of the session tree. Append-only; `seq` is the order of writing within the session."""

    id: UUID
    parent: UUID | None
    seq: int
    type: str
    body: Mapping[str, Any]
    attempt: UUID
    at: datetime


class Appended(tuple[Entry, ...]):
    """The entries as they were written. `waiting`: something waits in the session's queues."""

    waiting: bool

    def __new__(cls, entries: Iterable[Entry], waiting: bool) -> "Appended":
        self = super().__new__(cls, entries)
        self.waiting = waiting
        return self


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation. `leaf` is where the next entry hangs; None before the first."""

    id: UUID
    leaf: UUID | None
    entries: tuple[Entry, ...] = ()
    """Every entry of the session, in the order of writing."""


@dataclass(frozen=True, slots=True)
class SessionHead:
    """A session as a line of a list. It has a name where it belongs to the tenant, and none where it is one run's.
    `holder` is the open attempt that works on it, `run` the newest run that opened it, `changed_at` the time of its
    last entry. `waiting` counts what waits, by queue; a queue without messages is not in it."""

    id: UUID
    name: str | None
    leaf: UUID | None
    entries: int
    created_at: datetime
    changed_at: datetime
    holder: AttemptRef | None
    run: RunName | None
    waiting: Mapping[QueueName, int]


@dataclass(frozen=True, slots=True)
class NewToolCall:
    """The intent to run a tool: written before its effect. `turn` is the entry of the assistant message
    and `ordinal` the call's place in it, so the pair is the call's identity. `arguments` are the exact
    bytes (RFC 8785) that will be executed."""

    turn: UUID
    ordinal: int
    call: str
    tool: str
    arguments: bytes
    idempotent: bool


@dataclass(frozen=True, slots=True)
class ToolCallRow:
    """What is recorded of a tool call. Without `result` its outcome is not known."""

    turn: UUID
    ordinal: int
    call: str
    tool: str
    arguments: bytes
    digest: str
    idempotent: bool
    attempt: UUID
    intended_at: datetime
    result: Stored | None = None
    is_error: bool = False
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The result of a tool call, to be written once. `message` is the toolResult message's wire form."""

    turn: UUID
    ordinal: int
    message: Mapping[str, Any] = field(default_factory=dict)
    is_error: bool = False
