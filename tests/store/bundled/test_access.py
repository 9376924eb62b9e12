"""Who gets into the bundled server, and how."""

import psycopg
import pytest

from tests.store.bundled.container import PASSWORD, Container


async def refused(container: Container, **how: str) -> str:
    with pytest.raises(psycopg.OperationalError) as raised:
        await container.execute("SELECT 1", container.dsn(**how))
    return str(raised.value)


async def test_its_user_comes_by_scram_and_is_no_superuser(container: Container) -> None:
    await container.start()
    assert await container.execute("SELECT rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls "
                                   "FROM pg_roles WHERE rolname = current_user") == [(False,) * 5]  # fmt: skip
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        await container.execute("COPY (SELECT 1) TO PROGRAM 'true'")
    local = f"postgresql://postgres@/postgres?host={container.settings.run}&port={container.settings.port}"
    [(verifier,)] = await container.execute("SELECT rolpassword FROM pg_authid WHERE rolname = 'pilothouse'", local)
    assert str(verifier).startswith("SCRAM-SHA-256$")


async def test_nobody_else_comes_by_the_network(container: Container) -> None:
    await container.start()
    assert "password authentication failed" in await refused(container, password="wrong-horse_1")
    assert "no pg_hba.conf entry" in await refused(container, user="postgres", database="postgres")
    assert "no pg_hba.conf entry" in await refused(container, database="postgres")


async def test_the_password_is_that_of_the_file_at_each_start(container: Container) -> None:
    process = await container.start()
    process.terminate()
    await process.wait()
    container.set_password("another-horse_2\n")
    await container.start()
    assert await container.execute("SELECT 1", container.dsn(password="another-horse_2")) == [(1,)]
    assert "password authentication failed" in await refused(container, password=PASSWORD)
