"""Starts, stops and kills of the bundled server: what was committed is there afterwards."""

import asyncio
import os
import signal

import psycopg
import pytest

from pilothouse.store.bundled.volume import held
from pilothouse.store.errors import StoreUnusable
from pilothouse.store.postgres import migrate
from tests.store.bundled.container import Container, kill


async def keep(container: Container, number: int) -> None:
    await container.execute("CREATE TABLE IF NOT EXISTS kept (id int)")
    await container.execute("INSERT INTO kept VALUES (%s)", values=[number])


async def kept(container: Container) -> list[object]:
    return [row[0] for row in await container.execute("SELECT id FROM kept ORDER BY id")]


async def test_the_rights_of_its_user_are_enough_for_the_schema(container: Container) -> None:
    await container.start()
    assert await migrate(container.dsn())
    assert not await migrate(container.dsn()), "the second time there is nothing to do"


async def test_told_to_end_it_cuts_clients_off_and_ends_in_order(container: Container) -> None:
    process = await container.start()
    client = await psycopg.AsyncConnection.connect(container.dsn())
    process.terminate()
    told = await container.told_by(process)
    await client.close()
    assert process.returncode == 0, told
    assert "received fast shutdown request" in told
    assert "FATAL:  no pg_hba.conf entry" not in told, "its own question whether it is ready is one that it answers"
    assert "database system is shut down" in told.splitlines()[-1]
    assert not container.settings.ready.exists()


async def test_a_server_that_is_killed_ends_its_supervisor_and_comes_back_with_what_was_committed(
    container: Container,
) -> None:
    for number in range(2):
        process = await container.start()
        await keep(container, number)
        os.kill(container.postmaster(), signal.SIGKILL)
        await container.told_by(process)
        assert process.returncode == 128 + signal.SIGKILL
    await container.start()
    assert await kept(container) == [0, 1]


async def test_a_pid_file_that_names_a_living_process_of_the_new_container_hinders_nobody(
    container: Container,
) -> None:
    process = await container.start()
    await keep(container, 1)
    kill(process)
    await process.wait()
    stranger = await asyncio.create_subprocess_exec("cat", stdin=asyncio.subprocess.PIPE, **container.owner.identity())
    assert stranger.stdin is not None
    try:
        old = str(container.postmaster())
        for file in (container.settings.data / "postmaster.pid", *container.settings.run.glob(".s.PGSQL.*.lock")):
            file.write_text(file.read_text().replace(old, str(stranger.pid), 1))
        await container.start()
    finally:
        stranger.stdin.close()
        await stranger.wait()
    assert await kept(container) == [1]
    assert stranger.returncode == 0, "the stranger was left alone"


async def test_a_start_that_was_killed_while_it_made_the_data_is_made_anew(container: Container) -> None:
    process = await container.launch()
    async with asyncio.timeout(30):
        while not (container.settings.unready / "PG_VERSION").exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.005)
    kill(process)
    await process.wait()
    assert not container.settings.data.exists()
    await container.start()
    assert not container.settings.unready.exists()


async def test_told_to_end_before_there_is_a_server_it_ends_at_once(container: Container) -> None:
    process = await container.launch()
    async with asyncio.timeout(30):
        while not container.settings.unready.exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.005)
    process.terminate()
    await container.told_by(process)
    assert process.returncode == 0
    await container.start()


async def test_no_second_server_works_on_the_volume_while_any_process_of_the_first_lives(
    container: Container,
) -> None:
    process = await container.start()
    process.kill()  # the supervisor alone: a container cannot come to this, a careless user can
    await process.wait()
    with pytest.raises(StoreUnusable, match="another server still uses"), held(container.settings, patience=0):
        pass
    os.kill(container.postmaster(), signal.SIGQUIT)
    with held(container.settings, patience=30):
        pass
