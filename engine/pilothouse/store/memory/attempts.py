"""The AttemptStore in memory."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import replace
from uuid import UUID, uuid4

from pilothouse.records.events import NewEvent
from pilothouse.records.failures import Failure
from pilothouse.records.queues import QueueItem, QueueName
from pilothouse.records.runs import AttemptRef
from pilothouse.records.sessions import Appended, NewEntry, NewToolCall, Session, ToolCallRow, ToolOutcome
from pilothouse.records.states import AttemptState
from pilothouse.records.values import BlobRef, Outputs, Stored
from pilothouse.store.memory.pages import page, queue_page
from pilothouse.store.memory.tables import CallKey, RunTables, SessionKey, SessionTables, Tables, clock
from pilothouse.store.pages import Page, Piece
from pilothouse.store.queue_rows import item_of
from pilothouse.store.refusals import (
    foreign_session,
    intent_refused,
    items_gone,
    leaf_moved,
    no_intent,
    no_session,
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
    session_of,
    stored_of,
    tool_call_of,
    tool_call_row,
    tool_outcome_row,
)
from pilothouse.store.rules import chain, session_name


class MemoryAttemptStore:
    """What the process of one attempt may read and write."""

    def __init__(self, tables: Tables, ref: AttemptRef) -> None:
        self.ref = ref
        self._tables = tables

    async def open_session(self, session: UUID, name: str | None = None) -> Session:
        name = session_name(self.ref.run.tenant, session, name)
        draft = self._draft()
        tables = self._tables.sessions.get(self._key(session))
        if tables is None:
            tables = SessionTables(name, clock(), None if name else self.ref.run)
        if tables.holder != self.ref:
            self._check_free(session, tables, name)
            tables = replace(tables, holder=self.ref)
            draft.sessions = tuple(dict.fromkeys([*draft.sessions, session]))
            self._put(draft, (session, tables))
        return session_of(session, tables.leaf, tables.entries.values())

    def _check_free(self, session: UUID, tables: SessionTables, name: str | None) -> None:
        if tables.run != self.ref.run and (name is None or tables.name != name):
            raise foreign_session(session)
        if self._tables.is_open(tables.holder):
            raise session_busy(session)

    async def session_page(self, session: UUID, after: int, size: int, name: str | None = None) -> Page:
        if after == 0:
            await self.open_session(session, name)
        self._draft()
        tables = self._tables.sessions.get(self._key(session))
        if tables is None or tables.holder != self.ref:
            raise foreign_session(session)
        rows = [row for row in tables.entries.values() if row["seq"] > after]
        return replace(page(rows, ("type", "body"), size), leaf=tables.leaf)

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
        rows, results = [entry_row(link) for link in links], [tool_outcome_row(outcome) for outcome in outcomes]
        draft, tables = self._draft(), self._session(session)
        if tables.leaf != leaf:
            raise leaf_moved(session, leaf)
        items = [row for row in tables.waiting() if row["id"] in consumed]
        if len(items) < len(consumed):
            raise items_gone(session)
        tables.settle(items, "Delivered")
        for outcome, (columns, _) in zip(outcomes, results, strict=True):
            _finish_call(tables, outcome, columns)
        written = [tables.add_entry(session, row, self.ref.attempt) for row in rows]
        tables.leaf = links[-1].leaf if links else leaf
        self._put(draft, (session, tables), events, [blob for _, blob in results])
        return Appended(map(entry_of, written), bool(list(tables.waiting())))

    async def queued(self, session: UUID) -> Sequence[QueueItem]:
        self._draft()
        return [item_of(row) for row in self._session(session).waiting()]

    async def queue_page(self, session: UUID, after: int, size: int) -> Page:
        self._draft()
        return queue_page(self._session(session).waiting(), after, size)

    async def clear(self, session: UUID, queues: Sequence[QueueName], id: UUID | None = None) -> Sequence[QueueItem]:
        return [item_of(row) for row in self._cleared(session, queues, id or uuid4())]

    async def clear_page(self, session: UUID, queues: Sequence[QueueName], id: UUID, after: int, size: int) -> Page:
        return queue_page(self._cleared(session, queues if after == 0 else (), id), after, size)

    def _cleared(self, session: UUID, queues: Sequence[QueueName], id: UUID) -> list[Row]:
        draft, tables = self._draft(), self._session(session)
        tables.settle([row for row in tables.waiting() if row["queue"] in queues], "Cancelled", id)
        self._put(draft, (session, tables))
        return [row for row in tables.queue.values() if row["clearing"] == id]

    async def tool_calls(self, session: UUID, turn: UUID) -> Sequence[ToolCallRow]:
        self._draft()
        calls = self._session(session).calls
        return [tool_call_of(calls[key]) for key in sorted(calls) if key[0] == turn]

    async def call_page(self, session: UUID, turn: UUID, after: int, size: int) -> Page:
        self._draft()
        calls = self._session(session).calls
        rows = [calls[key] for key in sorted(calls) if key[0] == turn and key[1] > after]
        shown = [row | {"arguments": b64encode(row["arguments"]).decode()} for row in rows]
        return page(shown, ("call", "tool", "arguments", "result"), size)

    async def intend(self, session: UUID, call: NewToolCall, events: Sequence[NewEvent] = ()) -> ToolCallRow:
        columns = tool_call_row(call)
        draft, tables = self._draft(), self._session(session)
        if call.turn not in tables.entries:
            raise no_turn(session, call.turn)
        key: CallKey = (call.turn, call.ordinal)
        if key in tables.calls and not _passes_on(tables.calls[key], columns):
            raise intent_refused(call)
        held = {"attempt": self.ref.attempt, "intended_at": clock()}
        tables.calls[key] = NEW_CALL | columns | held
        self._put(draft, (session, tables), events)
        return tool_call_of(tables.calls[key])

    async def record(self, session: UUID, outcome: ToolOutcome, events: Sequence[NewEvent] = ()) -> Stored:
        columns, blob = tool_outcome_row(outcome)
        draft, tables = self._draft(), self._session(session)
        _finish_call(tables, outcome, columns)
        self._put(draft, (session, tables), events, [blob])
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
        if state is AttemptState.SUCCEEDED and any(map(self._asked_in, draft.sessions)):
            raise queue_not_empty(self.ref)
        row = draft.attempts[self.ref.attempt]
        draft.attempts[self.ref.attempt] = row | columns | {"finished_at": clock()}
        self._tables.put(self.ref.run, draft)

    def _draft(self) -> RunTables:
        """The run's rows, to change; raises Superseded where this attempt is not open."""
        if not self._tables.is_open(self.ref):
            raise superseded(self.ref)
        return self._tables.runs[self.ref.run].draft()

    def _session(self, session: UUID) -> SessionTables:
        """The session's rows, to change; raises NotFound where this attempt does not have it."""
        tables = self._tables.sessions.get(self._key(session))
        if tables is None or tables.holder != self.ref:
            raise no_session(session)
        return tables.draft()

    def _asked_in(self, session: UUID) -> bool:
        """Whether a message waits there that is for this attempt."""
        tables = self._tables.sessions[self._key(session)]
        return tables.holder == self.ref and any(row["queue"] != QueueName.NEXT_TURN for row in tables.waiting())

    def _key(self, session: UUID) -> SessionKey:
        return self.ref.run.tenant, session

    def _put(
        self,
        draft: RunTables,
        session: tuple[UUID, SessionTables],
        events: Sequence[NewEvent] = (),
        blobs: Iterable[bytes | None] = (),
    ) -> None:
        """Makes the drafts count; only events wake those who wait for the run."""
        id, tables = session
        self._tables.sessions[self._key(id)] = tables
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
