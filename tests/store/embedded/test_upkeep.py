"""A server that is lost while it is used comes back by itself."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import psycopg
import pytest

from pilothouse.store.embedded import embedded_server, upkeep
from pilothouse.store.embedded.cluster import Cluster
from pilothouse.store.embedded.locks import exclusive
from pilothouse.store.embedded.upkeep import bring_back
from pilothouse.store.errors import StoreUnusable
from tests.store.embedded.users import kill_server, leave, started_after, started_at, user


async def keep(dsn: str, number: int) -> None:
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        await connection.execute("CREATE TABLE IF NOT EXISTS kept (id int)")
        await connection.execute("INSERT INTO kept VALUES (%s)", [number])


async def kept(dsn: str) -> list[int]:
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        rows = await (await connection.execute("SELECT id FROM kept ORDER BY id")).fetchall()
        return [row[0] for row in rows]


async def test_however_often_it_is_killed_it_comes_back_with_all_that_was_committed(
    directory: Path, cluster: Cluster
) -> None:
    async with embedded_server(directory) as dsn:
        for number in range(3):
            await keep(dsn, number)
            start = await started_at(dsn)
            kill_server(cluster)
            await started_after(dsn, start)
            assert await kept(dsn) == list(range(number + 1))
    assert not await cluster.is_running()


async def until_gone(cluster: Cluster) -> None:
    while await cluster.is_running():  # noqa: ASYNC110 - a killed server tells nobody
        await asyncio.sleep(0.02)


def untold(_: Path) -> int:
    raise OSError("the kernel does not tell")


def unseen(_: Path) -> int:
    return 0  # what the kernel says of a process in another container


@pytest.mark.parametrize("process_behind", [untold, unseen])
async def test_it_comes_back_also_where_no_end_of_a_process_is_told(
    directory: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, process_behind: Callable[[Path], int]
) -> None:
    monkeypatch.setattr(upkeep, "process_behind", process_behind)
    async with embedded_server(directory) as dsn:
        start = await started_at(dsn)
        kill_server(cluster)
        await started_after(dsn, start)


async def test_two_users_have_one_server_again_and_either_keeps_it_up(
    directory: Path, cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    other = await user(directory)
    async with embedded_server(directory) as dsn:
        first = await started_at(dsn)
        kill_server(cluster)
        second = await started_after(dsn, first)
        told = await leave(other)
        assert await started_at(dsn) == second, "the other left, we still use the server"
        kill_server(cluster)
        await started_after(dsn, second)
    assert "does not start" not in told + caplog.text
    assert not await cluster.is_running()


async def test_of_two_who_miss_it_at_once_one_starts_it(directory: Path, cluster: Cluster) -> None:
    await cluster.start()
    try:
        kill_server(cluster)
        await until_gone(cluster)
        assert sorted(await asyncio.gather(bring_back(cluster), bring_back(cluster))) == [False, True]
    finally:
        await cluster.stop()


async def test_who_leaves_while_it_is_down_leaves_it_down(directory: Path, cluster: Cluster) -> None:
    async with AsyncExitStack() as start_of_another:
        async with embedded_server(directory):
            await start_of_another.enter_async_context(exclusive(cluster.gate))
            kill_server(cluster)
            await until_gone(cluster)
        assert asyncio.all_tasks() == {asyncio.current_task()}, "nothing is left that could start it"
    assert not await cluster.is_running()


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> asyncio.Queue[str]:
    """The reasons why the server was not started again, as they come."""
    reasons = asyncio.Queue[str]()
    start_again = Cluster.start_again

    async def watched(cluster: Cluster) -> None:
        try:
            await start_again(cluster)
        except StoreUnusable as error:
            reasons.put_nowait(str(error))
            raise

    monkeypatch.setattr(Cluster, "start_again", watched)
    return reasons


async def test_a_start_that_fails_is_told_of_once_and_tried_until_it_succeeds(
    directory: Path, cluster: Cluster, failures: asyncio.Queue[str], caplog: pytest.LogCaptureFixture
) -> None:
    settings = cluster.data / "postgresql.conf"
    async with embedded_server(directory) as dsn:
        start = await started_at(dsn)
        sound = settings.read_text()
        settings.write_text("nonsense")
        kill_server(cluster)
        reason, *_ = [await failures.get() for _ in range(3)]
        settings.write_text(sound)
        await started_after(dsn, start)
    told = [record.getMessage() for record in caplog.records if record.name == upkeep.__name__]
    assert told[0].startswith(reason)
    assert [message for message in told if "does not start" in message] == told[:1]


async def test_who_leaves_between_two_tries_need_not_wait(
    directory: Path, cluster: Cluster, failures: asyncio.Queue[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "_PAUSE", 3600)
    async with embedded_server(directory):
        (cluster.data / "postgresql.conf").write_text("nonsense")
        kill_server(cluster)
        await failures.get()
    assert not await cluster.is_running()


async def test_data_that_was_deleted_is_not_made_anew_under_a_user(
    directory: Path, cluster: Cluster, failures: asyncio.Queue[str]
) -> None:
    async with embedded_server(directory):
        kill_server(cluster)
        cluster.data.rename(directory / "elsewhere")
        await failures.get()
        assert not cluster.data.exists()
