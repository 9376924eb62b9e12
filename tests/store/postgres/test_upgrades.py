"""What a database held before a migration, the code after it goes on with."""

from uuid import uuid4

import psycopg
import pytest

from pilothouse.records.runs import AttemptRef, RunRef
from pilothouse.store.postgres import migrate, open_store
from pilothouse.store.postgres.schema import shipped
from tests.store.fixtures import run_sql
from tests.store.samples import message, new_run

_BEFORE_HOLDERS = 7
"""The last migration before sessions had a holder."""

_RUN = """INSERT INTO runs
    (tenant, id, number, namespace, workflow, workflow_uid, run_key, closure, params, schema_version)
    VALUES ('{tenant}', '{run}', 1, 'team-a', 'nightly', '{tenant}', 'k', '{{}}', '{{}}', 1)"""
_STEP = """INSERT INTO steps (tenant, run, path, index, position, kind)
    VALUES ('{tenant}', '{run}', 'build', 0, 0, 'invokeAgent')"""
_ATTEMPT = """INSERT INTO attempts (tenant, run, id, path, index, number, restart, nonce, fence)
    VALUES ('{tenant}', '{run}', '{attempt}', 'build', 0, 1, 0, 'n', 1)"""
_SESSION = "SELECT open_session('({tenant},{run},{attempt},1)', '{session}')"


async def test_an_attempt_that_is_open_while_sessions_get_holders_goes_on(empty_database: str) -> None:
    await migrate(empty_database, shipped()[:_BEFORE_HOLDERS])
    new, session, attempt = new_run(), uuid4(), uuid4()
    ids = {"tenant": new.tenant, "run": new.run, "attempt": attempt, "session": session}
    await run_sql(empty_database, *(sql.format(**ids) for sql in (_RUN, _STEP, _ATTEMPT, _SESSION)))
    await migrate(empty_database)
    async with open_store(empty_database) as store:
        run = RunRef(new.tenant, new.run)
        under_way = store.attempt_store(AttemptRef(run, attempt, 1))
        [entry] = await under_way.append(session, None, [message()])
        assert [shown.entries for shown in await store.sessions(run)] == [(entry,)]
        assert (await under_way.open_session(session)).leaf == entry.id


async def test_the_code_before_holders_still_finds_its_functions(database: str) -> None:
    """The calls of version 7, as its processes make them until they are replaced."""
    calls = (
        "SELECT * FROM open_session(%(by)s, %(session)s)",
        "SELECT * FROM session_page(%(by)s, %(session)s, 0, 1)",
        "SELECT * FROM append_entries(%(by)s, %(session)s, NULL, NULL, '[]', '[]', '[]')",
    )
    params = {"by": f"({uuid4()},{uuid4()},{uuid4()},1)", "session": uuid4()}
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
        for call in calls:
            with pytest.raises(psycopg.Error, match=r"^superseded"):
                await connection.execute(call.encode(), params)
