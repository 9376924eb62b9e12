"""What the benchmarks stand on: a PostgreSQL server of their own, and runs in its store."""

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from psycopg import AsyncConnection

from bench.measure import timed
from pilothouse.api.workflow import WorkflowSpec, run_key
from pilothouse.records.runs import NewRun, NewStep, StepId
from pilothouse.store.embedded import embedded_server
from pilothouse.store.postgres import migrate
from pilothouse.workflows.closure import Closure


@asynccontextmanager
async def server() -> AsyncIterator[str]:
    """The DSN of an embedded server with our tables. Its data lies below TMPDIR and is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="pilothouse-bench-") as directory:
        async with embedded_server(Path(directory) / "server") as dsn:
            await migrate(dsn)
            yield dsn


def new_run(steps: Sequence[NewStep], closure: Mapping[str, Any] | None = None, key: str = "bench") -> NewRun:
    """A run of a tenant of its own."""
    return NewRun(uuid4(), uuid4(), "bench", "bench", uuid4(), key, closure or {}, {}, steps)


def run_of(spec: WorkflowSpec) -> NewRun:
    """A run of that workflow, which takes no params."""
    steps = [NewStep(StepId(step.name), step.action[0]) for step in spec.steps or ()]
    return new_run(steps, Closure(spec).to_json(), run_key(spec))


class PlainInserts:
    """The limit: one insert and its commit in one round trip, by psycopg alone, on one connection.

    The row is as large as one of our events. The table begins empty, as ours do.
    """

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self._run = uuid4()
        self.seconds: list[float] = []

    @classmethod
    @asynccontextmanager
    async def into(cls, dsn: str) -> AsyncIterator[Self]:
        async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
            await connection.execute(_TABLE)
            inserts = cls(connection)
            for _ in range(_WARM_UP):
                await inserts.one()
            inserts.seconds.clear()
            yield inserts

    async def one(self) -> None:
        row = (self._run, "StepStarted", '{"kind":"runCommand","attempt":1}')
        self.seconds.append(await timed(self._connection.execute(_INSERT, row)))


_WARM_UP = 20
"""So many executions make psycopg prepare a statement and PostgreSQL keep its plan."""

_TABLE = b"""
CREATE TABLE plain (
    id   bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run  uuid        NOT NULL,
    type text        NOT NULL,
    data json        NOT NULL,
    at   timestamptz NOT NULL DEFAULT now()
)"""
_INSERT = b"INSERT INTO plain (run, type, data) VALUES (%s, %s, %s)"
