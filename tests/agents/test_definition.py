"""The tools of an Agent, opened as its spec lists them."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pilothouse.agents.definition import ToolGround, make_provider, make_task, open_tools
from pilothouse.agents.task import run_agent
from pilothouse.api.agent import AgentSpec
from pilothouse.api.meta import KeyRef
from pilothouse.records.failures import Failed
from pilothouse.store.ports import AttemptStore
from pilothouse.tools.redaction import MARK, Redactor
from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandbox.local import local_sandbox
from tests.agents.desk import STEP, Desk

SECRET = "s3cr3t-value"


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[Sandbox]:
    async with local_sandbox(tmp_path) as sandbox:
        yield sandbox


def ground(sandbox: Sandbox, store: AttemptStore, redactor: Redactor | None = None) -> ToolGround:
    def no_secret(key: KeyRef) -> str:
        raise AssertionError(key)

    return ToolGround(sandbox, store.put_blob, redactor or Redactor(), no_secret, print)


def scripted(command: str, **more: Any) -> AgentSpec:
    call = {"id": "c1", "name": "shell", "arguments": {"command": command}}
    model = {"provider": "Scripted", "script": [{"toolCalls": [call]}, {"text": "Done."}]}
    return AgentSpec.model_validate({"model": model, "tools": [{"builtin": "shell"}], **more})


@pytest.mark.feature("A39")
async def test_a_long_output_is_cut_for_the_model_kept_whole_and_free_of_secrets(desk: Desk, sandbox: Sandbox) -> None:
    spec = scripted(f"echo HEAD {SECRET}; yes | head -c 100000; echo {SECRET} TAIL", limits={"outputBytes": 1_000})
    store, redactor = await desk.attempt(), Redactor()
    redactor.learn(SECRET)
    async with open_tools(spec, ground(sandbox, store, redactor)) as tools:
        task = make_task(spec, session=desk.session, step=STEP, attempt=1, message="Go.", arguments={}, instructions="")
        await run_agent(task, store, make_provider(spec, None), tools)
    [result] = await results(desk)
    shown = result["content"][0]["text"]
    assert shown.startswith(f"HEAD {MARK}\ny\n")
    assert shown.endswith(f"y\n{MARK} TAIL\n[exit code 0]")
    assert len(shown) < 1_100
    whole = await store.get_blob(result["details"]["output"]["digest"])
    assert len(whole) == result["details"]["output"]["size"] > 100_000
    assert whole.count(MARK.encode()) == 2
    assert SECRET.encode() not in whole


async def results(desk: Desk) -> list[Mapping[str, Any]]:
    messages = [entry.body.get("message", {}) for entry in (await desk.stored()).entries]
    return [message for message in messages if message.get("role") == "toolResult"]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"governance": {"domains": {"deny": ["a b"]}}}, "governance.domains: `a b` must be a domain"),
        ({"tools": [{"mcp": {"name": "m", "command": ["no-such"]}}]}, "`m` cannot be used: cannot start 'no-such'"),
    ],
)
async def test_tools_that_cannot_be_had_fail_the_attempt(
    desk: Desk, sandbox: Sandbox, spec: dict[str, Any], why: str
) -> None:
    model = {"provider": "Scripted", "script": [{"text": "Done."}]}
    opened = open_tools(AgentSpec.model_validate({"model": model, **spec}), ground(sandbox, await desk.attempt()))
    with pytest.raises(Failed, match=why):
        async with opened:
            raise AssertionError("it was opened")


async def test_without_the_library_an_mcp_server_is_refused_with_the_remedy(
    desk: Desk, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    spec = scripted("true", tools=[{"mcp": {"name": "m", "url": "https://m.example/"}}])
    with pytest.raises(Failed, match=r"pip install 'pilothouse\[mcp\]'"):
        async with open_tools(spec, ground(sandbox, await desk.attempt())):
            raise AssertionError("it was opened")
