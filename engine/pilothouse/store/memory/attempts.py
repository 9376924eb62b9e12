"""The AttemptStore in memory."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import replace
from uuid import UUID

from pilothouse.records.events import NewEvent
from pilothouse.records.failures import Failure
from pilothouse.records.runs import AttemptRef
from pilothouse.records.sessions import Entry, NewEntry, NewToolCall, Session, ToolCallRow, ToolOutcome
from pilothouse.records.states import AttemptState
from pilothouse.records.values import BlobRef, Outputs, Stored
from pilothouse.store.memory.tables import CallKey, RunTables, SessionTables, Tables, clock
from pilothouse.store.pages import Page, Piece
from pilothouse.store.refusals import (
    entry_there,
    foreign_session,
    intent_refused,
    leaf_moved,
    no_intent,
    no_session,
    no_target,
    no_turn,
    result_there,
    superseded,
)
from pilothouse.store.rows import (
    NEW_CALL,
    Row,
    attempt_outcome_row,
    blob_ref,
    entry_of,
    entry_row,
    session_of,
    stored_of,
    tool_call_of,
    tool_call_row,
    tool_outcome_row,
)
from pilothouse.store.rules import chain


class MemoryAttemptStore:
    """What the process of one attempt may read and write."""

    def __init__(self, tables: Tables, ref: AttemptRef) -> None:
        self.ref = ref
        self._tables = tables

    async def open_session(self, session: UUID) -> Session:
        draft = self._draft()
        if self._tables.owner_of(self.ref.run.tenant, session) not in (None, self.ref.run):
            raise foreign_session(session)
        if session not in draft.sessions:
            draft.sessions[session] = SessionTables()
            self._put(draft)
        tables = draft.sessions[session]
        return session_of(session, tables.leaf, tables.entries.values())

    async def session_page(self, session: UUID, after: int, size: int) -> Page:
        if after == 0:
            await self.open_session(session)
        tables = self._draft().sessions.get(session)
        if tables is None:
            raise foreign_session(session)
        rows = [row for row in tables.entries.values() if row["seq"] > after]
        return replace(_page(rows, ("type", "body"), size), leaf=tables.leaf)

    async def append(
        self,
        session: UUID,
        leaf: UUID | None,
        entries: Sequence[NewEntry],
        events: Sequence[NewEvent] = (),
        outcomes: Sequence[ToolOutcome] = (),
    ) -> Sequence[Entry]:
        links = chain(leaf, entries)
        rows, results = [entry_row(link) for link in links], [tool_outcome_row(outcome) for outcome in outcomes]
        draft = self._draft()
        tables = self._session(draft, session)
        if tables.leaf != leaf:
            raise leaf_moved(session, leaf)
        for outcome, (columns, _) in zip(outcomes, results, strict=True):
            _finish_call(tables, outcome, columns)
        written = [self._add_entry(session, tables, row) for row in rows]
        tables.leaf = links[-1].leaf if links else leaf
        self._put(draft, events, [blob for _, blob in results])
        return [entry_of(row) for row in written]

    def _add_entry(self, session: UUID, tables: SessionTables, columns: Row) -> Row:
        id, target = columns["id"], columns["target"]
        if id in tables.entries:
            raise entry_there(session)
        row = columns | {"seq": len(tables.entries) + 1, "attempt": self.ref.attempt, "at": clock()}
        tables.entries[id] = row
        if target is not None and target not in tables.entries:
            raise no_target(session, target)
        return row

    async def tool_calls(self, session: UUID, turn: UUID) -> Sequence[ToolCallRow]:
        calls = self._session(self._draft(), session).calls
        return [tool_call_of(calls[key]) for key in sorted(calls) if key[0] == turn]

    async def call_page(self, session: UUID, turn: UUID, after: int, size: int) -> Page:
        calls = self._session(self._draft(), session).calls
        rows = [calls[key] for key in sorted(calls) if key[0] == turn and key[1] > after]
        shown = [row | {"arguments": b64encode(row["arguments"]).decode()} for row in rows]
        return _page(shown, ("call", "tool", "arguments", "result"), size)

    async def intend(self, session: UUID, call: NewToolCall, events: Sequence[NewEvent] = ()) -> ToolCallRow:
        columns = tool_call_row(call)
        draft = self._draft()
        tables = self._session(draft, session)
        if call.turn not in tables.entries:
            raise no_turn(session, call.turn)
        key: CallKey = (call.turn, call.ordinal)
        if key in tables.calls and not _passes_on(tables.calls[key], columns):
            raise intent_refused(call)
        held = {"attempt": self.ref.attempt, "intended_at": clock()}
        tables.calls[key] = NEW_CALL | columns | held
        self._put(draft, events)
        return tool_call_of(tables.calls[key])

    async def record(self, session: UUID, outcome: ToolOutcome, events: Sequence[NewEvent] = ()) -> Stored:
        columns, blob = tool_outcome_row(outcome)
        draft = self._draft()
        _finish_call(self._session(draft, session), outcome, columns)
        self._put(draft, events, [blob])
        return stored_of(columns["result"])

    async def put_blob(self, data: bytes) -> BlobRef:
        self._draft()
        self._tables.put_blob(self.ref.run.tenant, data)
        return blob_ref(data)

    async def get_blob(self, digest: str) -> bytes:
        self._draft()
        return self._tables.get_blob(self.ref.run.tenant, digest)

    async def blob_piece(self, digest: str, start: int, length: int) -> Piece:
        data = await self.get_blob(digest)
        return Piece(len(data), data[start : start + length])

    async def finish(self, state: AttemptState, outputs: Outputs | None = None, failure: Failure | None = None) -> None:
        columns = attempt_outcome_row(state, outputs, failure)
        draft = self._draft()
        row = draft.attempts[self.ref.attempt]
        draft.attempts[self.ref.attempt] = row | columns | {"finished_at": clock()}
        self._tables.put(self.ref.run, draft)

    def _draft(self) -> RunTables:
        """The run's rows, to change; raises Superseded where this attempt is not open."""
        tables = self._tables.runs.get(self.ref.run)
        row = tables.attempts.get(self.ref.attempt) if tables else None
        if tables is None or row is None or (row["state"], row["fence"]) != ("Open", self.ref.fence):
            raise superseded(self.ref)
        return tables.draft()

    def _session(self, draft: RunTables, session: UUID) -> SessionTables:
        if session not in draft.sessions:
            raise no_session(session)
        return draft.sessions[session]

    def _put(self, draft: RunTables, events: Sequence[NewEvent] = (), blobs: Iterable[bytes | None] = ()) -> None:
        """Makes the draft count; only events wake those who wait for the run."""
        for blob in blobs:
            if blob is not None:
                self._tables.put_blob(self.ref.run.tenant, blob)
        draft.tell(events, clock())
        self._tables.put(self.ref.run, draft, wake=bool(events))


def _passes_on(there: Row, asked: Row) -> bool:
    same = all(there[column] == asked[column] for column in ("call", "tool", "digest"))
    return same and there["idempotent"] and asked["idempotent"] and there["result"] is None


def _finish_call(tables: SessionTables, outcome: ToolOutcome, columns: Row) -> None:
    key: CallKey = (outcome.turn, outcome.ordinal)
    if key not in tables.calls:
        raise no_intent(outcome)
    if tables.calls[key]["result"] is not None:
        raise result_there(outcome)
    tables.calls[key] = tables.calls[key] | columns | {"finished_at": clock()}


def _page(rows: Iterable[Row], large: Sequence[str], size: int) -> Page:
    """The rows that fit, measured by their columns `large`."""
    fitting: list[Row] = []
    for row in rows:
        takes = sum(len(row[column] or "") for column in large)
        size -= takes
        if size < 0:
            return Page(fitting, takes)
        fitting.append(row)
    return Page(fitting, 0)
