"""The SessionStore on PostgreSQL. What its writes do stands in `migrations/08_pre_queues.sql`."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from psycopg.rows import DictRow

from pilothouse.records.queues import QueueItem, QueueName
from pilothouse.records.sessions import FROM_OUTSIDE, Entry, NewEntry, SessionHead
from pilothouse.store.history import GREATEST, LEAST
from pilothouse.store.pages import Page
from pilothouse.store.postgres.calls import Refusals, call, fetch, page_of, rows_json
from pilothouse.store.postgres.pool import Pool
from pilothouse.store.postgres.queries import queries
from pilothouse.store.queue_rows import head_of, item_of, item_row
from pilothouse.store.refusals import (
    entry_there,
    item_there,
    no_target,
    not_at_work,
    session_there,
    unknown_session,
)
from pilothouse.store.rows import entry_of, entry_row
from pilothouse.store.rules import chain, named

_SQL = queries("sessions")


class PostgresSessionStore:
    """Sessions and their queues, as those see them who are outside of every attempt."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def sessions(self, tenant: UUID, before: UUID | None = None, limit: int = 100) -> Sequence[SessionHead]:
        return await self._heads(tenant, LEAST, GREATEST, before, limit)

    async def session(self, tenant: UUID, session: UUID) -> SessionHead:
        for head in await self._heads(tenant, session, session, None, 1):
            return head
        raise unknown_session(session)

    async def _heads(
        self, tenant: UUID, first: UUID, last: UUID, before: UUID | None, limit: int
    ) -> Sequence[SessionHead]:
        params = {"tenant": tenant, "first": first, "last": last, "before": before, "limit": limit}
        return [head_of(row) for row in await fetch(self._pool, _SQL["list"], params)]

    async def entries(self, tenant: UUID, session: UUID, after: int = 0, limit: int = 1_000) -> Sequence[Entry]:
        rows = await self._of_session("entries", tenant, session, {"after": after, "limit": limit})
        return [entry_of(row) for row in rows]

    async def entry_page(self, tenant: UUID, session: UUID, after: int, limit: int, size: int) -> Page:
        params = {"after": after, "limit": limit, "size": size}
        return page_of(await self._of_session("entry_page", tenant, session, params), "body")

    async def import_session(self, tenant: UUID, name: str, entries: Sequence[NewEntry]) -> UUID:
        session, links = named(tenant, name), chain(None, entries)
        params = {
            "name": name,
            "leaf": links[-1].leaf if links else None,
            "attempt": FROM_OUTSIDE,
            "entries": rows_json(map(entry_row, links)),
        }
        refusals: Refusals = {
            "session_there": lambda _: session_there(name),
            "entry_there": lambda _: entry_there(session),
            "no_target": lambda place: no_target(session, entries[place].body["targetId"]),
        }
        await self._call("import", tenant, session, params, refusals)
        return session

    async def enqueue(
        self, tenant: UUID, session: UUID, queue: QueueName, message: Mapping[str, Any], id: UUID | None = None
    ) -> QueueItem:
        params = item_row(id or uuid4(), queue, message)
        refusals: Refusals = {
            "not_at_work": lambda _: not_at_work(session, queue),
            "item_there": lambda _: item_there(session, params["id"]),
        }
        [row] = await self._call("enqueue", tenant, session, params, refusals)
        return item_of(row)

    async def queued(self, tenant: UUID, session: UUID) -> Sequence[QueueItem]:
        return [item_of(row) for row in await self._of_session("queued", tenant, session)]

    async def item_page(self, tenant: UUID, session: UUID, after: int, size: int) -> Page:
        return page_of(await self._of_session("item_page", tenant, session, {"after": after, "size": size}), "message")

    async def cancel(self, tenant: UUID, session: UUID, ids: Sequence[UUID]) -> Sequence[QueueItem]:
        return [item_of(row) for row in await self._call("cancel", tenant, session, {"ids": list(ids)})]

    async def cancelled_page(self, tenant: UUID, session: UUID, ids: Sequence[UUID], after: int, size: int) -> Page:
        params = {"ids": list(ids), "after": after, "size": size}
        return page_of(await self._call("cancelled_page", tenant, session, params), "message")

    async def _of_session(
        self, name: str, tenant: UUID, session: UUID, params: Mapping[str, Any] | None = None
    ) -> list[DictRow]:
        """What the session has. A session that has nothing of it is a row without an id; one that is not, is none."""
        of = {"tenant": tenant, "session": session, **(params or {})}
        rows = await fetch(self._pool, _SQL[name], of)
        if not rows:
            raise unknown_session(session)
        return [row for row in rows if row["id"]]

    async def _call(
        self, name: str, tenant: UUID, session: UUID, params: Mapping[str, Any], refusals: Refusals | None = None
    ) -> list[DictRow]:
        every: Refusals = {"unknown_session": lambda _: unknown_session(session), **(refusals or {})}
        return await call(self._pool, _SQL[name], {"tenant": tenant, "session": session, **params}, every)
