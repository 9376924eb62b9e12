"""Nothing that a command starts outlives it, whoever ends it and however."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandbox.errors import SandboxLost
from pilothouse.tools.sandbox.local import local_sandbox
from tests.tools.sandbox.processes import alive, parent, server_of, until_exists, until_gone

pytestmark = pytest.mark.feature("B35")

FAMILY = """
trap '' TERM
sleep 1000 & echo $! > child
setsid sh -c 'trap "" TERM; echo $$ > session; sleep 1000; true' &
(setsid sh -c 'echo $$ > daemon; exec sleep 1000' &)
while [ ! -s session ] || [ ! -s daemon ]; do sleep 0.01; done
echo $$ > self
"""
"""A shell with a child, a child in a session of its own, and a daemon; all but the daemon ignore SIGTERM."""


def pids(workspace: Path) -> list[int]:
    return [int((workspace / name).read_text()) for name in ("self", "child", "session", "daemon")]


async def test_what_a_command_leaves_behind_is_killed_when_it_ends(sandbox: Sandbox, workspace: Path) -> None:
    """Also what holds its output open, which is not waited for."""
    result = await sandbox.run(FAMILY, timeout=50)
    assert result.exit_code == 0
    assert not any(map(alive, pids(workspace)))


async def test_a_timeout_kills_all_that_the_command_started(sandbox: Sandbox, workspace: Path) -> None:
    result = await sandbox.run(FAMILY + "wait; sleep 1000", timeout=1)
    assert (result.exit_code, result.signal, result.timed_out) == (None, signal.SIGKILL, True)
    assert not any(map(alive, pids(workspace)))


async def test_a_timeout_lets_a_command_clean_up_first(sandbox: Sandbox) -> None:
    result = await sandbox.run("trap 'echo bye; exit 7' TERM; echo hi; sleep 1000 & wait", timeout=0.5)
    assert (result.exit_code, result.timed_out, result.stdout) == (7, True, b"hi\nbye\n")


async def test_a_cancelled_run_has_ended_when_the_cancellation_has(sandbox: Sandbox, workspace: Path) -> None:
    run = asyncio.create_task(sandbox.run(FAMILY + "wait; sleep 1000", timeout=1000))
    await until_exists(workspace / "self")
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert not any(map(alive, pids(workspace)))
    assert (await sandbox.run(["true"], timeout=10)).exit_code == 0


async def test_a_command_that_ignores_its_input_can_be_cancelled(sandbox: Sandbox, workspace: Path) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield bytes(1_000_000)

    script = "echo $$ > self; exec sleep 1000"
    run = asyncio.create_task(sandbox.run(script, timeout=1000, stdin=endless()))
    pid = int(await until_exists(workspace / "self"))
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert not alive(pid)


async def test_a_run_that_is_cancelled_at_once_is_answered(sandbox: Sandbox) -> None:
    for _ in range(20):
        run = asyncio.create_task(sandbox.run(["sleep", "1000"], timeout=1000))
        await asyncio.sleep(0)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
    assert (await sandbox.run(["true"], timeout=10)).exit_code == 0


async def test_closing_the_sandbox_ends_everything(workspace: Path) -> None:
    async with local_sandbox(workspace) as sandbox:
        server = await server_of(sandbox)
        run = asyncio.create_task(sandbox.run(FAMILY + "wait; sleep 1000", timeout=1000))
        await until_exists(workspace / "self")
    with pytest.raises(SandboxLost, match="closed"):
        await run
    assert not any(map(alive, [server, *pids(workspace)]))
    with pytest.raises(SandboxLost):
        await sandbox.run(["true"], timeout=10)


async def test_a_killed_server_is_noticed_and_takes_its_commands_with_it(sandbox: Sandbox, workspace: Path) -> None:
    server = await server_of(sandbox)
    run = asyncio.create_task(sandbox.run(FAMILY + "wait; sleep 1000", timeout=1000))
    await until_exists(workspace / "self")
    os.kill(server, signal.SIGKILL)
    with pytest.raises(SandboxLost, match="gone away"):
        await run
    with pytest.raises(SandboxLost, match="gone away"):
        await sandbox.get("self", max_bytes=10)
    await until_gone(*pids(workspace))


async def test_a_command_that_kills_its_keeper_loses_the_sandbox_and_is_killed(
    sandbox: Sandbox, workspace: Path
) -> None:
    """Its processes can no longer be told from others, so nothing more is served."""
    with pytest.raises(SandboxLost):
        await sandbox.run(FAMILY + "kill -9 $PPID; sleep 1000", timeout=1000)
    await until_gone(*pids(workspace))


AGENT = """
import asyncio, sys
from pathlib import Path
from pilothouse.tools.sandbox.local import local_sandbox

async def main():
    async with local_sandbox(Path(sys.argv[1])) as sandbox:
        await sandbox.run(sys.argv[2], timeout=1000)

asyncio.run(main())
"""


async def test_a_killed_agent_takes_its_sandbox_with_it(workspace: Path) -> None:
    agent = subprocess.Popen([sys.executable, "-c", AGENT, str(workspace), FAMILY + "wait; sleep 1000"])  # noqa: ASYNC220
    try:
        shell = int(await until_exists(workspace / "self"))
        keeper = parent(shell)
        server = parent(keeper)
        assert parent(server) == agent.pid
    finally:
        agent.kill()
        agent.wait()
    await until_gone(server, keeper, *pids(workspace))


async def test_a_sandbox_that_does_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(SandboxLost, match=r"No such file or directory.*missing"):
        async with local_sandbox(tmp_path / "missing"):
            pass
