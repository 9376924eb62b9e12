"""The two containers of an agent's Pod, each with its user, file system and PID namespace: what the kernel of this
machine makes of DESIGN section 4."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from pilothouse.records.states import AttemptState
from tests.attempts.containers import AGENT, DOOR, SANDBOX, SHARED, WORKSPACE, Pod, first_process, needed
from tests.attempts.scene import Scene, says, scripted, shell
from tests.models.wire import Hold, RawServer, Reply, answer, call_delta, delta, sse
from tests.tools.sandbox.processes import until, until_gone

pytestmark = [needed, pytest.mark.feature("B35")]

PROBE = Path(__file__).parents[2] / "e2e/isolation/probe.py"


@pytest.fixture
async def pod(tmp_path: Path) -> AsyncIterator[Pod]:
    async with AsyncExitStack() as stack:
        yield Pod(tmp_path / "pod", stack)


async def started(scene: Scene, pod: Pod, spec: dict[str, Any], *kill: str) -> Any:
    return await pod.agent(await scene.attempt(), await scene.environment(spec, sandbox=True), *kill)


async def test_an_agent_works_in_its_pod(scene: Scene, pod: Pod) -> None:
    """Through the real entry point, whose paths are those of a real Pod."""
    spec = scripted(shell("id -u > who; cat who"), says("Done."))
    agent = await started(scene, pod, spec)
    sandbox = await pod.sandbox()
    assert await agent.end() == 0, agent.log
    assert (await scene.newest()).state is AttemptState.SUCCEEDED
    assert (pod.folder / "workspace/who").read_text() == f"{SANDBOX}\n"
    assert await sandbox.wait() == 0


async def test_what_a_tool_can_reach_from_the_sandbox(scene: Scene, pod: Pod) -> None:
    """The whole machine is tried. Its network is the agent's, and the agent's secrets are there to be found."""
    (pod.folder / "workspace/probe.py").write_text(PROBE.read_text())
    command = f"python3 -I probe.py --workspace {WORKSPACE} --door {DOOR} > told.json"
    agent = await started(scene, pod, scripted(shell(command), says("Done.")))
    await pod.sandbox()
    assert await agent.end() == 0, agent.log
    told = json.loads((pod.folder / "workspace/told.json").read_text())
    assert (told["user"], told["groups"]) == (SANDBOX, [SANDBOX, SHARED])
    assert told["status"] == {"CapEff": "0" * 16, "CapBnd": "0" * 16, "NoNewPrivs": "1", "Seccomp": "2"}
    assert set(told["environment"]) <= {"PATH", "HOME", "LANG", "TERM", "PWD", "LC_CTYPE"}
    assert (told["sockets"], told["uring"], told["secrets"], told["doors"], told["unlinked"]) == ([], False, [], [], [])
    assert [name for name in told["abstract"] if "pilothouse" in name] == []
    assert set(told["writable"]) <= {"/dev/shm", "/dev/mqueue"}  # noqa: S108
    assert [process for process in told["processes"] if process["traced"]] == []
    server = next(process for process in told["processes"] if process["pid"] == 1)
    assert (server["user"], server["read"]) == (SANDBOX, [])


async def test_the_agent_hides_from_other_users_and_from_its_own(scene: Scene, pod: Pod) -> None:
    """Even in one PID namespace: a process that is not dumpable belongs to root in /proc."""
    gate = asyncio.Event()

    class Asked(RawServer):
        async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            gate.set()
            await super().serve(reader, writer)

    async with await asyncio.start_server(Asked([Reply([Hold()])]).serve, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        spec = {"model": {"provider": "OpenAI", "name": "m", "baseURL": f"http://127.0.0.1:{port}/v1"}}
        agent = await pod.agent(await scene.attempt(), await scene.environment(spec))
        await gate.wait()
        first = await first_process(agent.process)
        for user in (AGENT, SANDBOX):
            for name in ("environ", "mem", "maps", "fd/0"):
                script = f"exec setpriv --reuid {user} --clear-groups head -c 1 /proc/{first}/{name}"
                reading = await asyncio.create_subprocess_shell(script, stdout=-1, stderr=-1)
                out, err = await reading.communicate()
                assert (out, b"Permission denied" in err) == (b"", True), f"{user} reads {name}: {err!r}"
        environment = _environment(first)
        assert b"canary" not in environment
        assert (pod.folder / "store/token").read_bytes() not in environment
        os.kill(first, signal.SIGTERM)
        assert await agent.end() == 143


def _environment(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


async def test_sigterm_closes_the_turn_also_as_the_first_process(scene: Scene, pod: Pod) -> None:
    agent = await started(scene, pod, scripted(shell("echo > begun; exec sleep 1000"), says("never")))
    sandbox = await pod.sandbox()
    await until((pod.folder / "workspace/begun").exists)
    os.kill(await first_process(agent.process), signal.SIGTERM)
    assert await agent.end() == 143
    assert (await scene.newest()).state is AttemptState.OPEN
    assert (await scene.messages())[-1]["content"][0]["text"].startswith("Operation aborted while the tool ran")
    assert await sandbox.wait() == 0


async def test_a_sandbox_that_is_killed_in_the_middle_of_a_command_leaves_an_unknown_outcome(
    scene: Scene, pod: Pod
) -> None:
    """Not lost, not repeated: the effect is there once, and the attempt says that nobody can know."""
    spec = scripted(shell("echo counted >> counter; exec sleep 1000"), says("never"))
    agent = await started(scene, pod, spec)
    first = await first_process(await pod.sandbox())
    await until((pod.folder / "workspace/counter").exists)
    os.kill(first, signal.SIGKILL)
    await pod.sandbox()
    assert await agent.end() == 0, agent.log
    attempt = await scene.newest()
    assert attempt.failure is not None
    assert (attempt.state, attempt.failure.reason) == (AttemptState.FAILED, "OutcomeUnknown")
    assert (pod.folder / "workspace/counter").read_text() == "counted\n"


async def test_a_sandbox_that_is_killed_between_two_calls_costs_nothing(scene: Scene, pod: Pod) -> None:
    """The model is asked in between; while it answers, the sandbox dies and is started again."""

    def asks(command: str) -> Reply:
        called = call_delta(0, json.dumps({"command": command}), id=command, name="shell")
        return Reply([sse(called, delta(finish="tool_calls")) + b"data: [DONE]\n\n"])

    class Killing(RawServer):
        async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if len(self.seen) == 1:
                os.kill(first, signal.SIGKILL)
                await until_gone(first)
                await pod.sandbox()
            await super().serve(reader, writer)

    server = Killing([asks("echo one >> counter"), asks("echo two >> counter"), Reply([answer("Done.")])])
    first = await first_process(await pod.sandbox())
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        spec = scripted() | {"model": {"provider": "OpenAI", "name": "m", "baseURL": f"http://127.0.0.1:{port}/v1"}}
        agent = await started(scene, pod, spec)
        assert await agent.end() == 0, agent.log
    assert (await scene.newest()).state is AttemptState.SUCCEEDED
    assert (pod.folder / "workspace/counter").read_text() == "one\ntwo\n"
    assert "the sandbox has gone away" in agent.log
