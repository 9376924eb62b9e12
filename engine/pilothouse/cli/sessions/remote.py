"""The sessions of one namespace of a cluster."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from pilothouse.cli.questions import Questions
from pilothouse.gateway.read import wire
from pilothouse.records.queues import QueueItem, QueueName
from pilothouse.records.sessions import Entry, NewEntry, SessionHead
from pilothouse.records.values import ValueRefused
from pilothouse.store.queue_rows import item_of, item_row
from pilothouse.store.remote.answers import read_items
from pilothouse.store.remote.requests import enqueue_text, import_text
from pilothouse.store.remote.wire import LARGE, Fields, Text, dump
from pilothouse.store.rows import entry_row
from pilothouse.store.rules import chain, named


class RemoteSessionStore:
    """Implements SessionStore through the gateway, for the tenant that has the namespace. A call is made once; the
    same message again, under its id, is accepted once."""

    def __init__(self, questions: Questions, namespace: str) -> None:
        self._questions = questions
        self._namespace = f"namespaces/{namespace}"

    async def tenant(self, session: UUID | None = None) -> UUID:
        """Who has the namespace now. To be told takes a right there; one to write to the `session` is enough."""
        query = {"session": str(session)} if session else {}
        return await self._questions.ask(f"{self._namespace}/tenant", lambda body: UUID(body["tenant"]), query)

    async def sessions(self, tenant: UUID, before: UUID | None = None, limit: int = 100) -> Sequence[SessionHead]:
        found: list[SessionHead] = []
        while len(found) < limit:
            query = _of(tenant) | {"limit": str(limit - len(found))} | ({"before": str(before)} if before else {})
            page = await self._questions.ask(f"{self._namespace}/sessions", partial(_heads, tenant), query)
            if not page:
                break
            found += page
            before = page[-1].id
        return found

    async def session(self, tenant: UUID, session: UUID) -> SessionHead:
        return await self._questions.ask(self._path(session), partial(wire.head_from_json, tenant), _of(tenant))

    async def entries(self, tenant: UUID, session: UUID, after: int = 0, limit: int = 1_000) -> Sequence[Entry]:
        """In as many pages as the gateway makes of them; `seq` counts without gaps, and so do pages."""
        found: list[Entry] = []
        while len(found) < limit:
            query = _of(tenant) | {"after": str(after + len(found)), "limit": str(limit - len(found))}
            page = await self._questions.ask(f"{self._path(session)}/entries", _entries, query)
            if not page:
                break
            found += page
        return found

    async def import_session(self, tenant: UUID, name: str, entries: Sequence[NewEntry]) -> UUID:
        named(tenant, name)
        text = _sendable(import_text(name, map(entry_row, chain(None, entries))), "the session")
        return await self._questions.tell(
            f"{self._namespace}/sessions", text, lambda body: UUID(body["id"]), _of(tenant)
        )

    async def enqueue(
        self, tenant: UUID, session: UUID, queue: QueueName, message: Mapping[str, Any], id: UUID | None = None
    ) -> QueueItem:
        row = item_row(id or uuid4(), queue, message)
        text = _sendable(enqueue_text(row), "the message")

        def accepted(body: Any) -> QueueItem:
            written = Fields(body)
            return item_of(row | {"seq": written.number("seq"), "at": written.time("at")})

        return await self._questions.tell(f"{self._path(session)}/messages", text, accepted, _of(tenant))

    async def queued(self, tenant: UUID, session: UUID) -> Sequence[QueueItem]:
        return await self._questions.ask(f"{self._path(session)}/messages", _items, _of(tenant))

    async def cancel(self, tenant: UUID, session: UUID, ids: Sequence[UUID]) -> Sequence[QueueItem]:
        text = dump({"ids": [str(id) for id in ids]})
        return await self._questions.tell(f"{self._path(session)}/messages/cancel", text, _items, _of(tenant))

    def _path(self, session: UUID) -> str:
        return f"{self._namespace}/sessions/{session}"


def _of(tenant: UUID) -> dict[str, str]:
    return {"tenant": str(tenant)}


def _sendable(text: Text, what: str) -> Text:
    """Raises ValueRefused for more than a gateway takes."""
    if len(text) > LARGE:
        raise ValueRefused(f"{what} has {len(text):,} bytes as JSON; a gateway takes at most {LARGE:,} at once")
    return text


def _heads(tenant: UUID, body: Any) -> list[SessionHead]:
    return [wire.head_from_json(tenant, item) for item in body["items"]]


def _entries(body: Any) -> list[Entry]:
    return [wire.entry_from_json(item) for item in body["items"]]


def _items(body: Any) -> list[QueueItem]:
    return read_items(Fields(body))
