"""An attempt's store that waits: while the server is away a call pauses, and it goes on once the server is back.

A write whose connection broke may be there or not, so it cannot simply be made again: once a try of it was lost,
the store is read for what the write would have left, before it is made again and where it is refused then.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar
from uuid import UUID, uuid4

from pilothouse.records.events import NewEvent
from pilothouse.records.failures import Failure
from pilothouse.records.queues import QueueItem, QueueName
from pilothouse.records.sessions import Appended, NewEntry, NewToolCall, Session, ToolCallRow, ToolOutcome
from pilothouse.records.states import AttemptState
from pilothouse.records.values import BlobRef, Outputs, Stored, decode
from pilothouse.store.errors import Conflict, StoreError, StoreUnavailable
from pilothouse.store.ports import AttemptStore
from pilothouse.store.rows import tool_outcome_row

T = TypeVar("T")

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
"""Seconds between two tries: doubled from the first to the longest, and up to half of it less, by chance."""

_DOUBLINGS = 10


async def back_off(tries: int) -> None:
    """Waits after that many tries in vain."""
    pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(tries - 1, _DOUBLINGS))
    await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - nothing secret


class Outages:
    """Waits for a store through its outages. `tell` hears of the begin and the end of each, however many calls
    wait; `pause` is given the number of a call's tries."""

    def __init__(self, tell: Callable[[str], None], pause: Callable[[int], Awaitable[None]] = back_off) -> None:
        self._tell = tell
        self._pause = pause
        self._away = False

    async def outlast(self, call: Callable[[], Awaitable[T]]) -> T:
        """What the call answers once the store is there; it is made again as long as it raises StoreUnavailable.

        A task that was asked to end waits for nothing: what it still writes gets a single try.
        """
        tries = 0
        while True:
            try:
                answer = await call()
            except StoreUnavailable as error:
                self._gone(error)
                if _asked_to_end():
                    raise
            except StoreError:
                self._answered()
                raise
            else:
                self._answered()
                return answer
            tries += 1
            await self._pause(tries)

    def _gone(self, error: StoreUnavailable) -> None:
        if not self._away:
            self._away = True
            self._tell(f"the store is away, agents wait: {error}")

    def _answered(self) -> None:
        if self._away:
            self._away = False
            self._tell("the store is back, agents go on")


def patient(store: AttemptStore, outages: Outages) -> AttemptStore:
    """The store, whose calls wait through outages instead of raising StoreUnavailable."""
    return _PatientStore(store, outages)


class _PatientStore:
    def __init__(self, store: AttemptStore, outages: Outages) -> None:
        self.ref = store.ref
        self._store = store
        self._outages = outages

    async def open_session(self, session: UUID, name: str | None = None) -> Session:
        return await self._outages.outlast(lambda: self._store.open_session(session, name))

    async def append(
        self,
        session: UUID,
        leaf: UUID | None,
        entries: Sequence[NewEntry],
        events: Sequence[NewEvent] = (),
        outcomes: Sequence[ToolOutcome] = (),
        consumed: Sequence[UUID] = (),
    ) -> Appended:
        return await self._write(
            lambda: self._store.append(session, leaf, entries, events, outcomes, consumed),
            lambda: self._appended(session, entries, outcomes),
        )

    async def queued(self, session: UUID) -> Sequence[QueueItem]:
        return await self._outages.outlast(lambda: self._store.queued(session))

    async def clear(self, session: UUID, queues: Sequence[QueueName], id: UUID | None = None) -> Sequence[QueueItem]:
        under = id or uuid4()
        return await self._outages.outlast(lambda: self._store.clear(session, queues, under))

    async def tool_calls(self, session: UUID, turn: UUID) -> Sequence[ToolCallRow]:
        return await self._outages.outlast(lambda: self._store.tool_calls(session, turn))

    async def intend(self, session: UUID, call: NewToolCall, events: Sequence[NewEvent] = ()) -> ToolCallRow:
        return await self._write(
            lambda: self._store.intend(session, call, events), lambda: self._intended(session, call)
        )

    async def record(self, session: UUID, outcome: ToolOutcome, events: Sequence[NewEvent] = ()) -> Stored:
        return await self._write(
            lambda: self._store.record(session, outcome, events), lambda: self._recorded(session, outcome)
        )

    async def put_blob(self, data: bytes) -> BlobRef:
        return await self._outages.outlast(lambda: self._store.put_blob(data))

    async def get_blob(self, digest: str) -> bytes:
        return await self._outages.outlast(lambda: self._store.get_blob(digest))

    async def finish(self, state: AttemptState, outputs: Outputs | None = None, failure: Failure | None = None) -> None:
        """After an outage Superseded may be the work of the first try, whose answer was lost. It is raised all the
        same: an attempt that is not open can read nothing, and either way its process ends and its row tells how."""
        await self._outages.outlast(lambda: self._store.finish(state, outputs, failure))

    async def _write(self, write: Callable[[], Awaitable[T]], find: Callable[[], Awaitable[T | None]]) -> T:
        """Makes a write that must not be made twice. `find` reads what it leaves behind, None if it is not there.

        It is asked before the next try, as an idempotent intent would be taken again, and after a refusal, as
        the server may have carried on with a lost try meanwhile.
        """
        tried = False

        async def attempt() -> T:
            nonlocal tried
            again, tried = tried, True
            if again and (found := await find()) is not None:
                return found
            try:
                return await write()
            except Conflict:
                if again and (found := await find()) is not None:
                    return found
                raise

        return await self._outages.outlast(attempt)

    async def _appended(
        self, session: UUID, entries: Sequence[NewEntry], outcomes: Sequence[ToolOutcome]
    ) -> Appended | None:
        """Whether anything waits is not known then, so it may."""
        written = (await self._store.open_session(session)).entries
        mine = {entry.id: entry for entry in written if entry.attempt == self.ref.attempt}
        found = [mine[entry.id] for entry in entries if entry.id in mine]
        recorded = [outcome for outcome in outcomes if await self._recorded(session, outcome)]
        wanted = len(entries) + len(outcomes)
        return Appended(found, waiting=True) if 0 < wanted == len(found) + len(recorded) else None

    async def _intended(self, session: UUID, call: NewToolCall) -> ToolCallRow | None:
        row = await self._call(session, call.turn, call.ordinal)
        if row is None or row.result is not None or row.attempt != self.ref.attempt:
            return None
        asked = (call.call, call.tool, call.arguments, call.idempotent)
        return row if (row.call, row.tool, row.arguments, row.idempotent) == asked else None

    async def _recorded(self, session: UUID, outcome: ToolOutcome) -> Stored | None:
        row = await self._call(session, outcome.turn, outcome.ordinal)
        if row is None or row.result is None:
            return None
        columns, _ = tool_outcome_row(outcome)
        asked = (decode(columns["result"]), columns["is_error"])
        return row.result if (row.result.to_json(), row.is_error) == asked else None

    async def _call(self, session: UUID, turn: UUID, ordinal: int) -> ToolCallRow | None:
        rows = await self._store.tool_calls(session, turn)
        return next((row for row in rows if row.ordinal == ordinal), None)


def _asked_to_end() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
