"""Strikes: one write of an operator, to the database or to the API server, goes wrong just before or just after."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, cast

from pilothouse.store.faults import Point, faulty
from pilothouse.store.ports import RunStore
from pilothouse_operator.kube.port import Kube

WRITES = frozenset({"create", "patch", "set_status", "delete"})


class Crash(BaseException):
    """The operator's process ends here."""


@dataclass
class Strike:
    """Raises what `error` makes at the `number`th write of both, counted from 1; 0 strikes nowhere. `points` are the
    names of those that were passed."""

    number: int = 0
    moment: str = "before"
    error: Callable[[], BaseException] = Crash
    points: list[str] = field(default_factory=list)

    def before(self, point: Point) -> None:
        self.points.append(point.name)
        self._strike("before")

    def after(self, point: Point) -> None:
        self._strike("after")

    def _strike(self, moment: str) -> None:
        if (len(self.points), moment) == (self.number, self.moment):
            raise self.error()

    def store(self, store: RunStore) -> RunStore:
        return faulty(store, self)

    def kube(self, kube: Kube) -> Kube:
        return cast(Kube, _StruckKube(kube, self))


@dataclass(frozen=True, slots=True)
class _StruckKube:
    _kube: Kube
    _strike: Strike

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._kube, name)
        return self._around(name, method) if name in WRITES else method

    def _around(self, verb: str, write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def written(*args: Any) -> Any:
            point = Point(0, f"{verb} {args[0].plural}")
            self._strike.before(point)
            result = await write(*args)
            self._strike.after(point)
            return result

        return written
