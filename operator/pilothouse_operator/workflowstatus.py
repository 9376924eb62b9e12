"""The status of a Workflow: a bounded summary of its latest run. Output only; nothing is ever decided by it. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from pilothouse.api import conditions as c
from pilothouse.records.failures import OUTCOME_UNKNOWN, Failure, FailureCode
from pilothouse.records.runs import Run, Snapshot, Step
from pilothouse.records.states import RunState, StepState
from pilothouse.records.values import BlobRef, Inline, Outputs, digest, encode
from pilothouse_operator.verdict import Said, Standing, Verdict, conditions, cut, ready, timestamp

STEPS_LIMIT = 100
"""Steps that are listed: failed ones, active ones, the newest."""

STEP_MESSAGE_LIMIT = 200
"""Bytes in JSON of a step's message; a hundred of them must fit."""

OUTPUT_LIMIT = 4 * 1024
"""Bytes of an output that stands in the status with its value."""

OUTPUTS_LIMIT = 8 * 1024
"""Bytes of all of them together."""

_FAILED = frozenset({StepState.FAILED, StepState.ERROR})
_ACTIVE = frozenset({StepState.RUNNING, StepState.RETRYING, StepState.WAITING_FOR_APPROVAL})


def status_of(
    obj: Mapping[str, Any],
    verdict: Verdict,
    snapshot: Snapshot | None,
    now: datetime,
    *,
    suspended: bool = False,
    notes: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The whole status. `notes` say of steps, by path, what their Pods wait for."""
    generation = obj["metadata"]["generation"]
    before = (obj.get("status") or {}).get("conditions") or []
    said = [*ready(verdict), *_finished(snapshot, verdict)]
    if suspended:
        said.append(Said(c.SUSPENDED, "True", c.SUSPENDED_BY_USER, "spec.suspend is true: no step starts"))
    return {
        "observedGeneration": generation,
        "conditions": conditions(said, before, generation, now),
        **({} if snapshot is None else {"run": _run(snapshot)}),
        "steps": [] if snapshot is None else _steps(snapshot, notes or {}),
        "outputs": [] if snapshot is None else _outputs(snapshot.run.outputs),
    }


def verdict_of(snapshot: Snapshot, *, suspended: bool = False, notes: Mapping[str, str] | None = None) -> Verdict:
    """Where a Workflow stands whose latest run is this one and is the one that it asks for. `notes` as in
    `status_of`."""
    run = snapshot.run
    if run.state is RunState.SUCCEEDED:
        return Verdict(Standing.READY, c.SUCCEEDED, f"run {run.number} succeeded")
    if run.state is RunState.CANCELLED:
        return Verdict(Standing.STALLED, c.CANCELLED, f"run {run.number} was cancelled")
    if run.state is RunState.FAILED:
        failure = run.failure or Failure(FailureCode.UNK, "no reason was recorded")
        return Verdict(Standing.STALLED, _reason(failure), f"run {run.number}: {failure.code.value} {failure.message}")
    active = [str(step.id) for step in snapshot.steps.values() if step.state in _ACTIVE]
    if not active and suspended:
        return Verdict(Standing.UNKNOWN, c.SUSPENDED_BY_USER, "spec.suspend is true: no step starts")
    return Verdict(Standing.WORKING, c.PROGRESSING, _doing(run, active, notes or {}))


def _doing(run: Run, active: Sequence[str], notes: Mapping[str, str]) -> str:
    for path in active:
        if path in notes:
            return f"run {run.number}: {path} waits: {notes[path]}"
    shown = ", ".join(active[:3]) + (f" and {len(active) - 3} more" if len(active) > 3 else "")
    return f"run {run.number}: {shown}" if active else f"run {run.number} is under way"


def _reason(failure: Failure) -> str:
    if failure.reason == OUTCOME_UNKNOWN:
        return c.OUTCOME_UNKNOWN
    if failure.reason == c.POLICY_REFUSED:
        return c.POLICY_REFUSED
    return c.DEADLINE_EXCEEDED if failure.message == "the run reached its deadline" else c.FAILED


def _finished(snapshot: Snapshot | None, verdict: Verdict) -> list[Said]:
    """False while a run is under way or is to come; a Workflow that cannot run has none to finish."""
    if snapshot is None:
        return []
    if snapshot.run.state.final and verdict.standing in (Standing.READY, Standing.STALLED):
        return [Said(c.FINISHED, "True", verdict.reason, verdict.message)]
    return [Said(c.FINISHED, "False", verdict.reason, verdict.message)]


def _run(snapshot: Snapshot) -> dict[str, Any]:
    run, steps = snapshot.run, snapshot.steps.values()
    return {
        "number": run.number,
        "id": str(run.ref.run),
        "key": run.key,
        "state": run.state.value,
        "progress": f"{sum(1 for step in steps if step.state.final)}/{len(snapshot.steps)}",
        "startedAt": timestamp(run.created_at),
        **({} if run.finished_at is None else {"finishedAt": timestamp(run.finished_at)}),
    }


def _at(at: datetime | None) -> str | None:
    return None if at is None else timestamp(at)


def _steps(snapshot: Snapshot, notes: Mapping[str, str]) -> list[dict[str, Any]]:
    """In the order of the graph; of too many steps those that matter most."""
    steps = list(snapshot.steps.values())
    kept = {step.id for step in _chosen(steps)}
    return [_step(step, notes.get(str(step.id), "")) for step in steps if step.id in kept]


def _chosen(steps: Sequence[Step]) -> Iterable[Step]:
    if len(steps) <= STEPS_LIMIT:
        return steps
    return sorted(steps, key=_urgency)[:STEPS_LIMIT]


def _urgency(step: Step) -> tuple[int, float]:
    newest = -(step.finished_at or step.started_at).timestamp() if step.finished_at or step.started_at else 0.0  # type: ignore[union-attr]
    if step.state in _FAILED:
        return 0, newest
    return (1 if step.state in _ACTIVE else 2 if step.state.final else 3), newest


def _step(step: Step, note: str) -> dict[str, Any]:
    failure = step.failure
    message = (failure.message if failure else "") or note
    said = {
        "path": str(step.id),
        "state": step.state.value,
        "attempts": step.attempts or None,
        "code": failure.code.value if failure else None,
        "message": cut(message, STEP_MESSAGE_LIMIT) or None,
        "startedAt": _at(step.started_at),
        "finishedAt": _at(step.finished_at),
    }
    return {name: value for name, value in said.items() if value is not None}


def _outputs(outputs: Outputs) -> list[dict[str, Any]]:
    shown, left = [], OUTPUTS_LIMIT
    for name, stored in outputs.items():
        text = "" if isinstance(stored, BlobRef) else encode(stored.value)
        if isinstance(stored, Inline) and len(text) <= min(OUTPUT_LIMIT, left):
            left -= len(text)
            shown.append({"name": name, "value": stored.value})
        elif isinstance(stored, BlobRef):
            shown.append({"name": name, "digest": stored.digest, "size": stored.size})
        else:
            shown.append({"name": name, "digest": digest(text.encode()), "size": len(text)})
    return shown


def differs(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> bool:
    """Whether the status has to be written. A list that is empty is as good as none."""
    return _filled(before or {}) != _filled(after)


def _filled(status: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in status.items() if value != []}
