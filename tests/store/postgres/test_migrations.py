"""The migrator: ordered, once each, whole or not at all, and never against what it does not know."""

import asyncio
import sys
from dataclasses import replace
from uuid import UUID

import psycopg
import pytest

from pilothouse.store.errors import StoreUnusable
from pilothouse.store.postgres import migrate, open_store
from pilothouse.store.postgres.schema import Migration, shipped
from tests.store.fixtures import run_sql

NAMES = [migration.name for migration in shipped()]
NEXT = len(NAMES) + 1


def next_file(sql: bytes = b"CREATE TABLE extra (id int)", phase: str = "pre", version: int = NEXT) -> Migration:
    return Migration.of(f"{version:02}_{phase}_extra.sql", sql)


async def fetch(dsn: str, sql: str) -> list[tuple[object, ...]]:
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        return await (await connection.execute(sql.encode())).fetchall()


def test_the_shipped_files_are_numbered_from_one_without_gaps() -> None:
    assert [migration.version for migration in shipped()] == list(range(1, NEXT))
    assert all(migration.needed_first for migration in shipped())


async def test_an_empty_database_becomes_a_store_with_an_installation_id(empty_database: str) -> None:
    assert await migrate(empty_database) == NAMES
    async with open_store(empty_database) as store:
        id = await store.installation()
        assert isinstance(id, UUID)
        assert await migrate(empty_database) == []
        assert await store.installation() == id


async def test_two_databases_are_two_installations(empty_database: str, server_dsn: str) -> None:
    await migrate(empty_database)
    await run_sql(server_dsn, "CREATE DATABASE second_installation")
    second = psycopg.conninfo.make_conninfo(server_dsn, dbname="second_installation")
    await migrate(second)
    [ours], [theirs] = (
        await fetch(empty_database, "SELECT id FROM installation"),
        await fetch(second, "SELECT id FROM installation"),
    )
    assert ours != theirs


async def test_five_migrators_at_once_apply_each_file_once(empty_database: str) -> None:
    program = (
        "import asyncio; from pilothouse.store.postgres import migrate; "
        f"print(asyncio.run(migrate({empty_database!r})))"
    )
    processes = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
        for _ in range(5)
    ]
    told = [(await process.communicate())[0].decode().strip() for process in processes]
    assert [process.returncode for process in processes] == [0] * 5
    assert sorted(told) == sorted(["[]"] * 4 + [str(NAMES)])
    assert await fetch(empty_database, "SELECT count(*) FROM installation") == [(1,)]


async def test_a_file_that_changed_after_it_was_applied_is_refused(empty_database: str) -> None:
    await migrate(empty_database)
    changed = [replace(shipped()[0], checksum="0" * 64), *shipped()[1:], next_file()]
    with pytest.raises(StoreUnusable, match=rf"`{NAMES[0]}` differs from what was applied.*restore the file"):
        await migrate(empty_database, changed)
    assert await fetch(empty_database, "SELECT to_regclass('extra')") == [(None,)]


async def test_a_database_of_a_newer_version_is_refused(empty_database: str) -> None:
    await migrate(empty_database, [*shipped(), next_file()])
    with pytest.raises(StoreUnusable, match=rf"newer than this pilothouse: it has `{next_file().name}`"):
        await migrate(empty_database)


async def test_code_survives_a_newer_pre_file_but_not_a_newer_post_file(empty_database: str) -> None:
    await migrate(empty_database, [*shipped(), next_file()])
    async with open_store(empty_database):
        pass
    post = next_file(b"SELECT 1", "post", NEXT + 1)
    await migrate(empty_database, [*shipped(), next_file(), post])
    with pytest.raises(StoreUnusable, match=f"`{post.name}`; install the newer version"):
        async with open_store(empty_database):
            pytest.fail("opened")


async def test_a_file_that_fails_half_way_leaves_nothing_and_is_applied_once_it_is_mended(empty_database: str) -> None:
    broken = next_file(b"CREATE TABLE extra (id int); INSERT INTO nowhere VALUES (1)")
    with pytest.raises(StoreUnusable, match="nowhere"):
        await migrate(empty_database, [*shipped(), broken])
    assert await fetch(empty_database, "SELECT to_regclass('extra')") == [(None,)]
    assert await fetch(empty_database, "SELECT count(*) FROM migrations") == [(len(NAMES),)]
    assert await migrate(empty_database, [*shipped(), next_file()]) == [next_file().name]


async def test_a_database_without_tables_names_the_command(empty_database: str) -> None:
    with pytest.raises(StoreUnusable, match="run `pilothouse migrate`, or on a cluster"):
        async with open_store(empty_database):
            pytest.fail("opened")


async def test_a_database_that_lags_behind_names_what_it_lacks(empty_database: str) -> None:
    await migrate(empty_database, shipped()[:1])
    with pytest.raises(StoreUnusable, match=rf"lacks {NAMES[1]}.*run `pilothouse migrate`"):
        async with open_store(empty_database):
            pytest.fail("opened")


async def test_every_primary_key_of_tenant_data_begins_with_the_tenant(database: str) -> None:
    rows = await fetch(
        database,
        """SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
           JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'public'
           JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0] WHERE i.indisprimary""",
    )
    first = {str(table): column for table, column in rows}
    ours_alone = {"installation", "leaders", "migrations"}
    assert {table for table, column in first.items() if column != "tenant"} == ours_alone
    assert {"runs", "steps", "attempts", "events", "sessions", "entries", "tool_calls", "blobs"} < set(first)
