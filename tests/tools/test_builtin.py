"""The built-in tools, in a real sandbox process."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pilothouse.tools.builtin import BUILTIN_NAMES, builtin_tools
from pilothouse.tools.registry import ToolRefused, ToolRegistry
from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandbox.local import local_sandbox
from pilothouse.tools.tool import ToolInvocation, ToolResult


async def nobody(partial: ToolResult) -> None:
    """Takes updates for nobody."""


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[Sandbox]:
    async with local_sandbox(tmp_path) as sandbox:
        yield sandbox


async def use(sandbox: Sandbox, name: str, **arguments: Any) -> ToolResult:
    """The result of one call whose arguments satisfy the tool's schema, with 1,000 bytes of output."""
    tools = ToolRegistry(builtin_tools(BUILTIN_NAMES, sandbox, 1_000))
    tool = tools.find(name)
    assert tool is not None
    assert tools.problems(name, arguments) == ""
    return await tool.execute(ToolInvocation("A", arguments, nobody))


def text(result: ToolResult) -> str:
    return "".join(block.text for block in result.content if block.type == "text")


async def test_what_is_written_is_read(sandbox: Sandbox, tmp_path: Path) -> None:
    wrote = await use(sandbox, "file_write", path="out/a.md", text="hé\n")
    assert (wrote.is_error, text(wrote)) == (False, "Wrote 4 bytes to `out/a.md`.")
    assert (tmp_path / "out/a.md").read_text() == "hé\n"
    assert text(await use(sandbox, "file_read", path="out/a.md")) == "hé\n"


async def test_a_long_file_keeps_its_beginning_and_its_end(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "long").write_text("HEAD" + "x" * 5_000 + "TAIL")
    told = text(await use(sandbox, "file_read", path="long"))
    assert told.startswith("HEAD")
    assert told.endswith("TAIL")
    assert "4008 bytes left out" in told
    assert len(told) < 1_100


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "missing", "."])
async def test_a_file_that_is_not_there_or_not_inside_is_an_error_result(sandbox: Sandbox, path: str) -> None:
    result = await use(sandbox, "file_read", path=path)
    assert result.is_error
    assert "root:" not in text(result)


async def test_a_binary_file_is_not_shown(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "bin").write_bytes(b"\x7fELF\0\0")
    result = await use(sandbox, "file_read", path="bin")
    assert (result.is_error, text(result)) == (True, "`bin` is not a text file; it has 6 bytes")


async def test_a_command_shows_its_output_and_its_exit_code(sandbox: Sandbox) -> None:
    result = await use(sandbox, "shell", command="echo out; echo err >&2")
    assert not result.is_error
    assert sorted(text(result).splitlines()) == ["[exit code 0]", "err", "out"]
    assert result.details == {"exitCode": 0, "signal": None, "timedOut": False}


async def test_a_command_that_fails_is_an_error_result_with_its_code(sandbox: Sandbox) -> None:
    result = await use(sandbox, "shell", command="printf no-newline; exit 3")
    assert (result.is_error, text(result)) == (True, "no-newline\n[exit code 3]")


async def test_a_command_over_its_time_is_ended(sandbox: Sandbox) -> None:
    result = await use(sandbox, "shell", command="echo begun; exec tail -f /dev/null", timeout=0.5)
    assert (result.is_error, text(result)) == (True, "begun\n[ended after its timeout of 0.5 seconds]")


async def test_a_long_output_keeps_its_beginning_and_its_end(sandbox: Sandbox) -> None:
    told = text(await use(sandbox, "shell", command="echo HEAD; yes | head -c 9000; echo TAIL"))
    assert told.startswith("HEAD\ny\n")
    assert told.endswith("TAIL\n[exit code 0]")
    assert "8010 bytes left out" in told


async def test_a_sandbox_that_is_gone_is_an_error_result_with_its_code(sandbox: Sandbox) -> None:
    running = asyncio.create_task(use(sandbox, "shell", command="echo > begun; exec tail -f /dev/null"))
    await sandbox.run("until [ -e begun ]; do sleep 0.01; done", timeout=30)
    await sandbox.close()
    result = await running
    assert result.is_error
    assert text(result).startswith("F-RES: the sandbox can no longer be used")
    assert result.details == {"error": "SandboxLost", "code": "F-RES"}
    assert (await use(sandbox, "file_read", path="a")).is_error


def test_only_calls_that_do_no_harm_twice_are_idempotent() -> None:
    tools = builtin_tools(BUILTIN_NAMES, sandbox=None)  # type: ignore[arg-type]
    assert {tool.name: tool.idempotent for tool in tools} == {
        "file_read": True,
        "file_write": True,
        "shell": False,
    }


def test_a_name_that_is_not_built_in_is_refused() -> None:
    with pytest.raises(ToolRefused, match="`browser` is not a built-in tool; they are: file_read, file_write, shell"):
        builtin_tools(["browser"], sandbox=None)  # type: ignore[arg-type]
