"""`get`, `describe`, `events`: what is recorded of runs, printed."""

import json
from collections.abc import Sequence
from datetime import datetime

from pilothouse.cli.command import complete
from pilothouse.cli.following import follow, recorded
from pilothouse.cli.names import find_run, name_of, tenant_of
from pilothouse.cli.printing import duration, print_data, print_table, print_text
from pilothouse.cli.progress import event_line
from pilothouse.cli.result import print_outputs
from pilothouse.cli.view import event_view, run_view, settled, summary_view
from pilothouse.cli.where import Where
from pilothouse.records.events import Event
from pilothouse.records.runs import Attempt, Snapshot, Step
from pilothouse.store.ports import RunStore


def get(where: Where, name: str | None, namespace: str, output: str) -> int:
    """`pilothouse get`."""

    async def command() -> int:
        async with where.store() as store:
            if name is None:
                await _list(store, namespace, output)
            else:
                run = await find_run(store, name, namespace)
                await _one(store, await store.snapshot(run.ref), output)
        return 0

    return complete(command)


def describe(where: Where, name: str, namespace: str) -> int:
    """`pilothouse describe`."""

    async def command() -> int:
        async with where.store() as store:
            run = await find_run(store, name, namespace)
            snapshot = await store.snapshot(run.ref)
            _describe_run(snapshot)
            print_text("\nSteps:")
            _steps(snapshot)
            print_text("\nAttempts:")
            _attempts(await store.attempts(run.ref), snapshot.now)
            await print_outputs(store, snapshot.run)
            print_text("\nEvents:")
            async for event in recorded(store, run.ref):
                _print_event(event)
        return 0

    return complete(command)


def events(where: Where, name: str, follow_on: bool, namespace: str, output: str) -> int:
    """`pilothouse events`. As data, one object a line or document, so that it can be followed as well."""

    async def command() -> int:
        async with where.store() as store:
            run = await find_run(store, name, namespace)
            async for event in follow(store, run.ref) if follow_on else recorded(store, run.ref):
                _print_event(event, output)
        return 0

    return complete(command)


async def _list(store: RunStore, namespace: str, output: str) -> None:
    runs = await store.runs(await tenant_of(store, namespace))
    snapshots = [await store.snapshot(run.ref) for run in runs]
    if output != "text":
        print_data([summary_view(snapshot) for snapshot in snapshots], output)
    elif not snapshots:
        print_text(f"no runs in namespace {namespace}")
    else:
        print_table(("RUN", "STATE", "PROGRESS", "AGE", "TOOK"), map(_row, snapshots))


async def _one(store: RunStore, snapshot: Snapshot, output: str) -> None:
    if output != "text":
        print_data(await run_view(store, snapshot), output)
        return
    print_table(("RUN", "STATE", "PROGRESS", "AGE", "TOOK"), [_row(snapshot)])
    print_text("")
    _steps(snapshot)
    await print_outputs(store, snapshot.run)


def _row(snapshot: Snapshot) -> Sequence[str]:
    run = snapshot.run
    end = run.finished_at or snapshot.now
    age, took = duration(snapshot.now - run.created_at), duration(end - run.created_at)
    return (name_of(run), run.state.value, settled(snapshot.steps.values()), age, took)


def _describe_run(snapshot: Snapshot) -> None:
    run = snapshot.run
    print_text(f"Run:        {name_of(run)}\nId:         {run.ref.run}\nNamespace:  {run.namespace}")
    print_text(f"State:      {run.state.value}\nProgress:   {settled(snapshot.steps.values())}\nKey:        {run.key}")
    print_text(f"Started:    {run.created_at.isoformat(timespec='seconds')}")
    if run.shutdown is not None:
        print_text(f"Shutdown:   {run.shutdown.value}")
    if run.deadline is not None:
        print_text(f"Deadline:   {run.deadline.isoformat(timespec='seconds')}")
    for name, value in run.params.items():
        print_text(f"Param:      {name} = {json.dumps(value, ensure_ascii=False)}")
    if run.failure is not None:
        print_text(f"Failure:    {run.failure}")


def _steps(snapshot: Snapshot) -> None:
    rows = [_step_row(step, snapshot.now) for step in snapshot.steps.values()]
    print_table(("STEP", "KIND", "STATE", "ATTEMPTS", "TOOK", "MESSAGE"), rows)


def _step_row(step: Step, now: datetime) -> Sequence[str]:
    took = duration((step.finished_at or now) - step.started_at) if step.started_at else ""
    message = str(step.failure).replace("\n", " ") if step.failure else ""
    return (str(step.id), step.kind, step.state.value, str(step.attempts or ""), took, message)


def _attempts(attempts: Sequence[Attempt], now: datetime) -> None:
    rows = [
        (
            str(attempt.step),
            str(attempt.number),
            str(attempt.restart or ""),
            attempt.state.value,
            duration((attempt.finished_at or now) - attempt.created_at),
            str(attempt.failure or "").replace("\n", " "),
        )
        for attempt in attempts
    ]
    print_table(("STEP", "ATTEMPT", "RESTART", "STATE", "TOOK", "MESSAGE"), rows)


def _print_event(event: Event, output: str = "text") -> None:
    if output == "json":
        print_text(json.dumps(event_view(event)))
    elif output == "yaml":
        print_text("---")
        print_data(event_view(event), output)
    else:
        print_text(f"{event.at.astimezone():%H:%M:%S}  {event_line(event)}")
