"""Whatever the tool: the model sees the beginning and the end of a long output, and the whole is kept."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pilothouse.agents.definition import ToolGround, make_provider, make_task, open_tools
from pilothouse.agents.task import run_agent
from pilothouse.api.agent import Agent
from pilothouse.records.values import digest
from pilothouse.store.ports import AttemptStore
from pilothouse.tools.redaction import Redactor
from pilothouse.tools.sandbox.local import local_sandbox
from tests.agents.desk import STEP, Desk
from tests.tools.mcp.conftest import PROGRAM, HttpServer
from tests.tools.web.site import running

LIMIT = 1_000
LONG = "HEAD " + "\u00fc\n" * 100_000 + "TAIL"
HUGE = "z" * 10_000_000
"""What the tool `big` of the reference server says."""


@asynccontextmanager
async def shell(folder: Path) -> AsyncIterator[tuple[dict[str, Any], str, dict[str, str], str]]:
    (folder / "long.txt").write_text(LONG)
    yield {"builtin": "shell"}, "shell", {"command": "cat long.txt"}, f"{LONG}\n[exit code 0]"


@asynccontextmanager
async def file_read(folder: Path) -> AsyncIterator[tuple[dict[str, Any], str, dict[str, str], str]]:
    (folder / "long.txt").write_text(LONG)
    yield {"builtin": "file_read"}, "file_read", {"path": "long.txt"}, LONG


@asynccontextmanager
async def web_fetch(folder: Path) -> AsyncIterator[tuple[dict[str, Any], str, dict[str, str], str]]:
    async with running() as site:
        site.page("/", LONG, "text/plain; charset=utf-8")
        yield {"builtin": "web_fetch"}, "web_fetch", {"url": f"http://127.0.0.1:{site.port}/"}, LONG


@asynccontextmanager
async def mcp_program(folder: Path) -> AsyncIterator[tuple[dict[str, Any], str, dict[str, str], str]]:
    command = [sys.executable, "-I", str(PROGRAM), "stdio", "modern", str(folder)]
    yield {"mcp": {"name": "ref", "command": command}}, "ref_big", {}, HUGE


@asynccontextmanager
async def mcp_url(folder: Path) -> AsyncIterator[tuple[dict[str, Any], str, dict[str, str], str]]:
    server = HttpServer("modern", folder)
    await server.start()
    try:
        yield {"mcp": {"name": "ref", "url": server.url}}, "ref_big", {}, HUGE
    finally:
        await server.kill()


def no_secret(key: object) -> str:
    raise AssertionError(key)


async def called(desk: Desk, store: AttemptStore, folder: Path, tool: dict[str, Any], call: dict[str, Any]) -> Any:
    """The result, as the session holds it, of one call of one tool."""
    model = {"provider": "Scripted", "script": [{"toolCalls": [call]}, {"text": "Done."}]}
    more = {"limits": {"outputBytes": LIMIT}, "governance": {"domains": {"allow": ["127.0.0.1"]}}}
    manifest = {"metadata": {"name": "a"}, "spec": {"model": model, "tools": [tool], **more}}
    spec = Agent.model_validate(manifest).spec
    given: dict[str, Any] = {"attempt": 1, "message": "Go.", "arguments": {}, "instructions": ""}
    async with local_sandbox(folder) as sandbox:
        ground = ToolGround(sandbox, store.put_blob, Redactor(), no_secret, print)
        async with open_tools(spec, ground) as tools:
            task = make_task(spec, session=desk.session, step=STEP, **given)
            await run_agent(task, store, make_provider(spec, None), tools)
    messages = [entry.body.get("message", {}) for entry in (await desk.stored()).entries]
    [result] = [message for message in messages if message.get("role") == "toolResult"]
    return result


@pytest.mark.feature("A39")
@pytest.mark.parametrize("kind", [shell, file_read, web_fetch, mcp_program, mcp_url])
async def test_of_every_tools_long_output_both_ends_are_shown_and_the_whole_is_kept(
    desk: Desk, tmp_path: Path, kind: Any
) -> None:
    store = await desk.attempt()
    async with kind(tmp_path) as (tool, name, arguments, whole):
        result = await called(desk, store, tmp_path, tool, {"name": name, "arguments": arguments})
    [block] = result["content"]
    assert (result["isError"], block["type"]) == (False, "text")
    assert block["text"][:300] == whole[:300]
    assert block["text"][-300:] == whole[-300:]
    assert len(block["text"].encode()) < LIMIT + 100
    kept = result["details"]["output"]
    assert await store.get_blob(kept["digest"]) == whole.encode()
    assert kept == {"digest": digest(whole.encode()), "size": len(whole.encode())}
