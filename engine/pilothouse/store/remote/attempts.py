"""The AttemptStore over HTTPS, as the process in a Pod has it.

A call is made once. Where its answer is lost, StoreUnavailable says so and nobody knows whether the write is there:
`store/patient.py` reads before it writes again.
"""

from collections.abc import Sequence
from uuid import UUID, uuid4

from pilothouse.records.events import NewEvent
from pilothouse.records.failures import Failure
from pilothouse.records.queues import QueueItem, QueueName
from pilothouse.records.sessions import Appended, NewEntry, NewToolCall, Session, ToolCallRow, ToolOutcome
from pilothouse.records.states import AttemptState
from pilothouse.records.values import BlobRef, Outputs, Stored
from pilothouse.store.remote.answers import (
    read_appended,
    read_blob,
    read_calls,
    read_items,
    read_recorded,
    read_session,
)
from pilothouse.store.remote.connection import Connection
from pilothouse.store.remote.requests import append_text, finish_text, intend_text, record_text
from pilothouse.store.remote.wire import dump
from pilothouse.store.rows import NEW_CALL, entry_of, entry_row, tool_call_of, tool_call_row
from pilothouse.store.rules import chain, session_name


class RemoteAttemptStore:
    """What the process of one attempt may read and write, through a gateway."""

    def __init__(self, connection: Connection) -> None:
        self.ref = connection.ref
        self._connection = connection

    async def open_session(self, session: UUID, name: str | None = None) -> Session:
        text = dump({"session": session, "name": session_name(self.ref.run.tenant, session, name)})
        return await self._connection.call("open_session", text, lambda answer: read_session(session, answer))

    async def append(
        self,
        session: UUID,
        leaf: UUID | None,
        entries: Sequence[NewEntry],
        events: Sequence[NewEvent] = (),
        outcomes: Sequence[ToolOutcome] = (),
        consumed: Sequence[UUID] = (),
    ) -> Appended:
        rows = [entry_row(link) for link in chain(leaf, entries)]
        text = append_text(session, leaf, rows, events, outcomes, consumed)
        written, waiting = await self._connection.call("append", text, lambda answer: read_appended(answer, len(rows)))
        held = {"attempt": self.ref.attempt}
        return Appended((entry_of(row | held | where) for row, where in zip(rows, written, strict=True)), waiting)

    async def queued(self, session: UUID) -> Sequence[QueueItem]:
        return await self._connection.call("queued", dump({"session": session}), read_items)

    async def clear(self, session: UUID, queues: Sequence[QueueName], id: UUID | None = None) -> Sequence[QueueItem]:
        text = dump({"session": session, "queues": [queue.value for queue in queues], "id": id or uuid4()})
        return await self._connection.call("clear", text, read_items)

    async def tool_calls(self, session: UUID, turn: UUID) -> Sequence[ToolCallRow]:
        return await self._connection.call("tool_calls", dump({"session": session, "turn": turn}), read_calls)

    async def intend(self, session: UUID, call: NewToolCall, events: Sequence[NewEvent] = ()) -> ToolCallRow:
        row = tool_call_row(call)
        text = intend_text(session, row, events)
        at = await self._connection.call("intend", text, lambda answer: answer.time("intended_at"))
        return tool_call_of(NEW_CALL | row | {"intended_at": at, "attempt": self.ref.attempt})

    async def record(self, session: UUID, outcome: ToolOutcome, events: Sequence[NewEvent] = ()) -> Stored:
        return await self._connection.call("record", record_text(session, outcome, events), read_recorded)

    async def put_blob(self, data: bytes) -> BlobRef:
        return await self._connection.call("put_blob", data, read_blob)

    async def get_blob(self, digest: str) -> bytes:
        return await self._connection.bytes_of("get_blob", dump({"digest": digest}))

    async def finish(self, state: AttemptState, outputs: Outputs | None = None, failure: Failure | None = None) -> None:
        await self._connection.call("finish", finish_text(state, outputs, failure), lambda _: None)
