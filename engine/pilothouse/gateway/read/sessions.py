"""The routes for sessions, all below one namespace: what they hold, and what people say to the agents at work on them.

A session is looked for among those of the namespace's present UID. Whoever names a `tenant` means the namespace of
that UID alone, and not one that was made anew under the same name.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pilothouse.gateway.answers import json_answer
from pilothouse.gateway.bodies import Bodies
from pilothouse.gateway.kubeapi import KubeApi
from pilothouse.gateway.long import paged
from pilothouse.gateway.parsing import read_body
from pilothouse.gateway.read import asked, wire
from pilothouse.gateway.read.rights import Caller
from pilothouse.gateway.read.routes import ENTRIES, PAGE_OF_ENTRIES
from pilothouse.gateway.room import Room
from pilothouse.records.queues import QueueName
from pilothouse.store.errors import NotFound
from pilothouse.store.history import RunHistory
from pilothouse.store.pages import Page
from pilothouse.store.ports import RunStore
from pilothouse.store.remote import requests
from pilothouse.store.remote.answers import ITEMS
from pilothouse.store.remote.wire import LARGE, SMALL, Fields

SESSIONS = 100
"""Sessions that one answer holds at most."""

Endpoint = Callable[[Request], Awaitable[Response]]


def session_routes(store: RunStore, history: RunHistory, kube: KubeApi, room: Room) -> list[Route]:
    """What is read comes of `history`, so that no reader makes an agent wait."""
    api = _SessionApi(store, history, kube, room)
    one = "/sessions/{session:uuid}"
    endpoints: list[tuple[str, str, Endpoint]] = [
        ("GET", "/tenant", api.tenant),
        ("GET", "/sessions", api.heads),
        ("POST", "/sessions", api.import_session),
        ("GET", one, api.head),
        ("GET", f"{one}/entries", api.entries),
        ("GET", f"{one}/messages", api.queued),
        ("POST", f"{one}/messages", api.enqueue),
        ("POST", f"{one}/messages/cancel", api.cancel),
    ]
    root = f"{wire.ROOT}/namespaces/{{namespace}}"
    return [Route(f"{root}{path}", endpoint, methods=[method]) for method, path, endpoint in endpoints]


class _SessionApi:
    def __init__(self, store: RunStore, history: RunHistory, kube: KubeApi, room: Room) -> None:
        self._store = store
        self._history = history
        self._kube = kube
        self._room = room
        self._bodies = Bodies(room)

    async def tenant(self, request: Request) -> Response:
        """The id by which a session's name becomes its id."""
        caller = await self._caller(request)
        await caller.must_know_the_tenant(asked.maybe_id(request, "session"))
        return json_answer({"tenant": str(await self._tenant(caller, request))})

    async def heads(self, request: Request) -> Response:
        tenant = await self._read(request)
        limit, before = asked.number(request, "limit", SESSIONS), asked.maybe_id(request, "before")
        heads = await self._history.session_pages().sessions(tenant, before, limit)
        return json_answer({"items": [wire.head_to_json(head) for head in heads]})

    async def head(self, request: Request) -> Response:
        tenant = await self._read(request)
        return json_answer(wire.head_to_json(await self._history.session_pages().session(tenant, _session(request))))

    async def entries(self, request: Request) -> Response:
        """A page ends where it would need room; an entry that needs some is a page alone."""
        tenant, limit = await self._read(request), asked.number(request, "limit", ENTRIES)

        async def read(after: int, size: int) -> Page:
            page = await self._history.session_pages().entry_page(tenant, _session(request), after, limit, size)
            return replace(page, next=0) if page.rows else page

        return await paged(self._room, replace(PAGE_OF_ENTRIES, start=asked.after(request)), read)

    async def queued(self, request: Request) -> Response:
        tenant = await self._read(request)
        return await paged(
            self._room, ITEMS, partial(self._history.session_pages().item_page, tenant, _session(request))
        )

    async def enqueue(self, request: Request) -> Response:
        caller = await self._caller(request)
        await caller.must_write("create", _session(request))
        tenant = await self._tenant(caller, request)
        async with self._body(request, LARGE) as body:
            queue, message = body.read("queue", QueueName), body.object("message")
            sessions = self._store.session_store()
            item = await sessions.enqueue(tenant, _session(request), queue, message, body.uuid("id"))
        return json_answer({"seq": item.seq, "at": item.at.isoformat()})

    async def cancel(self, request: Request) -> Response:
        """Its answer shows messages, so it takes the right to read them, too."""
        caller = await self._caller(request)
        await caller.must_write("delete", _session(request))
        await caller.must_read_sessions()
        tenant = await self._tenant(caller, request)
        async with self._body(request, SMALL) as body:
            ids = body.list_of("ids", UUID)
        cancelled = partial(self._store.session_store().cancelled_page, tenant, _session(request), ids)
        return await paged(self._room, ITEMS, cancelled)

    async def import_session(self, request: Request) -> Response:
        caller = await self._caller(request)
        await caller.must_import()
        tenant = await self._tenant(caller, request)
        async with self._body(request, LARGE) as body:
            entries = requests.read_entries(body)
            session = await self._store.session_store().import_session(tenant, body.text("name"), entries)
        return json_answer({"id": str(session)})

    async def _caller(self, request: Request) -> Caller:
        return await Caller.of(self._kube, request, asked.namespace(request))

    async def _read(self, request: Request) -> UUID:
        """The tenant, for whom may read its sessions."""
        caller = await self._caller(request)
        await caller.must_read_sessions()
        return await self._tenant(caller, request)

    async def _tenant(self, caller: Caller, request: Request) -> UUID:
        """The namespace's present UID. Raises NotFound where it is not the one that is meant."""
        found, meant = await self._kube.namespace_uid(caller.namespace), asked.maybe_id(request, "tenant")
        if found is None or meant not in (None, found):
            raise NotFound(f"namespace {caller.namespace} is not there, or is not the one that it was")
        return found

    @asynccontextmanager
    async def _body(self, request: Request, limit: int) -> AsyncIterator[Fields]:
        async with self._bodies.body_of(request, limit) as data:
            yield read_body(data)


def _session(request: Request) -> UUID:
    found: UUID = request.path_params["session"]
    return found
