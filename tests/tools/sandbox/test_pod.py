"""A sandbox in a Pod: it comes to the agent's door by itself, and when it was killed a successor does."""

import asyncio
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from pilothouse.tools.sandbox import pod
from pilothouse.tools.sandbox.errors import SandboxLost, SealUnavailable
from pilothouse.tools.sandbox.pod import Door, PodSandbox, pod_sandbox
from tests.tools.sandbox.processes import alive, catches, children, server_of, until, until_exists, until_gone

pytestmark = pytest.mark.feature("B35")

SERVER = (sys.executable, "-I", "-m", "pilothouse.tools.sandbox")
FIRST = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
"""Makes a command the first process of a PID namespace, as in a container."""


class Kubelet:
    """Starts the sandbox's container, and what a test wants besides."""

    def __init__(self, path: Path, workspace: Path, stack: AsyncExitStack) -> None:
        self.door = Door(str(path), os.geteuid(), os.getegid())
        self.told: list[str] = []
        self._workspace = workspace
        self._stack = stack

    async def start(self, *options: str, before: tuple[str, ...] = (), seal: str = "required") -> Process:
        place = ("--connect", self.door.path, "--workspace", str(self._workspace), "--seal", seal)
        server = (*before, *SERVER, *place, *options)
        process = await asyncio.create_subprocess_exec(*server, stdin=DEVNULL, stderr=PIPE)
        self._stack.push_async_callback(_end, process)
        return process

    def opened(self) -> bool:
        return os.path.exists(self.door.path)

    def open(self, limit: float = 30.0) -> "asyncio.Task[PodSandbox]":
        """Opens the agent's door, for as long as the test goes on."""
        return asyncio.create_task(self._stack.enter_async_context(pod_sandbox(self.door, self.told.append, limit)))


