"""What the server's errors mean for those who use the store."""

from collections.abc import Iterator
from contextlib import contextmanager

from psycopg import DataError, Error, InterfaceError, OperationalError, errors
from psycopg_pool import PoolTimeout

from pilothouse.records.values import ValueRefused
from pilothouse.store.errors import StoreError, StoreUnavailable, StoreUnusable

MIGRATE = "run `pilothouse migrate`, or on a cluster see why the release's migrate Job has not"
"""What is to be done where the tables are not those of this version."""

_REMEDIES: dict[type[Error], str] = {
    errors.DiskFull: "the server's disk is full; free space there",
    errors.ReadOnlySqlTransaction: "the server is read-only, as a standby is; name the primary in the DSN",
    errors.UndefinedTable: f"the tables are not there; {MIGRATE}",
    errors.UndefinedColumn: f"the tables are of another version; {MIGRATE}",
    errors.UndefinedObject: f"the tables are of another version; {MIGRATE}",
    errors.InsufficientPrivilege: "the DSN's user lacks rights there; use the user that ran `pilothouse migrate`",
    errors.InvalidPassword: "the server refuses the password; correct the DSN",
    errors.InvalidAuthorizationSpecification: "the server refuses the user; correct the DSN",
    errors.InvalidCatalogName: "there is no such database; create it or correct the DSN",
    errors.DataCorrupted: "the server reports damaged data; restore it from a backup",
    errors.IndexCorrupted: "the server reports a damaged index; REINDEX it",
}

_REFUSALS = {
    "does not exist": "create the user and the database, or correct the DSN",
    "password authentication failed": "correct the password in the DSN",
    "no password supplied": "put the password into the DSN or into PGPASSWORD",
    "no pg_hba.conf entry": "the server does not admit this user from this address; correct the DSN or pg_hba.conf",
    "No space left on device": "the server's disk is full; free space there",
}
"""Why a server that answers refuses a connection: the driver hands these on as text only."""


@contextmanager
def translated() -> Iterator[None]:
    """Turns the driver's errors into the store's. What is left as it was is a mistake in our SQL."""
    try:
        yield
    except (Error, PoolTimeout, UnicodeEncodeError) as error:
        meaning = store_error(error)
        if meaning is None:
            raise
        raise meaning from error


def store_error(error: Exception) -> StoreError | ValueRefused | None:
    """What an error of the driver means: something to wait for, to repair, or a value to refuse."""
    for kind, remedy in _REMEDIES.items():
        if isinstance(error, kind):
            return StoreUnusable(f"PostgreSQL: {_first_line(error)}: {remedy}")
    if isinstance(error, OperationalError | InterfaceError):
        return _of_connection(error)
    if isinstance(error, DataError | UnicodeEncodeError):
        return ValueRefused(f"PostgreSQL cannot store this value: {_first_line(error)}")
    return None


def _of_connection(error: Error) -> StoreError:
    for sign, remedy in _REFUSALS.items():
        if error.sqlstate is None and sign in str(error):
            return StoreUnusable(f"PostgreSQL: {_first_line(error)}: {remedy}")
    return StoreUnavailable(f"PostgreSQL cannot be reached now: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
