"""Live progress of a run: a table that renews itself on a terminal, a line an event elsewhere."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from pilothouse.cli.printing import safe
from pilothouse.records.events import Event, EventType
from pilothouse.records.failures import Failure
from pilothouse.records.runs import Snapshot, StepId
from pilothouse.records.states import StepState

if TYPE_CHECKING:
    from rich.table import Table

_STATES = {
    EventType.STEP_STARTED: StepState.RUNNING,
    EventType.STEP_RESTARTED: StepState.RUNNING,
    EventType.STEP_RETRYING: StepState.RETRYING,
    EventType.STEP_SUCCEEDED: StepState.SUCCEEDED,
    EventType.STEP_FAILED: StepState.FAILED,
    EventType.STEP_ERROR: StepState.ERROR,
    EventType.STEP_CANCELLED: StepState.CANCELLED,
    EventType.STEP_SKIPPED: StepState.SKIPPED,
    EventType.STEP_OMITTED: StepState.OMITTED,
}
"""What an event says of its step's state."""

_COLOURS = {
    StepState.RUNNING: "cyan",
    StepState.RETRYING: "yellow",
    StepState.SUCCEEDED: "green",
    StepState.FAILED: "red",
    StepState.ERROR: "red",
    StepState.CANCELLED: "magenta",
}


class Progress(Protocol):
    """Shows the events of a run as they come."""

    def show(self, event: Event) -> None: ...


class Lines:
    """One line an event."""

    def show(self, event: Event) -> None:
        sys.stderr.write(f"{event.at.astimezone():%H:%M:%S}  {event_line(event)}\n")
        sys.stderr.flush()


class Live:
    """A table of the steps, renewed in place."""

    def __init__(self, snapshot: Snapshot) -> None:
        from rich.console import Console
        from rich.live import Live as RichLive

        self._states = {id_: step.state for id_, step in snapshot.steps.items()}
        self._notes: dict[StepId, str] = {}
        self._live = RichLive(console=Console(stderr=True), refresh_per_second=8, get_renderable=self._table)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def show(self, event: Event) -> None:
        if event.step is not None:
            self._states[event.step] = _STATES.get(event.type, self._states[event.step])
            self._notes[event.step] = _one_line(event)

    def _table(self) -> "Table":
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False)
        for head in ("STEP", "STATE", ""):
            table.add_column(head, no_wrap=True)
        for id_, state in self._states.items():
            colour = _COLOURS.get(state, "dim")
            table.add_row(str(id_), Text(state.value, style=colour), Text(self._notes.get(id_, ""), style="dim"))
        return table


@contextmanager
def progress_of(snapshot: Snapshot) -> Iterator[Progress]:
    """The progress for where standard error goes to."""
    if sys.stderr.isatty():
        with Live(snapshot) as live:
            yield live
    else:
        yield Lines()


def event_line(event: Event) -> str:
    """The event in one line, as `write  ToolStarted  shell`."""
    told = _one_line(event)
    return "  ".join(part for part in (f"{event.step or '-'!s:<16}", f"{event.type.value:<14}", told) if part).rstrip()


def _one_line(event: Event) -> str:
    return " ".join(safe(describe(event)).split())


def describe(event: Event) -> str:
    """What the event says beyond its type, in a few words."""
    data = event.data
    match event.type:
        case EventType.STEP_STARTED | EventType.STEP_RESTARTED if data.get("attempt", 1) > 1 or "restart" in data:
            return f"attempt {data['attempt']}" + (f", restart {data['restart']}" if "restart" in data else "")
        case EventType.STEP_RETRYING:
            return f"in {data['delaySeconds']:g}s after {Failure.from_json(dict(data))}"
        case EventType.TOOL_STARTED:
            return f"{data['tool']}"
        case EventType.TOOL_FINISHED:
            return f"{data['tool']}{' failed' if data['isError'] else ''}"
        case EventType.TURN_RECORDED:
            return _turn(data)
        case EventType.SHUTDOWN_REQUESTED:
            return str(data["verb"])
        case _:
            return str(Failure.from_json(dict(data))) if "code" in data else str(data.get("reason", ""))


def _turn(data: Mapping[str, Any]) -> str:
    calls = data["toolCalls"]
    if data["stopReason"] in {"error", "aborted"}:
        return str(data["stopReason"])
    return f"{calls} tool call{'s' if calls > 1 else ''}" if calls else "answered"
