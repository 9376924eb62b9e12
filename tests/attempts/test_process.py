"""The process of an agent's container, through a real gateway: however it ends, its row or its exit status says so."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pilothouse.api.agent import AgentSpec
from pilothouse.api.meta import KeyRef
from pilothouse.attempts.process import secrets
from pilothouse.attempts.settings import Files
from pilothouse.records.states import AttemptState
from pilothouse.records.values import BlobRef, Inline
from pilothouse.store.keeping import load
from pilothouse.tools.redaction import MARK
from tests.attempts.scene import Machine, Scene, events, says, scripted, shell, store_api
from tests.gateway.serving import served
from tests.models.wire import RawServer, Reply, answer, call_delta, delta, sse
from tests.tools.sandbox.processes import catches, until

CANARY = "canary-7d1f"


@asynccontextmanager
async def _model(server: RawServer) -> AsyncIterator[dict[str, Any]]:
    """The spec of an agent whose model is that server, for which it has a key."""
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        key = {"secretKeyRef": {"name": "model", "key": "key"}}
        yield {
            "model": {"provider": "OpenAI", "name": "m", "baseURL": f"http://127.0.0.1:{port}/v1", "apiKeyFrom": key}
        }


async def test_the_attempt_records_its_own_success(scene: Scene, machine: Machine) -> None:
    agent = await machine.agent(await scene.attempt(), await scene.environment(scripted(says("Done."))))
    assert (await agent.end(), agent.log.count("Traceback")) == (0, 0)
    attempt = await scene.newest()
    assert attempt.state is AttemptState.SUCCEEDED
    assert attempt.outputs["text"] == Inline("Done.")
    assert attempt.outputs["turns"] == Inline(1)


async def test_its_tools_work_in_the_sandbox(scene: Scene, machine: Machine) -> None:
    spec = scripted(shell("echo made > file; cat file"), says("Done."))
    agent = await machine.agent(await scene.attempt(), await scene.environment(spec, sandbox=True))
    await machine.sandbox()
    assert await agent.end() == 0
    result = (await scene.messages())[2]
    assert result["content"] == [{"type": "text", "text": "made\n[exit code 0]"}]
    assert (machine.folder / "workspace/file").read_text() == "made\n"


async def test_the_log_tells_of_turns_and_calls_and_not_of_what_was_said(scene: Scene, machine: Machine) -> None:
    made_up = {"toolCalls": [{"name": CANARY, "arguments": {"a": CANARY}}]}
    spec = scripted(shell(f"echo {CANARY}; exit 3") | says(CANARY), made_up, says(CANARY))
    environment = await scene.environment(spec, sandbox=True)
    agent = await machine.agent(await scene.attempt(), environment)
    await machine.sandbox()
    assert await agent.end() == 0
    assert events(agent.lines) == ["tool", "turn", "tool", "turn", "turn"]
    first, turn, second, *_ = agent.lines
    assert (first["step"], first["attempt"], first["tool"], first["error"]) == ("ask", 1, "shell", True)
    assert (turn["stop"], turn["calls"], turn["error"]) == ("toolUse", 1, None)
    assert second["tool"] is None
    assert CANARY not in agent.log


async def test_a_large_answer_is_kept_as_a_blob(scene: Scene, machine: Machine) -> None:
    async with _model(RawServer([Reply([answer("x" * 100_000)])])) as spec:
        (machine.folder / "key").write_text("key")
        agent = await machine.agent(await scene.attempt(), await scene.environment(spec))
        assert await agent.end() == 0
    text = (await scene.newest()).outputs["text"]
    assert isinstance(text, BlobRef)
    tenant = scene.run.tenant
    assert await load(text, lambda digest: scene.store.get_blob(tenant, digest)) == "x" * 100_000


@pytest.mark.parametrize(
    ("spec", "options", "code", "message"),
    [
        (scripted({"error": {"message": "no", "code": "F-DEP"}}), {}, "F-DEP", "no"),
        (scripted(shell("true"), says("ok")), {}, "F-RES", "made without one"),
        ({"model": {}}, {}, "F-UNK", "ValidationError"),
        (scripted(shell("sleep 1000")), {"sandbox": True, "limit": 2.0}, "F-TMO", "timeout of 2 seconds"),
    ],
)
async def test_every_failure_is_recorded_with_its_code(
    scene: Scene, machine: Machine, spec: Any, options: Any, code: str, message: str
) -> None:
    agent = await machine.agent(await scene.attempt(), await scene.environment(spec, **options))
    await machine.sandbox()
    assert await agent.end() == 0
    attempt = await scene.newest()
    assert attempt.failure is not None
    assert (attempt.state, attempt.failure.code) == (AttemptState.FAILED, code)
    assert message in attempt.failure.message


async def test_an_attempt_that_is_over_ends_its_process_quietly(scene: Scene, machine: Machine) -> None:
    old = await scene.attempt()
    await scene.attempt()
    agent = await machine.agent(old, await scene.environment(scripted(says("late"))))
    assert await agent.end() == 0
    assert "another attempt has taken the place" in agent.log
    assert (await scene.newest()).state is AttemptState.OPEN
    assert await scene.store.sessions(scene.run) == []


async def test_another_attempt_takes_over_while_the_model_answers(scene: Scene, machine: Machine) -> None:
    token = await scene.attempt()

    class Slow(RawServer):
        async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await scene.attempt()
            await super().serve(reader, writer)

    async with _model(Slow([Reply([answer("late")])])) as spec:
        (machine.folder / "key").write_text("key")
        agent = await machine.agent(token, await scene.environment(spec))
        assert await agent.end() == 0
    assert [message["role"] for message in await scene.messages()] == ["user"]
    assert [attempt.state for attempt in await scene.store.attempts(scene.run)] == [
        AttemptState.LOST,
        AttemptState.OPEN,
    ]


async def test_the_model_s_key_is_read_before_each_call(scene: Scene, machine: Machine) -> None:
    """A Secret that is rotated while the agent works is heeded; it stands in a file and nowhere else."""
    key = machine.folder / "key"

    class Rotating(RawServer):
        async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            key.write_text(f"second-{CANARY}\n")
            await super().serve(reader, writer)

    called = sse(call_delta(0, "{}", id="A", name="none"), delta(finish="tool_calls")) + b"data: [DONE]\n\n"
    server = Rotating([Reply([called]), Reply([answer("Done.")])])
    async with _model(server) as spec:
        key.write_text(f"first-{CANARY}\n")
        agent = await machine.agent(await scene.attempt(), await scene.environment(spec))
        assert await agent.end() == 0
    keys = [line for seen in server.seen for line in seen.head.splitlines() if line.lower().startswith("auth")]
    assert [line.split()[-1] for line in keys] == [f"first-{CANARY}", f"second-{CANARY}"]
    assert CANARY not in agent.log


async def test_an_agent_that_is_asked_has_a_model_with_a_key_of_its_own_and_the_same_sandbox(
    scene: Scene, machine: Machine
) -> None:
    key = machine.folder / "secrets/model/key"
    key.parent.mkdir(parents=True)
    key.write_text(CANARY)
    asks = {"toolCalls": [{"name": "helper", "arguments": {"message": "Look."}}]}
    spec = scripted(shell(f"echo {CANARY} > file"), asks, says("Done."))
    spec["tools"] = [*spec["tools"], {"agentRef": {"name": "helper"}}]
    reads = sse(call_delta(0, '{"path": "file"}', id="A", name="file_read"), delta(finish="tool_calls"))
    server = RawServer([Reply([reads + b"data: [DONE]\n\n"]), Reply([answer("I saw it.")])])
    async with _model(server) as model:
        asked = {"helper": model | {"tools": [{"builtin": "file_read"}]}}
        agent = await machine.agent(await scene.attempt(), await scene.environment(spec, sandbox=True, asked=asked))
        await machine.sandbox()
        assert await agent.end() == 0
    assert (await scene.newest()).outputs["text"] == Inline("Done.")
    assert all(f"Bearer {CANARY}" in seen.head for seen in server.seen)
    system, question, *_, seen = server.seen[1].body["messages"]
    assert (system["content"], question["content"]) == ("You are helper.", "Look.")
    assert MARK in seen["content"], "what one tool shows of another agent's key is taken out"
    assert CANARY not in agent.log


async def test_a_missing_key_is_a_failure_of_the_setup(scene: Scene, machine: Machine) -> None:
    async with _model(RawServer([Reply([answer()])])) as spec:
        agent = await machine.agent(await scene.attempt(), await scene.environment(spec))
        assert await agent.end() == 0
    failure = (await scene.newest()).failure
    assert failure is not None
    assert (failure.code, "the API key cannot be read" in failure.message) == ("F-ENV", True)


class Starting:
    """A gateway whose database is away at first."""

    def __init__(self, app: ASGIApp) -> None:
        self.away = True
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (Response(status_code=503) if self.away else self._app)(scope, receive, send)


async def test_a_gateway_that_is_away_at_first_is_waited_for(scene: Scene, machine: Machine) -> None:
    gateway = Starting(store_api(scene.store, scene.kube))
    async with served(gateway) as url:
        environment = await scene.environment(scripted(says("Done."))) | {"PILOTHOUSE_STORE_URL": url}
        agent = await machine.agent(await scene.attempt(), environment)
        await agent.until("the store is away")
        gateway.away = False
        assert await agent.end() == 0
    assert "the store is back" in agent.log
    assert (await scene.newest()).state is AttemptState.SUCCEEDED


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"PILOTHOUSE_STORE_URL": ""}, "the variable PILOTHOUSE_STORE_URL is missing"),
        ({"PILOTHOUSE_ATTEMPT_NUMBER": "one"}, "PILOTHOUSE_ATTEMPT_NUMBER must be a number, not 'one'"),
        ({"PILOTHOUSE_STORE_CA_PEM": "none"}, "no certificate in PEM"),
        ({"PILOTHOUSE_STORE_URL": "http://127.0.0.1:1"}, "must begin with https://"),
    ],
)
async def test_what_is_wrong_with_its_environment_is_said_in_one_line(
    scene: Scene, machine: Machine, changes: dict[str, str], message: str
) -> None:
    environment = await scene.environment(scripted(says("Done."))) | changes
    agent = await machine.agent(await scene.attempt(), environment)
    assert await agent.end() == 1
    assert message in agent.log
    assert len(agent.log.splitlines()) == 1


async def test_a_token_that_is_missing_is_said_in_one_line(scene: Scene, machine: Machine) -> None:
    environment = await scene.environment(scripted(says("Done.")))
    command = (sys.executable, "-m", "tests.attempts.agent", str(machine.folder))
    process = await machine.start(*command, **environment)
    _, told = await process.communicate()
    assert process.returncode == 1
    assert f"the Pod's token cannot be read from {machine.folder}/token" in told.decode()
    assert len(told.splitlines()) == 1


@pytest.mark.parametrize("data", [b"", b"nonsense"])
async def test_work_that_cannot_be_read_is_recorded_too(scene: Scene, machine: Machine, data: bytes) -> None:
    environment = await scene.environment(scripted(says("Done.")))
    if data:
        environment["PILOTHOUSE_WORK"] = (await scene.store.put_blob(scene.run.tenant, data)).digest
    else:
        environment["PILOTHOUSE_WORK"] = "sha256:" + "0" * 64
    agent = await machine.agent(await scene.attempt(), environment)
    assert await agent.end() == 1
    assert "agent: the work of the attempt, PILOTHOUSE_WORK, cannot be read" in agent.log
    failure = (await scene.newest()).failure
    assert failure is not None
    assert (failure.code, failure.message) == ("F-ENV", agent.log.splitlines()[-1].removeprefix("agent: "))


async def test_sigterm_closes_the_turn_and_decides_nothing(scene: Scene, machine: Machine) -> None:
    begun = machine.folder / "workspace/begun"
    spec = scripted(shell("echo > begun; exec sleep 1000"), says("never"))
    agent = await machine.agent(await scene.attempt(), await scene.environment(spec, sandbox=True))
    sandbox = await machine.sandbox()
    await until(begun.exists)
    agent.process.terminate()
    assert await agent.end() == 143
    assert (await scene.newest()).state is AttemptState.OPEN
    last = (await scene.messages())[-1]
    assert (last["role"], last["isError"]) == ("toolResult", True)
    assert last["content"][0]["text"].startswith("Operation aborted while the tool ran")
    assert await sandbox.wait() == 0


async def test_sigterm_is_heard_while_the_store_is_away(scene: Scene, machine: Machine, unused_tcp_port: int) -> None:
    environment = await scene.environment(scripted(says("Done.")))
    environment["PILOTHOUSE_STORE_URL"] = f"https://127.0.0.1:{unused_tcp_port}"
    agent = await machine.agent(await scene.attempt(), environment)
    await agent.until("the store is away")
    agent.process.terminate()
    assert await agent.end() == 143


async def test_sigterm_is_heard_before_the_imports_are_through(scene: Scene, machine: Machine) -> None:
    agent = await machine.agent(await scene.attempt(), await scene.environment(scripted(says("Done."))))
    await until(lambda: catches(agent.process.pid, signal.SIGTERM))
    agent.process.terminate()
    assert await agent.end() == 143


def test_the_entry_point_is_what_the_test_s_process_is() -> None:
    """`python -I -m pilothouse.attempts.pod` calls the same function, with the paths of a real Pod."""
    files = Files()
    assert files.token == Path("/var/run/pilothouse/store/token")
    assert files.model_key == Path("/var/run/pilothouse/model/key")
    assert files.secrets == Path("/var/run/pilothouse/secrets")
    assert (files.door.path, files.door.user, files.door.group) == ("/run/pilothouse/sandbox/agent", 10002, 10003)


def test_the_model_s_key_is_read_for_the_model_alone(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("the model's")
    (tmp_path / "secrets/tracker").mkdir(parents=True)
    (tmp_path / "secrets/tracker/token").write_text("the tracker's")
    source = {"secretKeyRef": {"name": "model", "key": "key"}}
    spec = AgentSpec.model_validate({"model": {"provider": "OpenAI", "name": "m", "apiKeyFrom": source}})
    read = secrets(Files(model_key=tmp_path / "key", secrets=tmp_path / "secrets"), spec)
    assert read(KeyRef(name="model", key="key")) == "the model's"
    assert read(KeyRef(name="tracker", key="token")) == "the tracker's"
    for name, key in (("model", "other"), ("tracker", "other"), ("other", "key")):
        with pytest.raises(FileNotFoundError):
            read(KeyRef(name=name, key=key))
