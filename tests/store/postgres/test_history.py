"""Reading on connections that an outage has broken since the last read."""

from uuid import uuid4

from pilothouse.store.history import Wanted
from pilothouse.store.postgres.history import open_history
from tests.store.fixtures import run_sql

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
