"""The RunStore on PostgreSQL."""

from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Self
from uuid import UUID

from psycopg.rows import DictRow

from pilothouse.records.events import Event, EventType, NewEvent
from pilothouse.records.runs import Attempt, AttemptRef, NewRun, Run, RunRef, Snapshot
from pilothouse.records.sessions import Session
from pilothouse.records.states import Shutdown
from pilothouse.records.values import BlobRef, encode
from pilothouse.store.errors import Conflict, StoreUnusable
from pilothouse.store.ports import Leadership
from pilothouse.store.postgres.attempts import PostgresAttemptStore
from pilothouse.store.postgres.blobs import get_blob, put_blob
from pilothouse.store.postgres.listener import Listener
from pilothouse.store.postgres.pool import Pool
from pilothouse.store.postgres.queries import queries
from pilothouse.store.postgres.statements import (
    Statement,
    event_statements,
    fetch,
    run_params,
    transact,
)
from pilothouse.store.postgres.transitions import Shut, transition_statements
from pilothouse.store.refusals import deposed, led_elsewhere, no_blob, no_run
from pilothouse.store.rows import attempt_of, blob_ref, event_of, run_of, run_row, session_of, step_of, step_rows
from pilothouse.store.rules import plain, weaker_than
from pilothouse.store.transitions import Transition

_SQL = queries("runs")
_ONE_MOMENT = Statement(b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")


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
        for row in await self._read("installation", {}):
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

    async def create_run(self, new: NewRun) -> Run:
        run = RunRef(new.tenant, new.run)
        insert = Statement(_SQL["insert_run"], run_row(new), _AlreadyThere())
        started = event_statements(run, [NewEvent(EventType.RUN_STARTED)])
        try:
            [[row], *_] = await transact(self._pool, [insert, _insert_steps(run, new), *started])
        except _AlreadyThere:
            return await self._run(run)
        return run_of(row)

    async def snapshot(self, run: RunRef) -> Snapshot:
        params = run_params(run)
        names = ("now", "find_run", "snapshot_steps", "snapshot_attempts")
        _, [clock], runs, steps, attempts = await transact(
            self._pool, [_ONE_MOMENT, *(Statement(_SQL[name], params) for name in names)]
        )
        if not runs:
            raise no_run(run)
        by_id = {step.id: step for step in map(step_of, steps)}
        newest = {attempt.step: attempt for attempt in map(attempt_of, attempts)}
        return Snapshot(run_of(runs[0]), by_id, newest, clock["now"])

    async def commit(self, run: RunRef, epoch: int, transition: Transition) -> None:
        statements = transition_statements(run, epoch, transition)
        try:
            await transact(self._pool, statements)
        except Shut:
            await self._run(run)
            raise deposed(run, epoch) from None

    async def request_shutdown(self, run: RunRef, verb: Shutdown) -> Run:
        params = run_params(run) | {
            "verb": verb.value,
            "weaker": [weaker.value for weaker in weaker_than(verb)],
            "type": EventType.SHUTDOWN_REQUESTED.value,
            "data": encode({"verb": verb.value}),
        }
        await self._read("shut_down", params)
        return await self._run(run)

    async def runs(
        self,
        tenant: UUID | None = None,
        *,
        workflow: str | None = None,
        unfinished: bool = False,
        limit: int = 100,
    ) -> Sequence[Run]:
        name = "list_unfinished_runs" if unfinished else "list_runs"
        rows = await self._read(name, {"tenant": tenant, "workflow": workflow, "limit": limit})
        return [run_of(row) for row in rows]

    async def attempts(self, run: RunRef) -> Sequence[Attempt]:
        return [attempt_of(row) for row in await self._read("list_attempts", run_params(run))]

    async def events(self, run: RunRef, after: int = 0, limit: int = 1_000) -> Sequence[Event]:
        rows = await self._read("list_events", run_params(run) | {"after": after, "limit": limit})
        return [event_of(row) for row in rows]

    def changes(self, run: RunRef) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        return self._listener.subscribe(f"{run.tenant}/{run.run}")

    async def sessions(self, run: RunRef) -> Sequence[Session]:
        names = ("list_sessions", "list_run_entries")
        _, sessions, entries = await transact(
            self._pool, [_ONE_MOMENT, *(Statement(_SQL[name], run_params(run)) for name in names)]
        )
        by_session: dict[UUID, list[DictRow]] = defaultdict(list)
        for entry in entries:
            by_session[entry["session"]].append(entry)
        return [session_of(row, by_session[row["id"]]) for row in sessions]

    def attempt_store(self, ref: AttemptRef) -> PostgresAttemptStore:
        return PostgresAttemptStore(self._pool, ref)

    async def put_blob(self, tenant: UUID, data: bytes) -> BlobRef:
        await fetch(self._pool, [put_blob(tenant, data)])
        return blob_ref(data)

    async def get_blob(self, tenant: UUID, digest: str) -> bytes:
        [rows] = await fetch(self._pool, [get_blob(tenant, digest)])
        if not rows:
            raise no_blob(digest)
        return bytes(rows[0]["data"])

    async def _read(self, name: str, params: dict[str, Any]) -> list[DictRow]:
        async with self._pool.connection() as connection:
            return await (await connection.execute(_SQL[name], params)).fetchall()

    async def _run(self, run: RunRef) -> Run:
        for row in await self._read("find_run", run_params(run)):
            return run_of(row)
        raise no_run(run)


class _AlreadyThere(Conflict):
    """The run was created before; what this transaction counted is rolled back."""


def _insert_steps(run: RunRef, new: NewRun) -> Statement:
    rows = step_rows(new.steps)
    columns = {"paths": "path", "indexes": "index", "positions": "position", "kinds": "kind"}
    return Statement(
        _SQL["insert_steps"],
        run_params(run) | {param: [row[column] for row in rows] for param, column in columns.items()},
    )
