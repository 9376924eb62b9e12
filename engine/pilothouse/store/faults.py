"""Fault points: a store that calls a hook before and after each write, so that a test can end the process,
or raise, at any recorded transition."""

import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, cast

from pilothouse.records.runs import AttemptRef
from pilothouse.store.ports import PagedAttemptStore, RunStore
from pilothouse.store.transitions import Transition

_RUN_WRITES = frozenset({"create_run", "commit", "carry", "request_shutdown", "put_blob"})
_ATTEMPT_WRITES = frozenset(
    {"open_session", "session_page", "append", "clear", "clear_page", "intend", "record", "put_blob", "finish"}
)


@dataclass(frozen=True, slots=True)
class Point:
    """The `number`th write of this process, counted from 1. `name` is the method's, and for a transition
    `commit:` and the type of its first event, as `commit:StepStarted`."""

    number: int
    name: str


class Hook(Protocol):
    """What happens at a point: nothing, an exception, or the end of the process."""

    def before(self, point: Point) -> None:
        """Called before the write is begun; what it raises prevents the write."""
        ...

    def after(self, point: Point) -> None:
        """Called once the write is there; what it raises is what the writer sees."""
        ...


@dataclass(slots=True)
class Record:
    """Writes the points down, as a dry run does."""

    points: list[Point] = field(default_factory=list)

    def before(self, point: Point) -> None:
        self.points.append(point)

    def after(self, point: Point) -> None:
        """Nothing: the point is known already."""


@dataclass(frozen=True, slots=True)
class KillAt:
    """Ends this process with SIGKILL at one point."""

    number: int
    moment: Literal["before", "after"]

    def before(self, point: Point) -> None:
        self._strike(point, "before")

    def after(self, point: Point) -> None:
        self._strike(point, "after")

    def _strike(self, point: Point, moment: str) -> None:
        if (point.number, moment) == (self.number, self.moment):
            os.kill(os.getpid(), signal.SIGKILL)


def faulty(store: RunStore, hook: Hook) -> RunStore:
    """The store with the hook around each write, also those of the attempt stores that it gives out."""
    return cast(RunStore, _FaultyRunStore(store, _Points(hook)))


@dataclass(slots=True)
class _Points:
    """Counts the writes of a store and of its attempt stores together."""

    hook: Hook
    passed: int = 0

    def around(self, method: str, write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def written(*args: Any, **kwargs: Any) -> Any:
            self.passed += 1
            point = Point(self.passed, _name(method, args))
            self.hook.before(point)
            result = await write(*args, **kwargs)
            self.hook.after(point)
            return result

        return written


def _name(method: str, args: tuple[Any, ...]) -> str:
    events = [event.type for arg in args if isinstance(arg, Transition) for event in arg.events]
    return f"{method}:{events[0]}" if events else method


@dataclass(frozen=True, slots=True)
class _FaultyRunStore:
    _store: RunStore
    _points: _Points

    def attempt_store(self, ref: AttemptRef) -> PagedAttemptStore:
        return cast(PagedAttemptStore, _FaultyAttemptStore(self._store.attempt_store(ref), self._points))

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        return self._points.around(name, method) if name in _RUN_WRITES else method


@dataclass(frozen=True, slots=True)
class _FaultyAttemptStore:
    _store: PagedAttemptStore
    _points: _Points

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._store, name)
        return self._points.around(name, attribute) if name in _ATTEMPT_WRITES else attribute
