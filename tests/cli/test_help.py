"""The command line itself: what it offers, and how light it is until it does something."""

import json
import subprocess
import sys

import pytest

from pilothouse import __version__
from tests.cli.command import Cli

COMMANDS = (
    *("run", "resume", "cancel", "chat", "validate", "get", "describe", "logs", "events"),
    *("steer", "follow-up", "next", "migrate", "version", "session"),
)

LOADED = """
import json, sys
from pilothouse.cli.main import main
sys.argv = ["pilothouse", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    print(json.dumps([end.code, sorted(sys.modules)]), file=sys.stderr)
"""

HEAVY = {"pydantic", "psycopg", "httpx", "rich", "yaml", "cel_expr_python", "asyncio", "jsonschema_rs"}


def helped(*arguments: str) -> tuple[str, int, set[str]]:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments, "--help"], capture_output=True, text=True, check=True
    )
    status, modules = json.loads(done.stderr)
    return done.stdout, status, set(modules)


@pytest.mark.parametrize("command", [*COMMANDS, *(f"session {each}" for each in ("list", "show", "export", "import"))])
def test_the_help_of_a_command_imports_nothing_heavy(command: str) -> None:
    _, status, modules = helped(*command.split())
    assert status == 0
    assert modules & HEAVY <= {"pydantic"}, "typer itself looks whether an option's type is pydantic's"


def test_help_names_every_command_and_imports_nothing_heavy() -> None:
    told, status, modules = helped()
    assert status == 0
    assert modules & HEAVY == set()
    assert [line.split()[0] for line in told.split("Commands:")[1].splitlines() if line.strip()] == list(COMMANDS)


async def test_version_and_mistakes_in_the_command_line(cli: Cli) -> None:
    assert (await cli("version")).out == f"pilothouse {__version__}\n"
    for arguments in (("frobnicate",), ("run",), ("get", "-o", "xml"), ("cancel", "w", "--verb", "Halt")):
        wrong = await cli(*arguments)
        assert wrong.status == 2
        assert "Error: " in wrong.err


async def test_validate_tells_every_problem_or_that_all_is_well(cli: Cli) -> None:
    good = cli.workflow("  steps: [{name: a, transform: {value: 1}}]")
    well = await cli("validate", "-f", good)
    assert (well.status, well.out, well.err) == (0, "", "all is well\n")
    bad = cli.workflow("  steps: [{name: a, transform: {value: 1}, needs: [b]}, {name: c, runComand: {}}]", "bad")
    found = await cli("validate", "-f", bad, "-f", good)
    assert (found.status, found.out) == (2, "")
    assert "did you mean `runCommand`" in found.err
