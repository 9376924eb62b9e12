"""The RunStore in memory."""

import secrets
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import UUID, uuid4

from pilothouse.records.events import Event, EventType, NewEvent
from pilothouse.records.runs import Attempt, AttemptRef, NewRun, Run, RunName, RunRef, Snapshot, StepId
from pilothouse.records.sessions import Session
from pilothouse.records.states import Shutdown, StepState
from pilothouse.records.values import BlobRef
from pilothouse.store.memory.attempts import MemoryAttemptStore
from pilothouse.store.memory.outside import MemorySessionStore
from pilothouse.store.memory.tables import RunTables, Tables, after, channel, clock
from pilothouse.store.memory.transitions import apply
from pilothouse.store.ports import Leadership
from pilothouse.store.refusals import carrier_refused, deposed, led_elsewhere, not_carried
from pilothouse.store.rows import (
    Row,
    attempt_of,
    blob_ref,
    event_of,
    run_of,
    run_row,
    session_of,
    step_of,
    step_rows,
)
from pilothouse.store.rules import plain, weaker_than
from pilothouse.store.transitions import Transition
from pilothouse.store.wakeups import runs_of


class MemoryRunStore:
    """No method waits between reading and writing, so each is atomic among the tasks of one event loop."""

    def __init__(self) -> None:
        self._tables = Tables()
        self._installation = uuid4()
        self._numbers: Counter[tuple[UUID, str]] = Counter()
        self._leaders: set[str] = set()
        self._epochs = Counter[str]()
        self._newest_epoch = 0
        self._token_key = secrets.token_bytes(32)

    async def installation(self) -> UUID:
        return self._installation

    @asynccontextmanager
    async def lead(self, scope: str) -> AsyncIterator[Leadership]:
        if plain(scope, "scope") in self._leaders:
            raise led_elsewhere(scope)
        self._leaders.add(scope)
        self._newest_epoch += 1
        self._epochs[scope] = self._newest_epoch
        try:
            yield Leadership(scope, self._newest_epoch)
        finally:
            self._leaders.discard(scope)

    async def epoch_of(self, scope: str) -> int:
        return self._epochs[plain(scope, "scope")]

    async def token_key(self) -> bytes:
        return self._token_key

    async def create_run(self, new: NewRun) -> Run:
        run, columns, steps, now = RunRef(new.tenant, new.run), run_row(new), step_rows(new.steps), clock()
        if run not in self._tables.runs:
            self._numbers[new.tenant, new.workflow] += 1
            number = self._numbers[new.tenant, new.workflow]
            created = RunTables(_new_run(columns, number, now))
            created.steps = {StepId(row["path"], row["index"]): _new_step(row, now) for row in steps}
            created.tell([NewEvent(EventType.RUN_STARTED)], now)
            self._tables.put(run, created)
        return run_of(self._tables.of(run).run)

    async def snapshot(self, run: RunRef) -> Snapshot:
        tables = self._tables.of(run)
        steps = {step: step_of(row) for step, row in tables.steps.items()}
        attempts = map(attempt_of, tables.attempts.values())
        newest = {a.step: a for a in attempts if a.call is None and a.ref.fence == steps[a.step].fence}
        return Snapshot(run_of(tables.run), steps, newest, clock())

    async def commit(self, run: RunRef, epoch: int, transition: Transition) -> None:
        draft = self._tables.of(run).draft()
        if epoch < draft.run["leader_epoch"]:
            raise deposed(run, epoch)
        apply(draft, epoch, transition, clock())
        self._tables.put(run, draft)

    async def request_shutdown(self, run: RunRef, verb: Shutdown) -> Run:
        draft = self._tables.of(run).draft()
        if draft.run["state"] == "Running" and draft.run["shutdown"] in (None, *weaker_than(verb)):
            draft.run = {**draft.run, "shutdown": verb.value}
            draft.tell([NewEvent(EventType.SHUTDOWN_REQUESTED, data={"verb": verb.value})], clock())
            self._tables.put(run, draft)
        return run_of(draft.run)

    async def runs(
        self,
        tenant: UUID | None = None,
        *,
        namespace: str | None = None,
        workflow: str | None = None,
        unfinished: bool = False,
        limit: int = 100,
    ) -> Sequence[Run]:
        newest_first = reversed([tables.run for tables in self._tables.runs.values()])
        found = [
            row
            for row in newest_first
            if tenant in (None, row["tenant"])
            and namespace in (None, row["namespace"])
            and workflow in (None, row["workflow"])
            and not (unfinished and row["state"] != "Running")
        ]
        return [run_of(row) for row in found[:limit]]

    async def run_names(
        self, tenant: UUID | None = None, *, workflow: str | None = None, unfinished: bool = False, limit: int
    ) -> Sequence[RunName]:
        runs = await self.runs(tenant, workflow=workflow, unfinished=unfinished, limit=limit)
        return [RunName(run.ref, run.number, run.namespace, run.workflow) for run in runs]

    async def attempts(self, run: RunRef) -> Sequence[Attempt]:
        rows = self._tables.runs[run].attempts.values() if run in self._tables.runs else ()
        return sorted(map(attempt_of, rows), key=lambda a: (a.created_at, a.step, a.ref.fence))

    async def events(self, run: RunRef, after: int = 0, limit: int = 1_000) -> Sequence[Event]:
        rows = self._tables.runs[run].events if run in self._tables.runs else []
        return [event_of(row) for row in rows[after : after + limit]]

    @asynccontextmanager
    async def changes(self, run: RunRef) -> AsyncIterator[AsyncIterator[None]]:
        with self._tables.wakeups.subscribe(channel(run)) as changes:
            yield changes

    @asynccontextmanager
    async def all_changes(self) -> AsyncIterator[AsyncIterator[RunRef | None]]:
        with self._tables.wakeups.subscribe_all() as changes:
            yield runs_of(changes)

    async def carry(self, ref: AttemptRef, epoch: int, carrier: str) -> None:
        draft = self._tables.of(ref.run).draft()
        if epoch < draft.run["leader_epoch"]:
            raise deposed(ref.run, epoch)
        row = draft.attempts.get(ref.attempt)
        if row is None or not draft.is_open(ref) or row["carrier"] not in (None, plain(carrier, "carrier")):
            raise carrier_refused(ref)
        draft.run = {**draft.run, "leader_epoch": epoch}
        draft.attempts[ref.attempt] = {**row, "carrier": carrier}
        self._tables.put(ref.run, draft, wake=False)

    async def carried(self, carrier: str, namespace: str) -> Attempt:
        wanted = (plain(carrier, "carrier"), plain(namespace, "namespace"))
        for tables in self._tables.runs.values():
            for row in tables.attempts.values():
                if (row["carrier"], tables.run["namespace"]) == wanted:
                    return attempt_of(row)
        raise not_carried(carrier, namespace)

    async def sessions(self, run: RunRef) -> Sequence[Session]:
        opened = self._tables.runs[run].sessions if run in self._tables.runs else ()
        found = {session: self._tables.sessions[run.tenant, session] for session in opened}
        return [session_of(session, tables.leaf, tables.entries.values()) for session, tables in found.items()]

    def attempt_store(self, ref: AttemptRef) -> MemoryAttemptStore:
        return MemoryAttemptStore(self._tables, ref)

    def session_store(self) -> MemorySessionStore:
        return MemorySessionStore(self._tables)

    async def put_blob(self, tenant: UUID, data: bytes) -> BlobRef:
        self._tables.put_blob(tenant, data)
        return blob_ref(data)

    async def get_blob(self, tenant: UUID, digest: str) -> bytes:
        return self._tables.get_blob(tenant, digest)


def _new_run(columns: Row, number: int, now: datetime) -> Row:
    deadline = after(now, columns["deadline_seconds"])
    return _NEW_RUN | columns | {"number": number, "created_at": now, "deadline": deadline}


def _new_step(row: Row, now: datetime) -> Row:
    """A step that comes settled, as in a run that repeats another, ended now."""
    settled = row["state"] != StepState.PENDING
    return _NEW_STEP | row | {"finished_at": now if settled else None}


_NEW_RUN: Row = {
    "state": "Running",
    "shutdown": None,
    "outputs": "{}",
    "failure": None,
    "finished_at": None,
    "event_seq": 0,
    "leader_epoch": 0,
}
_NEW_STEP: Row = {
    "state": "Pending",
    "attempts": 0,
    "restarts": 0,
    "fence": 0,
    "outputs": "{}",
    "failure": None,
    "started_at": None,
    "finished_at": None,
    "wake_at": None,
}
