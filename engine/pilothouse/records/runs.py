"""The rows of a run: the run itself, its steps and their attempts, as the brain reads them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from pilothouse.records.failures import Failure
from pilothouse.records.states import AttemptState, RunState, Shutdown, StepState
from pilothouse.records.values import BlobRef, Outputs

SCHEMA_VERSION = 1
"""The version of the shape of a run's rows; it stands on every run, so that old ones stay readable."""


@dataclass(frozen=True, slots=True)
class RunRef:
    """A run of one tenant. The tenant is the UID of a namespace and part of every key."""

    tenant: UUID
    run: UUID


@dataclass(frozen=True, slots=True)
class RunName:
    """Which run it is, and how people call it."""

    ref: RunRef
    number: int
    namespace: str
    workflow: str


@dataclass(frozen=True, slots=True, order=True)
class StepId:
    """A step of a run: its path in the run's tree and, below a parallel step, its index there."""

    path: str
    index: int = 0

    def __str__(self) -> str:
        return f"{self.path}[{self.index}]" if self.index else self.path


@dataclass(frozen=True, slots=True)
class NewRun:
    """What a run begins with. `closure` is everything that the run will ever read of definitions. `requests` are the
    verbs that had been asked of the Workflow by then, each with the value that asked for it."""

    tenant: UUID
    run: UUID
    namespace: str
    workflow: str
    workflow_uid: UUID
    key: str
    closure: Mapping[str, Any]
    params: Mapping[str, Any]
    steps: Sequence["NewStep"]
    deadline_seconds: float | None = None
    requests: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewStep:
    """A step as it stands before anything happened. `kind` is its action, as `runCommand`. A step that the run takes
    over from the one it repeats comes in a final state, with its outputs."""

    id: StepId
    kind: str
    state: StepState = StepState.PENDING
    outputs: Outputs = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a Workflow. Times are the database's."""

    ref: RunRef
    number: int
    namespace: str
    workflow: str
    workflow_uid: UUID
    key: str
    closure: Mapping[str, Any]
    params: Mapping[str, Any]
    state: RunState
    created_at: datetime
    deadline: datetime | None = None
    finished_at: datetime | None = None
    shutdown: Shutdown | None = None
    outputs: Outputs = field(default_factory=dict)
    failure: Failure | None = None
    event_seq: int = 0
    epoch: int = 0
    schema_version: int = SCHEMA_VERSION
    requests: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """A node of the run's graph. `fence` is that of its newest attempt, 0 before the first."""

    id: StepId
    kind: str
    state: StepState = StepState.PENDING
    attempts: int = 0
    restarts: int = 0
    fence: int = 0
    outputs: Outputs = field(default_factory=dict)
    failure: Failure | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    wake_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AttemptRef:
    """An attempt together with its fence, which every write of the attempt must match."""

    run: RunRef
    attempt: UUID
    fence: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a step. Its row is the only fence: what carries it out is named after `nonce`, and recorded as
    `carrier` before it may begin, where it is a Pod. Of such an attempt, none without a carrier ever began."""

    ref: AttemptRef
    step: StepId
    number: int
    restart: int
    nonce: str
    state: AttemptState
    created_at: datetime
    deadline: datetime | None = None
    finished_at: datetime | None = None
    outputs: Outputs = field(default_factory=dict)
    failure: Failure | None = None
    log: BlobRef | None = None
    call: str | None = None
    carrier: str | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything of a run that the brain decides on, read in one transaction, with the database's clock.

    `attempts` holds the newest attempt of each step that has one.
    """

    run: Run
    steps: Mapping[StepId, Step]
    attempts: Mapping[StepId, Attempt]
    now: datetime
