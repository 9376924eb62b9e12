"""A run as data: what `-o json` and `-o yaml` print. The shape is that of a Workflow's status."""

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Any

from pilothouse.cli.reading import RunReader
from pilothouse.records.events import Event
from pilothouse.records.failures import Failure
from pilothouse.records.runs import Run, Snapshot, Step
from pilothouse.store.history import RunLine
from pilothouse.store.keeping import load


async def run_view(store: RunReader, snapshot: Snapshot) -> dict[str, Any]:
    """The run with its steps in order and its outputs as values."""
    run = snapshot.run
    outputs = [{"name": name, "value": value} for name, value in (await output_values(store, run)).items()]
    return {
        "workflow": run.workflow,
        "namespace": run.namespace,
        "run": _run(run, settled(snapshot.steps.values())),
        "steps": [_step(step) for step in snapshot.steps.values()],
        "outputs": outputs,
    } | _failure(run.failure)


def summary_view(line: RunLine) -> dict[str, Any]:
    """The run as one row of a list."""
    run = line.run
    return {"workflow": run.workflow, "namespace": run.namespace, "run": _run(run, progress(line))}


def event_view(event: Event) -> dict[str, Any]:
    """One event."""
    step = {"step": str(event.step)} if event.step else {}
    return {"seq": event.seq, "at": _time(event.at), "type": event.type.value} | step | {"data": dict(event.data)}


async def output_values(store: RunReader, run: Run) -> dict[str, Any]:
    """The outputs of a run by name, wherever they are kept."""
    get_blob = partial(store.get_blob, run.ref.tenant)
    return {name: await load(stored, get_blob) for name, stored in run.outputs.items()}


def settled(steps: Iterable[Step]) -> str:
    """Settled steps of all, as `3/7`."""
    every = list(steps)
    return f"{sum(step.state.final for step in every)}/{len(every)}"


def progress(line: RunLine) -> str:
    """As `settled`."""
    return f"{line.settled}/{line.steps}"


def _run(run: Run, progress: str) -> dict[str, Any]:
    return {
        "id": str(run.ref.run),
        "number": run.number,
        "key": run.key,
        "state": run.state.value,
        "progress": progress,
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
