"""A run as data: what `-o json` and `-o yaml` print. The shape is that of a Workflow's status."""

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Any

from pilothouse.records.events import Event
from pilothouse.records.failures import Failure
from pilothouse.records.runs import Run, Snapshot, Step
from pilothouse.store.keeping import load
from pilothouse.store.ports import RunStore


async def run_view(store: RunStore, snapshot: Snapshot) -> dict[str, Any]:
    """The run with its steps in order and its outputs as values."""
    run = snapshot.run
    outputs = [{"name": name, "value": value} for name, value in (await output_values(store, run)).items()]
    return {
        "workflow": run.workflow,
        "namespace": run.namespace,
        "run": _run(snapshot),
        "steps": [_step(step) for step in snapshot.steps.values()],
        "outputs": outputs,
    } | _failure(run.failure)


def summary_view(snapshot: Snapshot) -> dict[str, Any]:
    """The run as one row of a list."""
    return {"workflow": snapshot.run.workflow, "namespace": snapshot.run.namespace, "run": _run(snapshot)}


def event_view(event: Event) -> dict[str, Any]:
    """One event."""
    step = {"step": str(event.step)} if event.step else {}
    return {"seq": event.seq, "at": _time(event.at), "type": event.type.value} | step | {"data": dict(event.data)}


async def output_values(store: RunStore, run: Run) -> dict[str, Any]:
    """The outputs of a run by name, wherever they are kept."""
    get_blob = partial(store.get_blob, run.ref.tenant)
    return {name: await load(stored, get_blob) for name, stored in run.outputs.items()}


def settled(steps: Iterable[Step]) -> str:
    """Settled steps of all, as `3/7`."""
    every = list(steps)
    return f"{sum(step.state.final for step in every)}/{len(every)}"


def _run(snapshot: Snapshot) -> dict[str, Any]:
    run = snapshot.run
    return {
        "id": str(run.ref.run),
        "number": run.number,
        "key": run.key,
        "state": run.state.value,
        "progress": settled(snapshot.steps.values()),
        "startedAt": _time(run.created_at),
        "finishedAt": _time(run.finished_at),
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "path": str(step.id),
        "kind": step.kind,
        "state": step.state.value,
        "attempts": step.attempts,
        "startedAt": _time(step.started_at),
        "finishedAt": _time(step.finished_at),
    } | _failure(step.failure)


def _failure(failure: Failure | None) -> dict[str, Any]:
    return {} if failure is None else {"failure": failure.to_json()}


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
