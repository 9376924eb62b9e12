"""Where runs are kept: the embedded server of a folder, or a database of the user's own."""

from pathlib import Path

import pytest

from tests.cli.command import Cli, processes_of
from tests.store.fixtures import empty_database

__all__ = ["empty_database"]

ONE = "  steps: [{name: a, transform: {value: 1}}]"


async def test_with_a_folder_alone_runs_are_kept_in_its_own_server(short_path: Path) -> None:
    cli = Cli(short_path, ("--state", str(short_path / "state")))
    made = await cli("run", "-f", cli.workflow(ONE), "-o", "json")
    assert made.status == 0, made.err
    assert (await cli("get", "w", "-o", "json")).data == made.data
    assert processes_of(short_path) == [], "the server ends with the command"


async def test_a_database_is_migrated_only_when_asked(tmp_path: Path, empty_database: str) -> None:
    cli = Cli(tmp_path, ("--state", str(tmp_path / "state"), "--dsn", empty_database))
    refused = await cli("get")
    assert (refused.status, refused.out) == (2, "")
    assert "pilothouse migrate" in refused.err
    first = await cli("migrate")
    assert first.status == 0
    assert first.err.startswith("applied ")
    assert (await cli("migrate")).err == "nothing to do: the schema is this version's\n"
    assert (await cli("get")).out == "no runs in namespace default\n"


@pytest.mark.parametrize(
    ("where", "says"),
    [
        (("--dsn", "nonsense"), "the DSN cannot be read; write it as postgresql://user@host/database"),
        (("--dsn", "postgresql://127.0.0.1:1/x"), "PostgreSQL cannot be reached now"),
        (("--state", "/dev/null/x"), "/dev/null/x cannot be used: Not a directory; name another folder with --state"),
    ],
)
async def test_a_place_that_cannot_be_used_is_said_in_one_line(
    tmp_path: Path, where: tuple[str, ...], says: str
) -> None:
    result = await Cli(tmp_path, where)("get")
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith(f"pilothouse: {says}")
    assert len(result.err.splitlines()) == 1


async def test_no_run_begins_where_its_attempts_could_not_be_kept(cli: Cli) -> None:
    (cli.folder / "state").touch()
    result = await cli("run", "-f", cli.workflow("  steps: [{name: a, runCommand: {command: [ls]}}]"))
    assert result.status == 2
    assert (
        result.err == f"pilothouse: {cli.folder}/state cannot be used: File exists; name another folder with --state\n"
    )
    assert (await cli("get")).out == "no runs in namespace default\n"
