"""The RunStore on PostgreSQL."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Self
from uuid import UUID

from psycopg.rows import DictRow

from pilothouse.records.events import Event, EventType, NewEvent
from pilothouse.records.runs import Attempt, AttemptRef, NewRun, Run, RunName, RunRef, Snapshot
from pilothouse.records.sessions import Session
from pilothouse.records.states import Shutdown
from pilothouse.records.values import BlobRef, encode
from pilothouse.store.errors import Conflict, StoreUnusable
from pilothouse.store.ports import Leadership
from pilothouse.store.postgres.attempts import PostgresAttemptStore
from pilothouse.store.postgres.calls import (
    Refusals,
    call,
    digest_param,
    fetch,
    fetch_together,
    row_json,
    rows_json,
    run_params,
)
from pilothouse.store.postgres.listener import Listener
from pilothouse.store.postgres.outside import PostgresSessionStore
from pilothouse.store.postgres.pool import Pool
from pilothouse.store.postgres.queries import queries
from pilothouse.store.postgres.sessions import sessions_of
from pilothouse.store.postgres.transitions import transition_params, transition_refusals
from pilothouse.store.refusals import (
    carrier_refused,
    deposed,
    led_elsewhere,
    no_blob,
    no_run,
    not_carried,
)
from pilothouse.store.rows import (
    attempt_of,
    blob_ref,
    event_of,
    event_row,
    run_name_of,
    run_of,
    run_row,
    step_of,
    step_rows,
)
from pilothouse.store.rules import plain, weaker_than
from pilothouse.store.transitions import Transition

_SQL = queries("runs")


class PostgresRunStore:
    """Opened by `open_store`, which checks the database first. Every write is one transaction."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._listener = Listener(pool)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self._listener.close()

    async def installation(self) -> UUID:
        for row in await self._fetch("installation", {}):
            return UUID(str(row["id"]))
        raise StoreUnusable("the database has no installation id; restore it, or migrate an empty database")

    @asynccontextmanager
    async def lead(self, scope: str) -> AsyncIterator[Leadership]:
        """The lock belongs to a connection of its own, so the server takes it back whenever that ends,
        also where this process was killed."""
        params = {"scope": plain(scope, "scope")}
        async with self._pool.alone() as connection:
            [lock] = await (await connection.execute(_SQL["lock_leadership"], params)).fetchall()
            if not lock["held"]:
                raise led_elsewhere(scope)
            [row] = await (await connection.execute(_SQL["next_epoch"], params)).fetchall()
            yield Leadership(scope, row["epoch"])

    async def epoch_of(self, scope: str) -> int:
        for row in await self._fetch("epoch_of", {"scope": plain(scope, "scope")}):
            return int(row["epoch"])
        return 0

    async def token_key(self) -> bytes:
        [row] = await self._fetch("token_key", {})
        return bytes(row["token_key"])

    async def create_run(self, new: NewRun) -> Run:
        run = RunRef(new.tenant, new.run)
        params = {
            "new": row_json(run_row(new)),
            "steps": rows_json(step_rows(new.steps)),
            "events": rows_json([event_row(NewEvent(EventType.RUN_STARTED))]),
        }
        try:
            [row] = await call(self._pool, _SQL["create_run"], params, {"run_there": lambda _: _AlreadyThere()})
        except _AlreadyThere:
            [row] = await self._fetch("find_run", run_params(run))
        return run_of(row)

    async def snapshot(self, run: RunRef) -> Snapshot:
        [clock], runs, steps, attempts = await fetch_together(self._pool, _SQL["snapshot"], run_params(run))
        if not runs:
            raise no_run(run)
        by_id = {step.id: step for step in map(step_of, steps)}
        newest = {attempt.step: attempt for attempt in map(attempt_of, attempts)}
        return Snapshot(run_of(runs[0]), by_id, newest, clock["now"])

    async def commit(self, run: RunRef, epoch: int, transition: Transition) -> None:
        params = transition_params(run, epoch, transition)
        await call(self._pool, _SQL["commit_transition"], params, transition_refusals(run, epoch, transition))

    async def request_shutdown(self, run: RunRef, verb: Shutdown) -> Run:
        requested = NewEvent(EventType.SHUTDOWN_REQUESTED, data={"verb": verb.value})
        params = run_params(run) | {
            "verb": verb.value,
            "weaker": encode([weaker.value for weaker in weaker_than(verb)]),
            "events": rows_json([event_row(requested)]),
        }
        for row in await self._fetch("request_shutdown", params):
            return run_of(row)
        raise no_run(run)

    async def runs(
        self,
        tenant: UUID | None = None,
        *,
        namespace: str | None = None,
        workflow: str | None = None,
        unfinished: bool = False,
        limit: int = 100,
    ) -> Sequence[Run]:
        name = "list_unfinished_runs" if unfinished else "list_runs"
        params = {"tenant": tenant, "namespace": namespace, "workflow": workflow, "limit": limit}
        rows = await self._fetch(name, params)
        return [run_of(row) for row in rows]

    async def run_names(
        self, tenant: UUID | None = None, *, workflow: str | None = None, unfinished: bool = False, limit: int
    ) -> Sequence[RunName]:
        params = {"tenant": tenant, "workflow": workflow, "limit": limit}
        rows = await self._fetch("name_unfinished_runs" if unfinished else "name_runs", params)
        return [run_name_of(row) for row in rows]

    async def attempts(self, run: RunRef) -> Sequence[Attempt]:
        return [attempt_of(row) for row in await self._fetch("list_attempts", run_params(run))]

    async def events(self, run: RunRef, after: int = 0, limit: int = 1_000) -> Sequence[Event]:
        rows = await self._fetch("list_events", run_params(run) | {"after": after, "limit": limit})
        return [event_of(row) for row in rows]

    def changes(self, run: RunRef) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        return self._listener.subscribe(f"{run.tenant}/{run.run}")

    def all_changes(self) -> AbstractAsyncContextManager[AsyncIterator[RunRef | None]]:
        return self._listener.subscribe_all()

    async def carry(self, ref: AttemptRef, epoch: int, carrier: str) -> None:
        params = run_params(ref.run) | {
            "epoch": epoch,
            "attempt": ref.attempt,
            "fence": ref.fence,
            "carrier": plain(carrier, "carrier"),
        }
        refusals: Refusals = {
            "no_run": lambda _: no_run(ref.run),
            "deposed": lambda _: deposed(ref.run, epoch),
            "carrier": lambda _: carrier_refused(ref),
        }
        await call(self._pool, _SQL["carry"], params, refusals)

    async def carried(self, carrier: str, namespace: str) -> Attempt:
        params = {"carrier": plain(carrier, "carrier"), "namespace": plain(namespace, "namespace")}
        for row in await self._fetch("carried", params):
            return attempt_of(row)
        raise not_carried(carrier, namespace)

    async def sessions(self, run: RunRef) -> Sequence[Session]:
        return sessions_of(await self._fetch("list_sessions", run_params(run)))

    def attempt_store(self, ref: AttemptRef) -> PostgresAttemptStore:
        return PostgresAttemptStore(self._pool, ref)

    def session_store(self) -> PostgresSessionStore:
        return PostgresSessionStore(self._pool)

    async def put_blob(self, tenant: UUID, data: bytes) -> BlobRef:
        ref = blob_ref(data)
        await self._fetch("put_blob", {"tenant": tenant, "digest": ref.digest, "data": data})
        return ref

    async def get_blob(self, tenant: UUID, digest: str) -> bytes:
        params = {"tenant": tenant, "digest": digest_param(digest)}
        for row in await fetch(self._pool, _SQL["get_blob"], params, binary=True):
            return bytes(row["data"])
        raise no_blob(digest)

    async def _fetch(self, name: str, params: dict[str, Any]) -> list[DictRow]:
        return await fetch(self._pool, _SQL[name], params)


class _AlreadyThere(Conflict):
    """The run was created before; what this call counted is rolled back."""
