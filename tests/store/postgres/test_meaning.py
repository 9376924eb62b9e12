"""What the server's errors mean to whoever uses the store."""

import pytest
from psycopg import InterfaceError, OperationalError, ProgrammingError, errors
from psycopg_pool import PoolTimeout

from pilothouse.records.values import ValueRefused
from pilothouse.store.errors import StoreUnavailable, StoreUnusable
from pilothouse.store.postgres import PostgresRunStore, open_store
from pilothouse.store.postgres.meaning import store_error
from tests.store.fixtures import in_database, run_sql
from tests.store.samples import created, new_run


@pytest.mark.parametrize(
    "error",
    [
        OperationalError("connection failed: No such file or directory"),
        PoolTimeout("couldn't get a connection after 10.00 sec"),
        InterfaceError("the connection is closed"),
        errors.AdminShutdown("terminating connection due to administrator command"),
        errors.CannotConnectNow("the database system is starting up"),
        errors.QueryCanceled("canceling statement due to statement timeout"),
        errors.DeadlockDetected("deadlock detected"),
        errors.TooManyConnections("sorry, too many clients already"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_passes_by_itself_is_an_outage(error: Exception) -> None:
    meaning = store_error(error)
    assert isinstance(meaning, StoreUnavailable)
    assert str(error) in str(meaning)


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (errors.DiskFull("could not extend file: No space left on device"), "free space"),
        (errors.ReadOnlySqlTransaction("cannot execute UPDATE"), "name the primary"),
        (errors.UndefinedTable('relation "runs" does not exist'), "pilothouse migrate"),
        (errors.UndefinedColumn('column "x" does not exist'), "pilothouse migrate"),
        (errors.InsufficientPrivilege("permission denied for table runs"), "lacks rights"),
        (OperationalError('FATAL: database "x" does not exist'), "create"),
        (OperationalError("FATAL: password authentication failed for user"), "password"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_somebody_must_mend_says_how(error: Exception, remedy: str) -> None:
    meaning = store_error(error)
    assert isinstance(meaning, StoreUnusable)
    assert remedy in str(meaning)


def test_a_value_that_the_server_refuses_is_refused() -> None:
    assert isinstance(store_error(errors.NumericValueOutOfRange("integer out of range")), ValueRefused)


def test_a_mistake_in_a_query_stays_what_it_is() -> None:
    assert store_error(ProgrammingError("syntax error")) is None


async def test_an_integer_that_no_column_can_hold_is_refused(postgres: PostgresRunStore) -> None:
    [step] = new_run().steps[:1]
    beyond = type(step)(type(step.id)("a", 2**40), "wait")
    with pytest.raises(ValueRefused, match="integer"):
        await postgres.create_run(new_run(steps=[beyond]))


async def test_a_read_only_server_is_named(postgres: PostgresRunStore, database: str) -> None:
    run = await created(postgres)
    name = database.split("dbname=")[1].split()[0]
    await run_sql(database, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    async with open_store(database) as store:
        await store.snapshot(run)
        with pytest.raises(StoreUnusable, match="read-only"):
            await store.create_run(new_run())


async def test_a_database_that_is_not_there_is_named(server_dsn: str) -> None:
    with pytest.raises(StoreUnusable, match='"nowhere" does not exist'):
        async with open_store(in_database(server_dsn, "nowhere")):
            pytest.fail("opened")


async def test_what_is_no_dsn_is_refused_without_being_repeated() -> None:
    with pytest.raises(StoreUnusable, match="postgresql://user@host/database") as raised:
        async with open_store("host=a pass word=hunter2 x"):
            pytest.fail("opened")
    assert "hunter2" not in str(raised.value)
