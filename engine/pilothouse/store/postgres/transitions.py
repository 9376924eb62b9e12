"""A transition as the parameters of its call, and what each of its refusals means."""

from typing import Any

from pilothouse.records.runs import RunRef
from pilothouse.store.postgres.calls import Refusals, row_json, rows_json, run_params
from pilothouse.store.refusals import closing_refused, deposed, no_run, opening_refused, run_refused, step_refused
from pilothouse.store.rows import Row, closing_row, event_row, opening_row, run_closing_row, step_change_row, step_key
from pilothouse.store.rules import seconds
from pilothouse.store.transitions import AttemptClosing, AttemptOpening, StepChange, Transition


def transition_params(run: RunRef, epoch: int, transition: Transition) -> dict[str, Any]:
    """Raises ValueRefused before anything is sent."""
    return run_params(run) | {
        "epoch": epoch,
        "steps": rows_json(map(_step, transition.steps)),
        "closings": rows_json(map(_closing, transition.closings)),
        "openings": rows_json(map(_opening, transition.openings)),
        "closing": row_json(run_closing_row(transition.run)) if transition.run else None,
        "events": rows_json(map(event_row, transition.events)),
    }


def transition_refusals(run: RunRef, epoch: int, transition: Transition) -> Refusals:
    return {
        "no_run": lambda _: no_run(run),
        "deposed": lambda _: deposed(run, epoch),
        "step": lambda place: step_refused(transition.steps[place]),
        "closing": lambda place: closing_refused(transition.closings[place]),
        "opening": lambda place: opening_refused(transition.openings[place]),
        "run": lambda _: run_refused(),
    }


def _step(change: StepChange) -> Row:
    return (
        step_key(change.id)
        | step_change_row(change)
        | {
            "final": change.state.final,
            "expect": [state.value for state in change.expect],
            "fence": change.fence,
            "wake_in": seconds(change.wake_in, "wake_in"),
        }
    )


def _closing(closing: AttemptClosing) -> Row:
    return closing_row(closing) | {"id": closing.attempt, "fence": closing.fence}


def _opening(opening: AttemptOpening) -> Row:
    return opening_row(opening) | {"after": opening.after, "timeout": seconds(opening.timeout, "timeout")}
