"""`get`, `describe`, `events`: what is recorded of runs, printed."""

import json
from collections.abc import Sequence
from datetime import datetime

from pilothouse.cli.command import complete
from pilothouse.cli.following import follow, recorded
from pilothouse.cli.names import name_of
from pilothouse.cli.printing import duration, print_data, print_table, print_text
from pilothouse.cli.progress import event_line
from pilothouse.cli.reading import Reading, RunReader, Source
from pilothouse.cli.result import print_outputs
from pilothouse.cli.view import event_view, progress, run_view, settled, summary_view
from pilothouse.records.events import Event
from pilothouse.records.runs import Attempt, Run, Snapshot, Step

_HEADS = ("RUN", "STATE", "PROGRESS", "AGE", "TOOK")


def get(source: Source, name: str | None, namespace: str | None, output: str) -> int:
    """`pilothouse get`."""

    async def command() -> int:
        async with source.reading(namespace) as reading:
            if name is None:
                await _list(reading, output)
            else:
                run = await reading.find(name)
                await _one(reading.store, await reading.store.snapshot(run.ref), output)
        return 0

    return complete(command)


def describe(source: Source, name: str, namespace: str | None) -> int:
    """`pilothouse describe`."""

    async def command() -> int:
        async with source.reading(namespace) as reading:
            run, store = await reading.find(name), reading.store
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


def events(source: Source, name: str, follow_on: bool, namespace: str | None, output: str) -> int:
    """`pilothouse events`. As data, one object a line or document, so that it can be followed as well."""

    async def command() -> int:
        async with source.reading(namespace) as reading:
            run, read = await reading.find(name), follow if follow_on else recorded
            async for event in read(reading.store, run.ref):
                _print_event(event, output)
        return 0

    return complete(command)


async def _list(reading: Reading, output: str) -> None:
    lines = await reading.lines()
    if output != "text":
        print_data([summary_view(line) for line in lines], output)
    elif not lines:
        print_text(f"no runs in namespace {reading.namespace}")
    else:
        print_table(_HEADS, [_row(line.run, progress(line), line.now) for line in lines])


async def _one(store: RunReader, snapshot: Snapshot, output: str) -> None:
    if output != "text":
        print_data(await run_view(store, snapshot), output)
        return
    print_table(_HEADS, [_row(snapshot.run, settled(snapshot.steps.values()), snapshot.now)])
    print_text("")
    _steps(snapshot)
    await print_outputs(store, snapshot.run)


def _row(run: Run, progress: str, now: datetime) -> Sequence[str]:
    end = run.finished_at or now
    age, took = duration(now - run.created_at), duration(end - run.created_at)
    return (name_of(run), run.state.value, progress, age, took)


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
