"""The server runs while anybody uses its directory, whatever becomes of the users."""

import asyncio
import signal
from pathlib import Path

import psycopg

from pilothouse.store.embedded import embedded_server
from pilothouse.store.embedded.cluster import Cluster
from tests.store.embedded.users import kill_server, leave, started_at, user


async def until_stopped(cluster: Cluster) -> None:
    async with asyncio.timeout(20):
        while await cluster.is_running():  # noqa: ASYNC110 - another process stops it, and tells nobody
            await asyncio.sleep(0.05)


async def test_what_was_committed_is_there_the_next_time(directory: Path, cluster: Cluster) -> None:
    async with embedded_server(directory) as dsn, await psycopg.AsyncConnection.connect(dsn) as connection:
        await connection.execute("CREATE TABLE kept (id int)")
    assert not await cluster.is_running()
    async with embedded_server(directory) as dsn, await psycopg.AsyncConnection.connect(dsn) as connection:
        await connection.execute("SELECT * FROM kept")


async def test_commits_are_made_durable(directory: Path) -> None:
    async with embedded_server(directory) as dsn, await psycopg.AsyncConnection.connect(dsn) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            row = await (await connection.execute(f"SHOW {setting}".encode())).fetchone()
            assert row == ("on",), setting


async def test_users_share_one_server_and_the_last_one_stops_it(directory: Path, cluster: Cluster) -> None:
    first, second = await asyncio.gather(user(directory), user(directory))
    async with embedded_server(directory) as dsn:
        start = await started_at(dsn)
        await leave(first)
        assert await started_at(dsn) == start
    await leave(second)
    assert not await cluster.is_running()


async def test_a_killed_user_takes_the_server_from_nobody(directory: Path, cluster: Cluster) -> None:
    killed = await user(directory)  # it has started the server
    async with embedded_server(directory) as dsn:
        start = await started_at(dsn)
        killed.send_signal(signal.SIGKILL)
        await killed.wait()
        assert await started_at(dsn) == start
    assert not await cluster.is_running(), "the killed user does not count any more"


async def test_a_killed_last_user_leaves_no_server_behind(directory: Path, cluster: Cluster) -> None:
    killed = await user(directory)
    killed.send_signal(signal.SIGKILL)
    await killed.wait()
    await until_stopped(cluster)


async def test_a_server_that_was_killed_is_started_again_with_all_that_was_committed(
    directory: Path, cluster: Cluster
) -> None:
    async with embedded_server(directory) as dsn:
        async with await psycopg.AsyncConnection.connect(dsn) as connection:
            await connection.execute("CREATE TABLE kept (id int)")
        kill_server(cluster)
        async with embedded_server(directory), await psycopg.AsyncConnection.connect(dsn) as connection:
            await connection.execute("SELECT * FROM kept")
        assert await started_at(dsn), "the inner user left, the outer one still uses the server"


async def test_data_that_was_half_made_is_made_anew(directory: Path, cluster: Cluster) -> None:
    cluster.unready.mkdir()
    (cluster.unready / "PG_VERSION").write_text("18")
    async with embedded_server(directory) as dsn:
        assert await started_at(dsn)
