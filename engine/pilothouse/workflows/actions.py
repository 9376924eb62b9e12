"""What the brain can ask for. An action is carried out by one transition, and by what its name says."""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from pilothouse.records.failures import Failure
from pilothouse.records.runs import StepId
from pilothouse.records.states import RunState, StepState


@dataclass(frozen=True, slots=True)
class Begin:
    """Evaluate the step's guard and inputs, then do it (a light step) or open attempt `number` of it."""

    step: StepId
    number: int


@dataclass(frozen=True, slots=True)
class Restart:
    """Open another attempt under the same number: the last one ended without using it up."""

    step: StepId
    restart: int


@dataclass(frozen=True, slots=True)
class Retry:
    """The attempt failed and another one is allowed in `delay` seconds."""

    step: StepId
    delay: float
    failure: Failure


@dataclass(frozen=True, slots=True)
class Settle:
    """The step has reached `state` for good."""

    step: StepId
    state: StepState
    failure: Failure | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Stop:
    """End the open attempt's process; its end is observed later."""

    step: StepId
    failure: Failure | None


@dataclass(frozen=True, slots=True)
class Wake:
    """Nothing more can be decided before this time, unless something changes."""

    at: datetime


@dataclass(frozen=True, slots=True)
class Close:
    """Every step is settled: evaluate the outputs if the run succeeded, and end it."""

    state: RunState
    failure: Failure | None = None


Action: TypeAlias = Begin | Restart | Retry | Settle | Stop | Wake | Close
