"""A transition applied to the draft of a run, guard by guard."""

from datetime import datetime

from pilothouse.store.memory.tables import RunTables, after
from pilothouse.store.refusals import closing_refused, opening_refused, run_refused, step_refused
from pilothouse.store.rows import closing_row, opening_row, run_closing_row, step_change_row, step_key
from pilothouse.store.rules import seconds
from pilothouse.store.transitions import AttemptClosing, AttemptOpening, RunClosing, StepChange, Transition


def apply(draft: RunTables, epoch: int, transition: Transition, now: datetime) -> None:
    """Raises Conflict or ValueRefused; the draft is then to be thrown away."""
    draft.run = {**draft.run, "leader_epoch": epoch}
    for change in transition.steps:
        _change(draft, change, now)
    for closing in transition.closings:
        _close(draft, closing, now)
    for opening in transition.openings:
        _open(draft, opening, now)
    if transition.run is not None:
        _end(draft, transition.run, now)
    draft.tell(transition.events, now)


def _change(draft: RunTables, change: StepChange, now: datetime) -> None:
    columns = step_key(change.id) | step_change_row(change)
    wake_at = after(now, seconds(change.wake_in, "wake_in"))
    row = draft.steps.get(change.id)
    if row is None or row["state"] not in change.expect or change.fence not in (None, row["fence"]):
        raise step_refused(change)
    started_at = row["started_at"] or (now if change.state in {"Running", "Succeeded"} else None)
    finished_at = now if change.state.final else None
    times = {"started_at": started_at, "finished_at": finished_at, "wake_at": wake_at}
    draft.steps[change.id] = {**row, **columns, **times}


def _close(draft: RunTables, closing: AttemptClosing, now: datetime) -> None:
    columns = closing_row(closing)
    row = draft.attempts.get(closing.attempt)
    if row is None or (row["state"], row["fence"]) != ("Open", closing.fence):
        raise closing_refused(closing)
    draft.attempts[closing.attempt] = {**row, **columns, "finished_at": now}


def _open(draft: RunTables, opening: AttemptOpening, now: datetime) -> None:
    columns = opening_row(opening)
    deadline = after(now, seconds(opening.timeout, "timeout"))
    step = draft.steps.get(opening.step)
    taken = opening.attempt in draft.attempts or draft.open_attempt_of(opening.step)
    if step is None or step["fence"] != opening.after or taken:
        raise opening_refused(opening)
    fence = opening.after + 1
    numbers = {"fence": fence, "attempts": opening.number, "restarts": opening.restart}
    draft.steps[opening.step] = {**step, **numbers}
    key = {"tenant": draft.run["tenant"], "run": draft.run["id"], "fence": fence, "created_at": now}
    draft.attempts[opening.attempt] = _OPEN_ATTEMPT | columns | key | {"deadline": deadline}


def _end(draft: RunTables, closing: RunClosing, now: datetime) -> None:
    columns = run_closing_row(closing)
    if draft.run["state"] != "Running":
        raise run_refused()
    draft.run = {**draft.run, **columns, "finished_at": now}


_OPEN_ATTEMPT = {
    "state": "Open",
    "outputs": "{}",
    "failure": None,
    "log": None,
    "call": None,
    "carrier": None,
    "finished_at": None,
}
