"""A transition: every change that one decision makes to a run, written together or not at all."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from pilothouse.records.events import NewEvent
from pilothouse.records.failures import Failure
from pilothouse.records.runs import StepId
from pilothouse.records.states import AttemptState, RunState, StepState
from pilothouse.records.values import BlobRef, Outputs


@dataclass(frozen=True, slots=True)
class StepChange:
    """Moves a step from one of `expect` to `state`. Guard: the state, and the fence where one is given.

    A final state sets `finished_at`; the first RUNNING sets `started_at`, and so does SUCCEEDED where none came before.
    `wake_in` sets `wake_at` from the database's clock, in seconds; every other change clears it. `outputs` and
    `failure` replace what stood there, so a change without them clears them.
    """

    id: StepId
    expect: frozenset[StepState]
    state: StepState
    fence: int | None = None
    outputs: Outputs | None = None
    failure: Failure | None = None
    wake_in: float | None = None


@dataclass(frozen=True, slots=True)
class AttemptOpening:
    """Opens an attempt of a step. Guard: the step has no open attempt, and its newest fence is `after`.

    The new fence is `after + 1`; the step's `fence`, `attempts` (= number) and `restarts` (= restart)
    follow. `timeout` in seconds sets the deadline from the database's clock.
    """

    step: StepId
    attempt: UUID
    after: int
    number: int
    restart: int
    nonce: str
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class AttemptClosing:
    """Ends an open attempt. Guard: it is open and has this fence. `log` is the blob of its output."""

    attempt: UUID
    fence: int
    state: AttemptState
    outputs: Outputs | None = None
    failure: Failure | None = None
    log: BlobRef | None = None


@dataclass(frozen=True, slots=True)
class RunClosing:
    """Ends the run. Guard: it is running."""

    state: RunState
    outputs: Outputs = field(default_factory=dict)
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Transition:
    """Applied in the order of the fields. If one guard does not hold, nothing is written."""

    steps: Sequence[StepChange] = ()
    closings: Sequence[AttemptClosing] = ()
    openings: Sequence[AttemptOpening] = ()
    run: RunClosing | None = None
    events: Sequence[NewEvent] = ()
