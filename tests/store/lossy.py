"""An attempt whose connection to its store loses what a test says, and its store made patient."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast
from uuid import UUID

import pytest

from pilothouse.records.events import EventType, NewEvent
from pilothouse.records.queues import QueueItem, QueueName
from pilothouse.records.runs import AttemptRef
from pilothouse.records.sessions import NewToolCall, ToolOutcome
from pilothouse.records.states import AttemptState
from pilothouse.store.errors import StoreUnavailable
from pilothouse.store.faults import Point, faulty
from pilothouse.store.patient import Outages, patient
from pilothouse.store.ports import AttemptStore, RunStore
from tests.store.samples import BUILD, created, message, open_attempt, successor, tool_call, with_turn

MARK = NewEvent(EventType.TOOL_FINISHED, BUILD, {"told": "once"})
"""The event that goes with each write."""

REQUEST, REPLY, NOTHING = "request", "reply", "nothing"


@dataclass
class Lossy:
    """What the connection loses of one write after the other: its request, its reply, or nothing. The store is
    away until the script has ended."""

    script: list[str] = field(default_factory=list)
    now: str = NOTHING

    def before(self, point: Point) -> None:
        self.now = self.script.pop(0) if self.script else NOTHING
        self._lose(REQUEST)

    def after(self, point: Point) -> None:
        self._lose(REPLY)

    def _lose(self, what: str) -> None:
        if self.now == what:
            raise StoreUnavailable("the server is away")


@dataclass
class Desk:
    """An open attempt with a session, a turn and an intended call (ordinal 0), and its store once as it is and
    once patient. `meanwhile` happens in each pause."""

    store: RunStore
    lossy: Lossy
    direct: AttemptStore
    session: UUID
    turn: UUID
    told: list[str] = field(default_factory=list)
    pauses: list[int] = field(default_factory=list)
    meanwhile: Callable[[], Awaitable[object]] | None = None

    @property
    def ref(self) -> AttemptRef:
        return self.direct.ref

    @property
    def patient(self) -> AttemptStore:
        return self.made_patient(faulty(self.store, self.lossy).attempt_store(self.ref))

    def made_patient(self, store: object) -> AttemptStore:
        return patient(cast(AttemptStore, store), Outages(self.told.append, self.pause))

    async def pause(self, tries: int) -> None:
        self.pauses.append(tries)
        if self.meanwhile:
            await self.meanwhile()

    async def marks(self) -> int:
        """How often the event of the write was written."""
        return sum(event.data == MARK.data for event in await self.store.events(self.ref.run))

    async def successor(self) -> "Desk":
        """The desk of the attempt that comes next and goes on with the session."""
        return replace(self, direct=await successor(self.store, self.direct, self.session))

    async def steer(self, text: str = "a hint") -> QueueItem:
        """A message that waits for the attempt."""
        outside = self.store.session_store()
        said = {"role": "user", "content": text}
        return await outside.enqueue(self.ref.run.tenant, self.session, QueueName.STEER, said)

    def call(self, **changes: Any) -> NewToolCall:
        return tool_call(self.turn, **{"ordinal": 1, **changes})

    def outcome(self, text: str = "ours") -> ToolOutcome:
        return ToolOutcome(self.turn, 0, {"content": text, "details": [1, None]}, is_error=True)


@pytest.fixture
async def desk(store: RunStore) -> Desk:
    direct = store.attempt_store(await open_attempt(store, await created(store)))
    session, turn = await with_turn(direct)
    await direct.intend(session, tool_call(turn))
    return Desk(store, Lossy(), direct, session, turn)


WRITES: dict[str, Callable[[Desk, AttemptStore], Awaitable[object]]] = {
    "open_session": lambda desk, store: store.open_session(desk.session),
    "append": lambda desk, store: store.append(desk.session, desk.turn, [message()], [MARK]),
    "clear": lambda desk, store: store.clear(desk.session, list(QueueName)),
    "intend": lambda desk, store: store.intend(desk.session, desk.call(), [MARK]),
    "record": lambda desk, store: store.record(desk.session, desk.outcome(), [MARK]),
    "put_blob": lambda desk, store: store.put_blob(b"bytes"),
    "finish": lambda desk, store: store.finish(AttemptState.SUCCEEDED),
}
"""Every write of the port, by its name."""


@dataclass
class Late:
    """Loses its first write, which the server carries out only when the second one arrives."""

    store: AttemptStore
    late: tuple[Any, ...] | None = None

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.store, name)

        async def write(*args: Any) -> Any:
            if self.late is None:
                self.late = args
                raise StoreUnavailable("the connection broke")
            await method(*self.late)
            return await method(*args)

        return write if name in WRITES.keys() - {"open_session"} else method


@dataclass
class Once:
    """Loses the first call of each method."""

    store: AttemptStore
    lost: set[str] = field(default_factory=set)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.store, name)

        async def call(*args: Any) -> Any:
            if name not in self.lost:
                self.lost.add(name)
                raise StoreUnavailable("the connection broke")
            return await method(*args)

        return call if callable(method) else method
