"""Events of a run: what happened, in order, for people and for subscribers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from pilothouse.records.runs import RunRef, StepId


class EventType(StrEnum):
    """What an event tells. The names are part of the interface."""

    RUN_STARTED = "RunStarted"
    RUN_SUCCEEDED = "RunSucceeded"
    RUN_FAILED = "RunFailed"
    RUN_CANCELLED = "RunCancelled"
    SHUTDOWN_REQUESTED = "ShutdownRequested"
    STEP_STARTED = "StepStarted"
    STEP_RESTARTED = "StepRestarted"
    STEP_RETRYING = "StepRetrying"
    STEP_SUCCEEDED = "StepSucceeded"
    STEP_FAILED = "StepFailed"
    STEP_ERROR = "StepError"
    STEP_CANCELLED = "StepCancelled"
    STEP_SKIPPED = "StepSkipped"
    STEP_OMITTED = "StepOmitted"
    TURN_RECORDED = "TurnRecorded"
    TOOL_STARTED = "ToolStarted"
    TOOL_FINISHED = "ToolFinished"


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to be recorded with the transition that it tells of."""

    type: EventType
    step: StepId | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Event:
    """A recorded event. `seq` counts from 1 within its run without gaps."""

    run: RunRef
    seq: int
    type: EventType
    step: StepId | None
    data: Mapping[str, Any]
    at: datetime
