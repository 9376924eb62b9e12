"""An agent is told what the page says while it works, by the commands of the page, and hears it when the page says."""

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.command import Cli
from tests.docs.pages import DOCS, Page
from tests.store.fixtures import database, server_dsn

__all__ = ["database", "server_dsn"]

PAGE = Page.of(DOCS / "how-to" / "talk-to-a-running-agent.md")
[MANIFEST] = PAGE.blocks("yaml")
TALK, SHOW, CARRY = PAGE.blocks("console")
[SHOWN] = PAGE.blocks("text")

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_AGE = re.compile(r" \d+(s|ms) ")


@pytest.fixture
def cli(tmp_path: Path, database: str) -> Cli:
    return Cli(tmp_path, ("--state", str(tmp_path / "state"), "--dsn", database))


def plain(text: str) -> list[str]:
    """The lines without what differs from run to run."""
    return [" ".join(_AGE.sub(" AGE ", _ID.sub("ID", line)).split()) for line in text.strip().splitlines()]


async def follow(cli: Cli, block: str) -> None:
    """Runs the commands of a block; each prints what the block shows."""
    for part in block.split("$ pilothouse ")[1:]:
        command, _, printed = part.partition("\n")
        result = await cli(*shlex.split(command))
        assert (result.status, plain(result.out)) == (0, plain(printed)), result.err


@pytest.mark.feature("A69")
async def test_a_running_agent_hears_what_the_page_says(cli: Cli, tmp_path: Path) -> None:
    """Its tool waits for the test instead of a minute."""
    over = tmp_path / "over"
    counting = f"until test -e {over}; do sleep 0.1; done; echo 8"
    file = cli.file(MANIFEST.replace("sleep 60; echo 8", counting), "count.yaml")
    async with cli.begun("run", "-f", file) as run:
        await run.until("ToolStarted")
        await follow(cli, TALK)
        over.touch()
        ended = await run.end()
    assert ended.status == 0, ended.err
    assert "answer: Of these, 3 are empty." in ended.out
    shown = (await cli(*shlex.split(SHOW)[2:])).out.replace(counting, "sleep 60; echo 8").partition("\n\n")[2]
    assert plain(shown) == plain(SHOWN)
    await follow(cli, CARRY)
    again = await cli("run", "-f", file)
    assert "answer: There are still 8." in again.out
    assert "Waiting" not in (await cli("session", "show", "files")).out
