"""The SessionStore in memory."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from pilothouse.records.queues import QueueItem, QueueName
from pilothouse.records.sessions import FROM_OUTSIDE, Entry, NewEntry, SessionHead
from pilothouse.records.values import encode
from pilothouse.store.memory.pages import page, queue_page
from pilothouse.store.memory.tables import SessionTables, Tables, clock
from pilothouse.store.pages import Page
from pilothouse.store.queue_rows import head_of, item_of, item_row
from pilothouse.store.refusals import item_there, not_at_work, session_there, unknown_session
from pilothouse.store.rows import Row, entry_of, entry_row
from pilothouse.store.rules import chain, named


class MemorySessionStore:
    """Sessions and their queues, as those see them who are outside of every attempt."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def sessions(self, tenant: UUID, before: UUID | None = None, limit: int = 100) -> Sequence[SessionHead]:
        found = {id: tables for (of, id), tables in self._tables.sessions.items() if of == tenant}
        order = sorted(found, key=lambda id: (found[id].created_at, id), reverse=True)
        if before is not None:
            order = order[order.index(before) + 1 :] if before in found else []
        return [head_of(self._head(tenant, id, found[id])) for id in order[:limit]]

    async def session(self, tenant: UUID, session: UUID) -> SessionHead:
        return head_of(self._head(tenant, session, self._session(tenant, session)))

    def _head(self, tenant: UUID, id: UUID, tables: SessionTables) -> Row:
        entries, waiting = list(tables.entries.values()), Counter(row["queue"] for row in tables.waiting())
        row = {"tenant": tenant, "id": id, "entry_seq": len(entries), "holder": None, "waiting": encode(dict(waiting))}
        row |= {"name": tables.name, "leaf": tables.leaf, "created_at": tables.created_at}
        row |= {"changed_at": entries[-1]["at"] if entries else tables.created_at} | self._run(tenant, id)
        at_work = tables.holder if self._tables.is_open(tables.holder) else None
        if at_work is None:
            return row
        return row | {"holder_run": at_work.run.run, "holder": at_work.attempt, "fence": at_work.fence}

    def _run(self, tenant: UUID, session: UUID) -> Row:
        """Of the newest run that opened the session."""
        runs = [
            tables.run
            for ref, tables in self._tables.runs.items()
            if ref.tenant == tenant and session in tables.sessions
        ]
        if not runs:
            return {"run": None}
        newest = max(runs, key=lambda run: (run["created_at"], run["number"], run["id"]))
        return {name: newest[name] for name in ("number", "namespace", "workflow")} | {"run": newest["id"]}

    async def entries(self, tenant: UUID, session: UUID, after: int = 0, limit: int = 1_000) -> Sequence[Entry]:
        return [entry_of(row) for row in self._entries(tenant, session, after, limit)]

    async def entry_page(self, tenant: UUID, session: UUID, after: int, limit: int, size: int) -> Page:
        return page(self._entries(tenant, session, after, limit), ("type", "body"), size)

    def _entries(self, tenant: UUID, session: UUID, after: int, limit: int) -> list[Row]:
        return list(self._session(tenant, session).entries.values())[after : after + limit]

    async def import_session(self, tenant: UUID, name: str, entries: Sequence[NewEntry]) -> UUID:
        session, links = named(tenant, name), chain(None, entries)
        rows = [entry_row(link) for link in links]
        if (tenant, session) in self._tables.sessions:
            raise session_there(name)
        tables = SessionTables(name, clock(), leaf=links[-1].leaf if links else None)
        for row in rows:
            tables.add_entry(session, row, FROM_OUTSIDE)
        self._tables.sessions[tenant, session] = tables
        return session

    async def enqueue(
        self, tenant: UUID, session: UUID, queue: QueueName, message: Mapping[str, Any], id: UUID | None = None
    ) -> QueueItem:
        columns = item_row(id or uuid4(), queue, message)
        tables = self._session(tenant, session)
        there = tables.queue.get(columns["id"])
        if there is None:
            there = self._accept(session, tables, columns)
            self._tables.sessions[tenant, session] = tables
        elif columns.items() - there.items():
            raise item_there(session, columns["id"])
        return item_of(there)

    def _accept(self, session: UUID, tables: SessionTables, columns: Row) -> Row:
        queue = QueueName(columns["queue"])
        if queue is not QueueName.NEXT_TURN and not self._tables.is_open(tables.holder):
            raise not_at_work(session, queue)
        waits = {"seq": len(tables.queue) + 1, "state": "Waiting", "clearing": None, "at": clock()}
        tables.queue[columns["id"]] = columns | waits
        return tables.queue[columns["id"]]

    async def queued(self, tenant: UUID, session: UUID) -> Sequence[QueueItem]:
        return [item_of(row) for row in self._session(tenant, session).waiting()]

    async def item_page(self, tenant: UUID, session: UUID, after: int, size: int) -> Page:
        return queue_page(self._session(tenant, session).waiting(), after, size)

    async def cancel(self, tenant: UUID, session: UUID, ids: Sequence[UUID]) -> Sequence[QueueItem]:
        return [item_of(row) for row in self._cancelled(tenant, session, ids)]

    async def cancelled_page(self, tenant: UUID, session: UUID, ids: Sequence[UUID], after: int, size: int) -> Page:
        return queue_page(self._cancelled(tenant, session, ids), after, size)

    def _cancelled(self, tenant: UUID, session: UUID, ids: Sequence[UUID]) -> list[Row]:
        tables = self._session(tenant, session)
        tables.settle([row for row in tables.waiting() if row["id"] in ids], "Cancelled")
        self._tables.sessions[tenant, session] = tables
        return [row for row in tables.queue.values() if row["id"] in ids and row["state"] == "Cancelled"]

    def _session(self, tenant: UUID, session: UUID) -> SessionTables:
        """The session's rows, to change. Raises NotFound."""
        if (tenant, session) not in self._tables.sessions:
            raise unknown_session(session)
        return self._tables.sessions[tenant, session].draft()
