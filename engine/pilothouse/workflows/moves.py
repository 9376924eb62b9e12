"""Moves: the transition that records each action of the brain, with the event that tells of it."""

import secrets
from collections.abc import Mapping
from typing import Any

import uuid6

from pilothouse.records.events import EventType, NewEvent
from pilothouse.records.failures import Failure
from pilothouse.records.runs import Attempt, Step
from pilothouse.records.states import RunState, StepState
from pilothouse.records.values import Outputs
from pilothouse.store.transitions import AttemptClosing, AttemptOpening, RunClosing, StepChange, Transition
from pilothouse.workflows.actions import Restart, Retry, Settle
from pilothouse.workflows.executor import Ending

BEFORE_ATTEMPT = frozenset({StepState.PENDING, StepState.RETRYING})
"""The states from which a step begins."""

_STEP_EVENTS = {
    StepState.SUCCEEDED: EventType.STEP_SUCCEEDED,
    StepState.FAILED: EventType.STEP_FAILED,
    StepState.ERROR: EventType.STEP_ERROR,
    StepState.CANCELLED: EventType.STEP_CANCELLED,
    StepState.SKIPPED: EventType.STEP_SKIPPED,
    StepState.OMITTED: EventType.STEP_OMITTED,
}
_RUN_EVENTS = {
    RunState.SUCCEEDED: EventType.RUN_SUCCEEDED,
    RunState.FAILED: EventType.RUN_FAILED,
    RunState.CANCELLED: EventType.RUN_CANCELLED,
}


def settle(action: Settle, step: Step, attempt: Attempt | None, ending: Ending | None) -> Transition:
    """The step reaches its final state, and with it the attempt whose ending decided it."""
    outputs = attempt.outputs if attempt and action.state in _KEEPS_OUTPUTS else None
    change = StepChange(
        action.step, frozenset({step.state}), action.state, fence=step.fence, outputs=outputs, failure=action.failure
    )
    event = NewEvent(_STEP_EVENTS[action.state], action.step, _told(action.failure, reason=action.reason))
    return Transition(steps=[change], closings=_closings(attempt, ending), events=[event])


def retry(action: Retry, step: Step, attempt: Attempt, ending: Ending | None) -> Transition:
    """The attempt ends, and the step waits for its next one."""
    change = StepChange(
        action.step,
        frozenset({StepState.RUNNING}),
        StepState.RETRYING,
        fence=step.fence,
        failure=action.failure,
        wake_in=action.delay,
    )
    told = _told(action.failure, attempt=attempt.number, delaySeconds=round(action.delay, 3))
    event = NewEvent(EventType.STEP_RETRYING, action.step, told)
    return Transition(steps=[change], closings=_closings(attempt, ending), events=[event])


def restart(action: Restart, step: Step, attempt: Attempt, ending: Ending | None, timeout: float | None) -> Transition:
    """The attempt ends, and another one opens under the same number."""
    event = NewEvent(
        EventType.STEP_RESTARTED, action.step, _told(attempt.failure, attempt=attempt.number, restart=action.restart)
    )
    return Transition(
        closings=_closings(attempt, ending),
        openings=[_opening(step, attempt.number, action.restart, timeout)],
        events=[event],
    )


def start(step: Step, number: int, timeout: float | None) -> Transition:
    """Attempt `number` opens, and the step runs."""
    change = StepChange(step.id, BEFORE_ATTEMPT, StepState.RUNNING, fence=step.fence)
    event = NewEvent(EventType.STEP_STARTED, step.id, {"kind": step.kind, "attempt": number})
    return Transition(steps=[change], openings=[_opening(step, number, 0, timeout)], events=[event])


def finish_light(step: Step, outputs: Outputs) -> Transition:
    """A step without an attempt is evaluated and over."""
    change = StepChange(step.id, BEFORE_ATTEMPT, StepState.SUCCEEDED, outputs=outputs)
    events = [
        NewEvent(EventType.STEP_STARTED, step.id, {"kind": step.kind, "attempt": 1}),
        NewEvent(EventType.STEP_SUCCEEDED, step.id),
    ]
    return Transition(steps=[change], events=events)


def fail_to_begin(step: Step, failure: Failure) -> Transition:
    """The step fails before any attempt: its guard or its inputs could not be evaluated."""
    change = StepChange(step.id, BEFORE_ATTEMPT, StepState.FAILED, failure=failure)
    return Transition(steps=[change], events=[NewEvent(EventType.STEP_FAILED, step.id, _told(failure))])


def skip(step: Step, reason: str) -> Transition:
    """The step's guard was false."""
    change = StepChange(step.id, BEFORE_ATTEMPT, StepState.SKIPPED)
    return Transition(steps=[change], events=[NewEvent(EventType.STEP_SKIPPED, step.id, {"reason": reason})])


def close(state: RunState, outputs: Outputs, failure: Failure | None) -> Transition:
    """The run ends."""
    return Transition(
        run=RunClosing(state, outputs, failure), events=[NewEvent(_RUN_EVENTS[state], None, _told(failure))]
    )


_KEEPS_OUTPUTS = frozenset({StepState.SUCCEEDED, StepState.FAILED})


def _closings(attempt: Attempt | None, ending: Ending | None) -> list[AttemptClosing]:
    if attempt is None or ending is None:
        return []
    ref = attempt.ref
    return [AttemptClosing(ref.attempt, ref.fence, ending.state, ending.outputs, ending.failure, ending.log)]


def _opening(step: Step, number: int, restart: int, timeout: float | None) -> AttemptOpening:
    return AttemptOpening(
        step=step.id,
        attempt=uuid6.uuid7(),
        after=step.fence,
        number=number,
        restart=restart,
        nonce=secrets.token_hex(16),
        timeout=timeout,
    )


def _told(failure: Failure | None, **more: Any) -> Mapping[str, Any]:
    told = {name: value for name, value in more.items() if value not in ("", None)}
    return told | (failure.to_json() if failure else {})
