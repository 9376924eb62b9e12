"""The RunHistory on PostgreSQL."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow

from pilothouse.records.events import Event
from pilothouse.records.runs import Attempt, Run, RunRef, Snapshot
from pilothouse.records.states import StepState
from pilothouse.store.errors import NotFound
from pilothouse.store.history import RunLine, SessionLine, Wanted
from pilothouse.store.pages import Page
from pilothouse.store.postgres.calls import digest_param, fetch, fetch_together, page_of, run_params
from pilothouse.store.postgres.listener import Listener
from pilothouse.store.postgres.outside import PostgresSessionStore
from pilothouse.store.postgres.pool import Pool
from pilothouse.store.postgres.queries import queries
from pilothouse.store.refusals import no_blob, no_run
from pilothouse.store.rows import attempt_of, event_of, run_of, step_of

_SQL = queries("history")

_OPEN = [state.value for state in StepState if not state.final]


@asynccontextmanager
async def open_history(dsn: str) -> AsyncIterator["PostgresHistory"]:
    """On connections of its own, so that however many people read, those who write never wait for one. The database
    is checked by `open_store`, not here."""
    async with Pool(dsn, checked=True) as pool:
        history = PostgresHistory(pool)
        try:
            yield history
        finally:
            await history.close()


class PostgresHistory:
    """Opened by `open_history`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._listener = Listener(pool)

    async def close(self) -> None:
        await self._listener.close()

    async def lines(self, wanted: Wanted, limit: int, before: UUID | None = None) -> Sequence[RunLine]:
        rows = await self._fetch("lines", asdict(wanted) | {"open": _OPEN, "limit": limit, "before": before})
        return [RunLine(run_of(row), row["steps"], row["settled"], row["now"]) for row in rows]

    async def head(self, run: RunRef, namespace: str) -> Run | None:
        for row in await self._fetch("head", run_params(run) | {"namespace": namespace}):
            return run_of(row)
        return None

    async def snapshot(self, run: RunRef, after: int, limit: int) -> Snapshot:
        params = _page(run, after, limit)
        [clock], runs, steps = await fetch_together(self._pool, _SQL["snapshot"], params)
        if not runs:
            raise no_run(run)
        return Snapshot(run_of(runs[0]), {step.id: step for step in map(step_of, steps)}, {}, clock["now"])

    async def attempts(self, run: RunRef, after: int, limit: int) -> Sequence[Attempt]:
        return [attempt_of(row) for row in await self._fetch("attempts", _page(run, after, limit))]

    async def attempt(self, run: RunRef, attempt: UUID) -> Attempt:
        for row in await self._fetch("attempt", run_params(run) | {"attempt": attempt}):
            return attempt_of(row)
        raise NotFound(f"this run has no attempt {attempt}")

    async def events(self, run: RunRef, after: int, limit: int) -> Sequence[Event]:
        return [event_of(row) for row in await self._fetch("events", _page(run, after, limit))]

    async def sessions(self, run: RunRef, after: int, limit: int) -> Sequence[SessionLine]:
        rows = await self._fetch("sessions", _page(run, after, limit))
        return [SessionLine(row["id"], row["leaf"], row["entry_seq"]) for row in rows]

    async def entries(self, run: RunRef, session: UUID, after: int, limit: int, size: int) -> Page:
        params = _page(run, after, limit) | {"session": session, "size": size}
        return page_of(await self._fetch("entries", params), "body")

    def session_pages(self) -> PostgresSessionStore:
        return PostgresSessionStore(self._pool)

    def changes(self, run: RunRef) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        return self._listener.subscribe(f"{run.tenant}/{run.run}")

    async def blob_size(self, tenant: UUID, digest: str) -> int:
        for row in await self._fetch("blob_size", {"tenant": tenant, "digest": digest_param(digest)}):
            return int(row["size"])
        raise no_blob(digest)

    async def blob_piece(self, tenant: UUID, digest: str, start: int, length: int) -> bytes:
        params = {"tenant": tenant, "digest": digest_param(digest), "start": start, "length": length}
        for row in await self._fetch("blob_piece", params):
            return bytes(row["piece"])
        raise no_blob(digest)

    async def _fetch(self, name: str, params: dict[str, Any]) -> list[DictRow]:
        return await fetch(self._pool, _SQL[name], params)


def _page(run: RunRef, after: int, limit: int) -> dict[str, Any]:
    return run_params(run) | {"after": after, "limit": limit}
