"""The pages about tools do what they say."""

import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilothouse.agents.definition import ToolGround, make_provider, make_task, open_tools
from pilothouse.agents.task import run_agent
from pilothouse.api.agent import AgentSpec
from pilothouse.api.meta import KeyRef
from pilothouse.store.memory.runs import MemoryRunStore
from pilothouse.tools.redaction import Redactor
from pilothouse.tools.sandbox.local import local_sandbox
from tests.agents.desk import STEP, a_desk
from tests.docs.pages import DOCS, Page


def secret(key: KeyRef) -> str:
    raise AssertionError(key)


@pytest.mark.feature("B12")
def test_the_tools_of_the_how_to_are_tools() -> None:
    """Each block of the page goes on where the one before it ended."""
    names: dict[str, Any] = {"__name__": "page"}
    for number, block in enumerate(Page.of(DOCS / "how-to/write-a-tool.md").blocks("python")):
        exec(compile(block, f"block {number}", "exec"), names)  # noqa: S102
    assert "registry" in names


def librarian() -> Mapping[str, Any]:
    [manifest] = [
        text for text in Page.of(DOCS / "how-to/connect-an-mcp-server.md").blocks("yaml") if "Scripted" in text
    ]
    spec: Mapping[str, Any] = yaml.safe_load(manifest)["spec"]
    return spec


async def test_the_server_of_the_how_to_serves_the_agent_of_the_how_to(tmp_path: Path) -> None:
    [program] = Page.of(DOCS / "how-to/connect-an-mcp-server.md").blocks("python")
    (tmp_path / "notes_server.py").write_text(program)
    spec = AgentSpec.model_validate(librarian())
    server = spec.tools[0].mcp
    assert server is not None
    assert server.command == ("python3", "notes_server.py")
    here = server.model_copy(update={"command": (sys.executable, "notes_server.py")})
    spec = spec.model_copy(update={"tools": (spec.tools[0].model_copy(update={"mcp": here}),)})
    async with AsyncExitStack() as stack:
        desk = await stack.enter_async_context(a_desk(MemoryRunStore()))
        sandbox = await stack.enter_async_context(local_sandbox(tmp_path))
        store = await desk.attempt()
        ground = ToolGround(sandbox, store.put_blob, Redactor(), secret, print)
        tools = await stack.enter_async_context(open_tools(spec, ground))
        assert tools.names == ("notes_add", "notes_all")
        task = make_task(
            spec, session=desk.session, step=STEP, attempt=1, message="Note it.", arguments={}, instructions=""
        )
        result = await run_agent(task, store, make_provider(spec, None), tools)
        assert (result.failure, result.outputs["text"]) == (None, "There is one note.")
        session = await desk.stored()
    results = [
        str(entry.body) for entry in session.entries if entry.body.get("message", {}).get("role") == "toolResult"
    ]
    assert "added" in results[0]
    assert "buy milk" in results[1]
    assert (tmp_path / "notes.txt").read_text() == "buy milk\n"