async def _end(process: Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.communicate()


@pytest.fixture
async def kubelet(tmp_path: Path, workspace: Path, sealable: None) -> AsyncIterator[Kubelet]:
    async with AsyncExitStack() as stack:
        yield Kubelet(tmp_path / "agent", workspace, stack)


async def said(process: Process) -> str:
    assert process.stderr is not None
    text = (await process.stderr.read()).decode()
    await process.wait()
    return text


@pytest.mark.parametrize("first", ["agent", "sandbox"])
async def test_agent_and_sandbox_may_start_in_any_order(kubelet: Kubelet, first: str) -> None:
    if first == "sandbox":
        await kubelet.start()
        opening = kubelet.open()
    else:
        opening = kubelet.open()
        await until(kubelet.opened)
        await kubelet.start("--wait", "0")
    sandbox = await (await opening).current()
    assert sandbox.sealed
    assert (await sandbox.run("echo ok", timeout=10)).stdout == b"ok\n"


async def test_the_door_is_gone_before_any_tool_runs(kubelet: Kubelet) -> None:
    await kubelet.start()
    await (await kubelet.open()).current()
    assert os.listdir(os.path.dirname(kubelet.door.path)) == ["workspace"]


async def test_a_door_that_a_killed_agent_left_behind_is_replaced(kubelet: Kubelet) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(kubelet.door.path)
    await kubelet.start()
    await (await kubelet.open()).current()


async def test_a_killed_sandbox_has_a_successor_in_the_same_workspace(kubelet: Kubelet) -> None:
    server = await kubelet.start()
    sandboxes = await kubelet.open()
    first = await sandboxes.current()
    await first.put("kept", b"kept")
    server.kill()
    await first.ended()
    waiting = asyncio.create_task(sandboxes.current())
    await kubelet.start()
    second = await waiting
    assert second is not first
    assert (await second.get("kept", max_bytes=10)).data == b"kept"
    assert kubelet.told == ["the sandbox has gone away; its next start is waited for"]


async def test_a_call_that_was_under_way_is_lost_and_the_next_one_is_not(kubelet: Kubelet, workspace: Path) -> None:
    server = await kubelet.start()
    sandboxes = await kubelet.open()
    running = asyncio.create_task((await sandboxes.current()).run("echo > begun; exec sleep 1000", timeout=1000))
    await until_exists(workspace / "begun")
    server.kill()
    with pytest.raises(SandboxLost):
        await running
    await kubelet.start()
    assert (await (await sandboxes.current()).run("echo ok", timeout=10)).stdout == b"ok\n"


async def test_a_sandbox_that_breaks_the_protocol_is_replaced(kubelet: Kubelet) -> None:
    opening = kubelet.open()
    await until(kubelet.opened)
    _, writer = await asyncio.open_unix_connection(kubelet.door.path)
    writer.write(b"GET / HTTP/1.1\r\n\r\n")
    await kubelet.start()
    assert (await (await opening).current()).sealed
    writer.close()


async def test_a_peer_of_another_user_is_not_let_in(kubelet: Kubelet) -> None:
    """The expected user is another one here, so it is the sandbox that is the stranger."""
    path, ours = kubelet.door.path, kubelet.door
    kubelet.door = Door(path, ours.user + 1, ours.group)
    server = await kubelet.start()
    opening = kubelet.open(limit=1.0)
    await server.wait()
    with pytest.raises(SandboxLost, match="no sandbox came within 1 s"):
        await opening


async def test_an_unsealed_sandbox_is_refused(kubelet: Kubelet) -> None:
    await kubelet.start(seal="off")
    with pytest.raises(SealUnavailable, match="came unsealed: not asked to seal itself"):
        await kubelet.open()


async def test_a_sandbox_that_never_comes_is_told_with_the_last_one_s_trouble(
    kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening = kubelet.open(limit=1.0)
    await until(kubelet.opened)
    _, writer = await asyncio.open_unix_connection(kubelet.door.path)
    writer.close()
    with pytest.raises(SandboxLost, match=r"within 1 s \(the last one: the sandbox ended before its `hello`\)"):
        await opening


async def test_a_door_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        async with pod_sandbox(Door(str(tmp_path / "missing/agent"), 1, os.getegid()), print, 5.0):
            pass


async def test_a_sandbox_waits_only_so_long_and_says_so(kubelet: Kubelet) -> None:
    server = await kubelet.start("--wait", "0.3")
    text = await said(server)
    assert re.fullmatch(r"sandbox: no agent listened on .*/agent within 0.3 s: No such file or directory\n", text)
    assert server.returncode == 1


async def test_a_sandbox_ends_with_its_connection(kubelet: Kubelet, workspace: Path) -> None:
    server = await kubelet.start()
    async with pod_sandbox(kubelet.door, print, 30.0) as sandboxes:
        sandbox = await sandboxes.current()
        running = asyncio.create_task(sandbox.run("echo $$ > self; exec sleep 1000", timeout=1000))
        command = int(await until_exists(workspace / "self"))
    with pytest.raises(SandboxLost):
        await running
    assert await server.wait() == 0
    assert not alive(command)


async def test_sigterm_ends_it_at_once_with_all_below(kubelet: Kubelet, workspace: Path) -> None:
    server = await kubelet.start()
    sandbox = await (await kubelet.open()).current()
    running = asyncio.create_task(sandbox.run("trap '' TERM; echo $$ > self; sleep 1000", timeout=1000))
    command = int(await until_exists(workspace / "self"))
    server.terminate()
    assert await server.wait() == 0
    with pytest.raises(SandboxLost):
        await running
    assert not alive(command)


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="only root makes a PID namespace")
@pytest.mark.parametrize("busy", [True, False])
async def test_sigterm_ends_it_also_as_the_first_process_of_a_container(
    kubelet: Kubelet, workspace: Path, busy: bool
) -> None:
    container = await kubelet.start(before=FIRST)
    sandbox = await (await kubelet.open()).current()
    assert await server_of(sandbox) == 1
    if busy:
        script = "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 1000' & echo > self; wait"
        running = asyncio.create_task(sandbox.run(script, timeout=1000))
        await until_exists(workspace / "self")
    [first] = children(container.pid)
    os.kill(first, signal.SIGTERM)
    await container.wait()
    await until_gone(first)
    if busy:
        with pytest.raises(SandboxLost):
            await running


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="only root makes a PID namespace")
async def test_a_container_that_waits_for_its_agent_ends_at_once_too(kubelet: Kubelet) -> None:
    container = await kubelet.start(before=FIRST)
    await until(lambda: children(container.pid))
    [first] = children(container.pid)
    await until(lambda: catches(first, signal.SIGTERM))
    os.kill(first, signal.SIGTERM)
    await container.wait()


BEGINS = """
import runpy, signal, sys

class Look:
    def find_spec(self, name, *_):
        if name == "pilothouse.tools.sandbox.server":
            print("asyncio" in sys.modules, signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
            sys.exit()

sys.meta_path.insert(0, Look())
runpy.run_module("pilothouse.tools.sandbox", run_name="__main__")
"""


def test_sigterm_is_heard_before_the_imports() -> None:
    """A sandbox that the kubelet started anew just before it ended the Pod would keep it for the whole grace period."""
    begun = subprocess.run([sys.executable, "-I", "-c", BEGINS], capture_output=True, text=True, check=True)
    assert begun.stdout.split() == ["False", "False"]


async def test_the_end_of_what_a_command_left_behind_is_awaited_by_the_first_process(kubelet: Kubelet) -> None:
    """A container's first process gets every orphan; one that it did not wait for would stay in the table for ever."""
    server = await kubelet.start()
    sandbox = await (await kubelet.open()).current()
    for _ in range(5):
        await sandbox.run("(setsid sleep 0.01 &) ; true", timeout=10)
    await until(lambda: all(map(alive, children(server.pid))))


def test_a_successor_is_waited_for_longer_than_the_kubelet_pauses() -> None:
    assert pod.RETURN_LIMIT > 300
