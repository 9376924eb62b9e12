"""Reading runs: on connections that an outage has broken since the last read, and of sessions that runs share."""

from uuid import uuid4

from pilothouse.records.sessions import named_session
from pilothouse.records.states import AttemptState
from pilothouse.store.history import Wanted
from pilothouse.store.postgres import PostgresRunStore
from pilothouse.store.postgres.history import open_history
from tests.store.fixtures import run_sql
from tests.store.samples import attempt_of, created, message

OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


async def test_the_first_read_after_an_outage_meets_no_broken_connection(database: str) -> None:
    wanted = Wanted(uuid4(), "team-a")
    async with open_history(database) as history:
        assert await history.lines(wanted, 10) == []
        await run_sql(database, OTHERS)
        assert await history.lines(wanted, 10) == []


async def test_a_session_is_shown_with_each_run_that_opened_it(postgres: PostgresRunStore, database: str) -> None:
    tenant, leaf = uuid4(), None
    session, runs = named_session(tenant, "notes"), []
    for _ in range(2):
        attempt = await attempt_of(postgres, tenant)
        await attempt.open_session(session, "notes")
        [entry] = await attempt.append(session, leaf, [message()])
        leaf = entry.id
        await attempt.finish(AttemptState.SUCCEEDED)
        runs.append(attempt.ref.run)
    stranger = await created(postgres, tenant)
    async with open_history(database) as history:
        for run in runs:
            assert [(line.id, line.entries) for line in await history.sessions(run, 0, 10)] == [(session, 2)]
            assert len((await history.entries(run, session, 0, 10, 10_000)).rows) == 2
        assert list(await history.sessions(stranger, 0, 10)) == []
        assert list((await history.entries(stranger, session, 0, 10, 10_000)).rows) == []
