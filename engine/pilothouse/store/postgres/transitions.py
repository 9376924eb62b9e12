"""A transition as statements, each with the Conflict that its failing means."""

from collections.abc import Iterator
from typing import Any

from pilothouse.records.runs import RunRef
from pilothouse.store.errors import StoreError
from pilothouse.store.postgres.queries import queries
from pilothouse.store.postgres.statements import Statement, event_statements, run_params
from pilothouse.store.refusals import closing_refused, opening_refused, run_refused, step_refused
from pilothouse.store.rows import closing_row, opening_row, run_closing_row, step_change_row, step_key
from pilothouse.store.rules import seconds
from pilothouse.store.transitions import AttemptClosing, AttemptOpening, RunClosing, StepChange, Transition

_SQL = queries("transitions")


class Shut(StoreError):  # noqa: N818 - never leaves the store
    """The run took no transition of this epoch: it is not there, or a newer leader has written."""


def transition_statements(run: RunRef, epoch: int, transition: Transition) -> list[Statement]:
    """Every statement of the transition, in its order. Raises ValueRefused before anything is sent."""
    key = run_params(run)
    advance = key | {"epoch": epoch, "events": len(transition.events)}
    return [
        Statement(_SQL["advance"], advance, Shut()),
        *(_step(key, change) for change in transition.steps),
        *(_closing(key, closing) for closing in transition.closings),
        *(_opening(key, opening) for opening in transition.openings),
        *_run(key, transition.run),
        *event_statements(run, transition.events),
    ]


def _step(key: dict[str, Any], change: StepChange) -> Statement:
    params = key | step_key(change.id) | step_change_row(change)
    params |= {
        "final": change.state.final,
        "expect": [state.value for state in change.expect],
        "fence": change.fence,
        "wake_in": seconds(change.wake_in, "wake_in"),
    }
    return Statement(_SQL["change_step"], params, step_refused(change))


def _closing(key: dict[str, Any], closing: AttemptClosing) -> Statement:
    params = key | closing_row(closing) | {"id": closing.attempt, "fence": closing.fence}
    return Statement(_SQL["close_attempt"], params, closing_refused(closing))


def _opening(key: dict[str, Any], opening: AttemptOpening) -> Statement:
    params = key | opening_row(opening)
    params |= {"after": opening.after, "timeout": seconds(opening.timeout, "timeout")}
    return Statement(_SQL["open_attempt"], params, opening_refused(opening))


def _run(key: dict[str, Any], closing: RunClosing | None) -> Iterator[Statement]:
    if closing is not None:
        yield Statement(_SQL["close_run"], key | run_closing_row(closing), run_refused())
