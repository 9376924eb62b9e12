"""The AttemptStore on PostgreSQL. What each call does stands in `migrations/05_pre_attempt_writes.sql` and
`migrations/08_pre_queues.sql`."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

from psycopg.rows import DictRow

from pilothouse.records.events import NewEvent
from pilothouse.records.failures import Failure
from pilothouse.records.queues import QueueItem, QueueName
from pilothouse.records.runs import AttemptRef
from pilothouse.records.sessions import Appended, NewEntry, NewToolCall, Session, ToolCallRow, ToolOutcome
from pilothouse.records.states import AttemptState
from pilothouse.records.values import BlobRef, Outputs, Stored
from pilothouse.store.pages import Page, Piece
from pilothouse.store.postgres.calls import Refusals, call, digest_param, row_json, rows_json
from pilothouse.store.postgres.pool import Pool
from pilothouse.store.postgres.queries import queries
from pilothouse.store.postgres.sessions import sessions_of
from pilothouse.store.queue_rows import item_of
from pilothouse.store.refusals import (
    entry_there,
    foreign_session,
    intent_refused,
    items_gone,
    leaf_moved,
    no_blob,
    no_intent,
    no_session,
    no_target,
    no_turn,
    queue_not_empty,
    result_there,
    session_busy,
    superseded,
)
from pilothouse.store.rows import (
    NEW_CALL,
    Row,
    attempt_outcome_row,
    blob_ref,
    entry_of,
    entry_row,
    event_row,
    stored_of,
    tool_call_of,
    tool_call_row,
    tool_outcome_row,
)
from pilothouse.store.rules import chain, session_name

_ALL = 2**62
"""A size that every page keeps."""

_SQL = queries("attempts")


class PostgresAttemptStore:
    """What the process of one attempt may read and write."""

    def __init__(self, pool: Pool, ref: AttemptRef) -> None:
        self.ref = ref
        self._pool = pool
        self._by = f"({ref.run.tenant},{ref.run.run},{ref.attempt},{ref.fence})"

    async def open_session(self, session: UUID, name: str | None = None) -> Session:
        params = {"session": session, "name": session_name(self.ref.run.tenant, session, name)}
        rows = await self._call("open_session", params, _opening_refusals(session))
        [opened] = sessions_of(rows)
        return opened

    async def session_page(self, session: UUID, after: int, size: int, name: str | None = None) -> Page:
        params = {"session": session, "after": after, "size": size}
        params["name"] = session_name(self.ref.run.tenant, session, name)
        *rows, last = await self._call("session_page", params, _opening_refusals(session))
        return Page(rows, last["next"], last["leaf"])

    async def append(
        self,
        session: UUID,
        leaf: UUID | None,
        entries: Sequence[NewEntry],
        events: Sequence[NewEvent] = (),
        outcomes: Sequence[ToolOutcome] = (),
        consumed: Sequence[UUID] = (),
    ) -> Appended:
        links = chain(leaf, entries)
        rows = [entry_row(link) for link in links]
        params = {
            "session": session,
            "leaf": leaf,
            "new_leaf": links[-1].leaf if links else leaf,
            "entries": rows_json(rows),
            "outcomes": rows_json(map(_outcome_row, outcomes)),
            "events": rows_json(map(event_row, events)),
            "consumed": list(consumed),
        }
        refusals = _append_refusals(session, leaf, entries, outcomes)
        [written] = await self._call("append_entries", params, refusals)
        common = {"attempt": self.ref.attempt, "at": written["written_at"]}
        entries_then = (entry_of(row | common | {"seq": seq}) for seq, row in enumerate(rows, written["before"] + 1))
        return Appended(entries_then, written["waiting"])

    async def queued(self, session: UUID) -> Sequence[QueueItem]:
        return [item_of(row) for row in (await self.queue_page(session, 0, _ALL)).rows]

    async def queue_page(self, session: UUID, after: int, size: int) -> Page:
        return await self._queue_page(session, None, None, after, size)

    async def clear(self, session: UUID, queues: Sequence[QueueName], id: UUID | None = None) -> Sequence[QueueItem]:
        page = await self.clear_page(session, queues, id or uuid4(), 0, _ALL)
        return [item_of(row) for row in page.rows]

    async def clear_page(self, session: UUID, queues: Sequence[QueueName], id: UUID, after: int, size: int) -> Page:
        return await self._queue_page(session, id, [queue.value for queue in queues], after, size)

    async def _queue_page(
        self, session: UUID, clearing: UUID | None, queues: list[str] | None, after: int, size: int
    ) -> Page:
        params = {"session": session, "clearing": clearing, "queues": queues, "after": after, "size": size}
        *rows, last = await self._call("queue_page", params, {"no_session": lambda _: no_session(session)})
        return Page(rows, last["next"])

    async def tool_calls(self, session: UUID, turn: UUID) -> Sequence[ToolCallRow]:
        params = {"session": session, "turn": turn}
        rows = await self._call("list_tool_calls", params, {"no_session": lambda _: no_session(session)})
        return [tool_call_of(row) for row in rows]

    async def call_page(self, session: UUID, turn: UUID, after: int, size: int) -> Page:
        params = {"session": session, "turn": turn, "after": after, "size": size}
        *rows, last = await self._call("call_page", params, {"no_session": lambda _: no_session(session)})
        return Page(rows, last["next"])

    async def intend(self, session: UUID, call: NewToolCall, events: Sequence[NewEvent] = ()) -> ToolCallRow:
        row = tool_call_row(call)
        arguments = row.pop("arguments")
        params = {
            "session": session,
            "call": row_json(row),
            "arguments": arguments,
            "events": rows_json(map(event_row, events)),
        }
        refusals: Refusals = {
            "no_session": lambda _: no_session(session),
            "no_turn": lambda _: no_turn(session, call.turn),
            "intent": lambda _: intent_refused(call),
        }
        [written] = await self._call("intend_call", params, refusals)
        return tool_call_of(NEW_CALL | row | written | {"arguments": arguments, "attempt": self.ref.attempt})

    async def record(self, session: UUID, outcome: ToolOutcome, events: Sequence[NewEvent] = ()) -> Stored:
        params = {
            "session": session,
            "outcomes": rows_json([_outcome_row(outcome)]),
            "events": rows_json(map(event_row, events)),
        }
        [written] = await self._call("record_results", params, _outcome_refusals(session, [outcome]))
        return stored_of(written["result"])

    async def put_blob(self, data: bytes) -> BlobRef:
        ref = blob_ref(data)
        await self._call("put_blob", {"digest": ref.digest, "data": data})
        return ref

    async def get_blob(self, digest: str) -> bytes:
        rows = await self._call("get_blob", {"digest": digest_param(digest)}, binary=True)
        if not rows:
            raise no_blob(digest)
        return bytes(rows[0]["data"])

    async def blob_piece(self, digest: str, start: int, length: int) -> Piece:
        params = {"digest": digest_param(digest), "start": start, "length": length}
        for row in await self._call("blob_piece", params, binary=True):
            return Piece(row["size"], bytes(row["piece"]))
        raise no_blob(digest)

    async def finish(self, state: AttemptState, outputs: Outputs | None = None, failure: Failure | None = None) -> None:
        params = {"outcome": row_json(attempt_outcome_row(state, outputs, failure))}
        await self._call("finish_attempt", params, {"queue_not_empty": lambda _: queue_not_empty(self.ref)})

    async def _call(
        self, name: str, params: dict[str, Any], refusals: Refusals | None = None, *, binary: bool = False
    ) -> list[DictRow]:
        every: Refusals = {"superseded": lambda _: superseded(self.ref), **(refusals or {})}
        return await call(self._pool, _SQL[name], params | {"by": self._by}, every, binary=binary)


def _opening_refusals(session: UUID) -> Refusals:
    return {"foreign_session": lambda _: foreign_session(session), "busy": lambda _: session_busy(session)}


def _append_refusals(
    session: UUID, leaf: UUID | None, entries: Sequence[NewEntry], outcomes: Sequence[ToolOutcome]
) -> Refusals:
    return {
        "leaf_moved": lambda _: leaf_moved(session, leaf),
        "items_gone": lambda _: items_gone(session),
        "entry_there": lambda _: entry_there(session),
        "no_target": lambda place: no_target(session, entries[place].body["targetId"]),
        **_outcome_refusals(session, outcomes),
    }


def _outcome_refusals(session: UUID, outcomes: Sequence[ToolOutcome]) -> Refusals:
    return {
        "no_session": lambda _: no_session(session),
        "no_intent": lambda place: no_intent(outcomes[place]),
        "result_there": lambda place: result_there(outcomes[place]),
    }


def _outcome_row(outcome: ToolOutcome) -> Row:
    row, blob = tool_outcome_row(outcome)
    return row if blob is None else row | {"digest": blob_ref(blob).digest, "blob": blob.decode()}
