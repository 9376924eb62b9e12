"""The routes of the read API, all below one namespace: its runs, and what is recorded of each.

A run is looked for among those of the namespace's present UID and name: one of a namespace that was deleted and made
again under the same name belonged to others, and is not there.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pilothouse.gateway.answers import json_answer
from pilothouse.gateway.kubeapi import KubeApi
from pilothouse.gateway.long import paged
from pilothouse.gateway.read import asked, wire
from pilothouse.gateway.read.blobs import blob_answer
from pilothouse.gateway.read.rights import Caller
from pilothouse.gateway.refusals import Busy
from pilothouse.gateway.room import Room
from pilothouse.records.runs import Run, RunRef
from pilothouse.records.values import BlobRef
from pilothouse.store.errors import NotFound
from pilothouse.store.history import RunHistory, Wanted
from pilothouse.store.pages import Page
from pilothouse.store.remote.answers import SESSION

T = TypeVar("T")

RUNS, STEPS, ATTEMPTS, EVENTS, SESSIONS, ENTRIES = 100, 500, 500, 1_000, 500, 200
"""Items that one answer holds at most."""

PAGE_OF_ENTRIES = replace(SESSION, head='{"items":[', end=lambda _: '],"more":true}')
"""Whether more follow, only an empty page tells."""

LONGEST_WAIT = 20
"""Seconds that a request waits for a change: less than anything on the way waits for an answer."""

WAITERS = 500
"""Requests that wait for a change at a time."""


def read_routes(history: RunHistory, kube: KubeApi, room: Room) -> list[Route]:
    """Everything below wire.ROOT."""
    api = _ReadApi(history, kube, room)
    endpoints = {
        "": api.lines,
        "/{run:uuid}": api.snapshot,
        "/{run:uuid}/attempts": api.attempts,
        "/{run:uuid}/attempts/{attempt:uuid}/log": api.log,
        "/{run:uuid}/changes": api.changes,
        "/{run:uuid}/events": api.events,
        "/{run:uuid}/outputs/{output}": api.output,
        "/{run:uuid}/sessions": api.sessions,
        "/{run:uuid}/sessions/{session:uuid}/entries": api.entries,
    }
    return [Route(f"{wire.ROOT}/namespaces/{{namespace}}/runs{path}", endpoint) for path, endpoint in endpoints.items()]


class _ReadApi:
    def __init__(self, history: RunHistory, kube: KubeApi, room: Room) -> None:
        self._history = history
        self._kube = kube
        self._room = room
        self._waiting = 0

    async def lines(self, request: Request) -> Response:
        """Who names a Workflow needs the right to get it, who does not, the right to list them."""
        caller = await self._caller(request)
        workflow = asked.workflow(request)
        await (caller.must_list() if workflow is None else caller.must_get(workflow, told=True))
        limit, before = asked.number(request, "limit", RUNS), asked.maybe_id(request, "before")
        first, last = asked.id_bounds(request)
        number = asked.maybe_number(request, "number")
        tenant = await self._kube.namespace_uid(caller.namespace)
        if tenant is None:
            return json_answer({"items": []})
        wanted = Wanted(tenant, caller.namespace, workflow, number, first, last)
        lines = await self._history.lines(wanted, limit, before)
        return json_answer({"items": [wire.line_to_json(line) for line in lines]})

    async def snapshot(self, request: Request) -> Response:
        run = await self._run(request)
        after = asked.after(request)
        found = await self._history.snapshot(run.ref, after, STEPS)
        steps = [wire.step_to_json(step) for step in found.steps.values()]
        page = {"items": steps, "more": len(steps) == STEPS}
        return json_answer({"run": wire.run_to_json(found.run), "now": found.now.isoformat(), **page})

    async def attempts(self, request: Request) -> Response:
        return await self._page(
            request, await self._run(request), self._history.attempts, wire.attempt_to_json, ATTEMPTS
        )

    async def events(self, request: Request) -> Response:
        return await self._page(request, await self._run(request), self._history.events, wire.event_to_json, EVENTS)

    async def sessions(self, request: Request) -> Response:
        run = await self._run(request, logs=True)
        return await self._page(request, run, self._history.sessions, wire.session_to_json, SESSIONS)

    async def entries(self, request: Request) -> Response:
        """A page ends where it would need room; an entry that needs some is a page alone."""
        run, session = await self._run(request, logs=True), request.path_params["session"]
        limit = asked.number(request, "limit", ENTRIES)

        async def read(after: int, size: int) -> Page:
            page = await self._history.entries(run.ref, session, after, limit, size)
            return replace(page, next=0) if page.rows else page

        return await paged(self._room, replace(PAGE_OF_ENTRIES, start=asked.after(request)), read)

    async def log(self, request: Request) -> Response:
        run = await self._run(request, logs=True)
        attempt = await self._history.attempt(run.ref, request.path_params["attempt"])
        if attempt.log is None:
            raise NotFound("nothing is kept yet of what this attempt printed")
        return await blob_answer(self._history, run.ref.tenant, attempt.log)

    async def output(self, request: Request) -> Response:
        """An output that is too large for the answer that holds the run."""
        run, name = await self._run(request), request.path_params["output"]
        stored = (await self._history.snapshot(run.ref, 0, 0)).run.outputs.get(name)
        if not isinstance(stored, BlobRef):
            raise NotFound("the run has no output of that name that is kept apart")
        return await blob_answer(self._history, run.ref.tenant, stored)

    async def changes(self, request: Request) -> Response:
        """The number of the run's newest event: once it is greater than `since`, or `wait` seconds have passed."""
        run = await self._run(request)
        since, wait = asked.maybe_number(request, "since"), asked.number(request, "wait", LONGEST_WAIT)
        seq = run.event_seq if since is None else await self._after(run, since, wait)
        return json_answer({"seq": seq})

    async def _after(self, run: Run, since: int, wait: int) -> int:
        if self._waiting >= WAITERS:
            raise Busy
        self._waiting += 1
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait), self._history.changes(run.ref) as changes:
                    while await self._seq(run) <= since:
                        await anext(changes)
            return await self._seq(run)
        finally:
            self._waiting -= 1

    async def _seq(self, run: Run) -> int:
        found = await self._history.head(run.ref, run.namespace)
        if found is None:
            raise NotFound("the run was deleted")
        return found.event_seq

    async def _page(
        self,
        request: Request,
        run: Run,
        read: Callable[[RunRef, int, int], Awaitable[Sequence[T]]],
        to_json: Callable[[T], wire.Body],
        largest: int,
    ) -> Response:
        """A page, and whether another request may find more."""
        after, limit = asked.after(request), asked.number(request, "limit", largest)
        items = [to_json(item) for item in await read(run.ref, after, limit)]
        return json_answer({"items": items, "more": len(items) == limit})

    async def _caller(self, request: Request) -> Caller:
        return await Caller.of(self._kube, request, asked.namespace(request))

    async def _run(self, request: Request, logs: bool = False) -> Run:
        """The run, for whom may get its Workflow. Where there is none, rights are asked for all the same: who lacks
        them is told so, whether the run is there or not."""
        caller = await self._caller(request)
        run = await self._find(caller.namespace, asked.run(request))
        await caller.must_get(run.workflow if run else "", told=False)
        if logs:
            await caller.must_read_logs()
        if run is None:
            raise NotFound(f"namespace {caller.namespace} has no run {asked.run(request)}")
        return run

    async def _find(self, namespace: str, run: UUID) -> Run | None:
        tenant = await self._kube.namespace_uid(namespace)
        return await self._history.head(RunRef(tenant, run), namespace) if tenant else None
