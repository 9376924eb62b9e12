"""The AttemptStore on PostgreSQL.

Every write first locks the attempt's row `FOR SHARE`: closing the attempt waits for the write, or the write
finds it closed. Where events are written, the run's row is locked before that, in the order of a transition.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow

from pilothouse.records.events import NewEvent
from pilothouse.records.failures import Failure
from pilothouse.records.runs import AttemptRef
from pilothouse.records.sessions import Entry, NewEntry, NewToolCall, Session, ToolCallRow, ToolOutcome
from pilothouse.records.states import AttemptState
from pilothouse.records.values import BlobRef, Outputs
from pilothouse.store.errors import StoreError
from pilothouse.store.postgres.blobs import get_blob, put_blob
from pilothouse.store.postgres.pool import Pool
from pilothouse.store.postgres.queries import queries
from pilothouse.store.postgres.statements import (
    Statement,
    event_statements,
    fetch,
    run_params,
    transact,
)
from pilothouse.store.refusals import (
    entry_there,
    foreign_session,
    intent_refused,
    leaf_moved,
    no_blob,
    no_intent,
    no_session,
    no_target,
    no_turn,
    result_there,
    superseded,
)
from pilothouse.store.rows import (
    attempt_outcome_row,
    blob_ref,
    entry_of,
    entry_row,
    session_of,
    tool_call_of,
    tool_call_row,
    tool_outcome_row,
)
from pilothouse.store.rules import Link, chain

_SQL = queries("attempts")


class PostgresAttemptStore:
    """What the process of one attempt may read and write."""

    def __init__(self, pool: Pool, ref: AttemptRef) -> None:
        self.ref = ref
        self._pool = pool
        self._key = run_params(ref.run) | {"attempt": ref.attempt, "fence": ref.fence}

    async def open_session(self, session: UUID) -> Session:
        key = {"session": session}
        _, rows, entries = await self._write(
            [
                self._statement("ensure_session", key),
                self._statement("find_session", key, foreign_session(session)),
                self._statement("list_entries", key),
            ]
        )
        return session_of(rows[0], entries)

    async def append(
        self, session: UUID, leaf: UUID | None, entries: Sequence[NewEntry], events: Sequence[NewEvent] = ()
    ) -> Sequence[Entry]:
        links = chain(leaf, entries)
        _, _, rows, *_ = await self._write(self._append_statements(session, leaf, links), events)
        return [entry_of(row) for row in rows]

    def _append_statements(self, session: UUID, leaf: UUID | None, links: list[Link]) -> list[Statement]:
        rows = [entry_row(link) for link in links]
        columns = {"ids": "id", "parents": "parent", "types": "type", "bodies": "body"}
        key = {"session": session, "entries": len(rows)}
        values = {param: [row[column] for row in rows] for param, column in columns.items()}
        moved = {"leaf": leaf, "new_leaf": links[-1].leaf if links else leaf}
        targets = [link.target for link in links if link.target is not None]
        return [
            self._statement("find_session", key, no_session(session)),
            self._statement("move_leaf", key | moved, leaf_moved(session, leaf)),
            self._statement("insert_entries", key | values, entry_there(session), rows=len(rows)),
            *(self._entry(session, target, no_target(session, target)) for target in targets),
        ]

    async def tool_calls(self, session: UUID, turn: UUID) -> Sequence[ToolCallRow]:
        key = {"session": session, "turn": turn}
        _, rows = await self._read(
            [
                self._statement("find_session", key, no_session(session)),
                self._statement("list_tool_calls", key),
            ]
        )
        return [tool_call_of(row) for row in rows]

    async def intend(self, session: UUID, call: NewToolCall, events: Sequence[NewEvent] = ()) -> ToolCallRow:
        row = tool_call_row(session, call)
        _, _, [written], *_ = await self._write(
            [
                self._statement("find_session", row, no_session(session)),
                self._entry(session, call.turn, no_turn(session, call.turn)),
                self._statement("intend", row, intent_refused(call)),
            ],
            events,
        )
        return tool_call_of(written)

    async def record(self, session: UUID, outcome: ToolOutcome, events: Sequence[NewEvent] = ()) -> ToolCallRow:
        row, blob = tool_outcome_row(outcome)
        row |= {"session": session}
        _, _, [written], *_ = await self._write(
            [
                self._statement("find_session", row, no_session(session)),
                self._statement("find_tool_call", row, no_intent(outcome)),
                self._statement("record", row, result_there(outcome)),
                *([put_blob(self.ref.run.tenant, blob)] if blob is not None else []),
            ],
            events,
        )
        return tool_call_of(written)

    async def put_blob(self, data: bytes) -> BlobRef:
        await self._write([put_blob(self.ref.run.tenant, data)])
        return blob_ref(data)

    async def get_blob(self, digest: str) -> bytes:
        [rows] = await self._read([get_blob(self.ref.run.tenant, digest)])
        if not rows:
            raise no_blob(digest)
        return bytes(rows[0]["data"])

    async def finish(self, state: AttemptState, outputs: Outputs | None = None, failure: Failure | None = None) -> None:
        outcome = attempt_outcome_row(state, outputs, failure)
        finish = self._statement("finish_attempt", outcome, superseded(self.ref))
        await transact(self._pool, [finish])

    async def _read(self, statements: list[Statement]) -> list[list[DictRow]]:
        check = self._statement("check_attempt", {}, superseded(self.ref))
        return (await fetch(self._pool, [check, *statements]))[1:]

    async def _write(self, statements: list[Statement], events: Sequence[NewEvent] = ()) -> list[list[DictRow]]:
        """Runs the statements and then the events; returns the rows of each statement."""
        refusal = superseded(self.ref)
        before = [self._statement("hold_attempt", {}, refusal)]
        after: list[Statement] = []
        if events:
            before.insert(0, self._statement("count_events", {"events": len(events)}, refusal))
            after = event_statements(self.ref.run, events)
        return (await transact(self._pool, [*before, *statements, *after]))[len(before) :]

    def _entry(self, session: UUID, entry: UUID, refusal: StoreError) -> Statement:
        return self._statement("find_entry", {"session": session, "entry": entry}, refusal)

    def _statement(
        self, name: str, params: dict[str, Any], refusal: StoreError | None = None, rows: int = 1
    ) -> Statement:
        return Statement(_SQL[name], self._key | params, refusal, rows)
