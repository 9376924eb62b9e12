"""The built-in tools, in a real sandbox process."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from pilothouse.governance.domains import DomainGate
from pilothouse.records.failures import Failed
from pilothouse.tools import files, shell
from pilothouse.tools.builtin import builtin_tools
from pilothouse.tools.names import BUILTIN_NAMES
from pilothouse.tools.registry import ToolRefused
from pilothouse.tools.sandbox.client import FileContent, Sandbox
from pilothouse.tools.sandbox.errors import SandboxLost
from pilothouse.tools.sandbox.local import local_sandbox
from pilothouse.tools.sandboxed import Sandboxes
from pilothouse.tools.tool import ToolResult
from tests.tools import calls
from tests.tools.calls import text


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[Sandbox]:
    async with local_sandbox(tmp_path) as sandbox:
        yield sandbox


async def use(sandbox: Sandboxes, name: str, **arguments: Any) -> ToolResult:
    """The result of one call whose arguments satisfy the tool's schema."""
    [tool] = builtin_tools([name], sandbox, DomainGate.of(None))
    return await calls.use(tool, **arguments)


async def test_what_is_written_is_read(sandbox: Sandbox, tmp_path: Path) -> None:
    wrote = await use(sandbox, "file_write", path="out/a.md", text="hé\n")
    assert (wrote.is_error, text(wrote)) == (False, "Wrote 4 bytes to `out/a.md`.")
    assert (tmp_path / "out/a.md").read_text() == "hé\n"
    assert text(await use(sandbox, "file_read", path="out/a.md")) == "hé\n"


async def test_a_file_beyond_all_measure_is_not_read(sandbox: Sandbox, tmp_path: Path) -> None:
    with (tmp_path / "long").open("wb") as file:
        file.truncate(20_000_000)
    result = await use(sandbox, "file_read", path="long")
    assert (result.is_error, text(result)) == (True, "`long` has 20,000,000 bytes; at most 16,777,216 are read")


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


async def test_an_output_beyond_all_measure_keeps_its_beginning_and_its_end(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell, "WHOLE_LIMIT", 1_000)
    told = text(await use(sandbox, "shell", command="echo HEAD; yes | head -c 9000; echo TAIL"))
    assert told.startswith("HEAD\ny\n")
    assert told.endswith("TAIL\n[exit code 0]")
    assert "8010 bytes left out" in told


async def test_binary_output_is_shown_with_signs_for_what_is_no_text(sandbox: Sandbox) -> None:
    assert text(await use(sandbox, "shell", command=r"printf 'a\377b\0c\n'")) == "a\ufffdb\0c\n[exit code 0]"


async def test_files_are_listed_by_a_pattern(sandbox: Sandbox, tmp_path: Path) -> None:
    for name in ("src/a.py", "src/deep/b.py", "src/deep/c.md", ".git/d.py", "e.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert text(await use(sandbox, "file_list")) == "e.py\nsrc/"
    assert text(await use(sandbox, "file_list", pattern="**/*.py")) == "e.py\nsrc/a.py\nsrc/deep/b.py"
    assert text(await use(sandbox, "file_list", pattern="*", path="src")) == "src/a.py\nsrc/deep/"
    result = await use(sandbox, "file_list", pattern="*.txt")
    assert (text(result), result.details) == ("Nothing in `.` matches `*.txt`.", {"entries": 0, "more": False})


async def test_a_list_that_is_cut_says_so(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LIST_LIMIT", 2)
    for name in "abc":
        (tmp_path / name).touch()
    assert text(await use(sandbox, "file_list")) == "a\nb\n[there are more; use a narrower pattern]"


@pytest.mark.parametrize(
    "arguments", [{"path": "missing"}, {"path": "../x"}, {"pattern": "../*"}, {"pattern": "/etc/*"}]
)
async def test_what_cannot_be_listed_is_an_error_result(sandbox: Sandbox, arguments: dict[str, str]) -> None:
    assert (await use(sandbox, "file_list", **arguments)).is_error


async def test_a_command_whose_sandbox_goes_away_has_an_unknown_outcome(sandbox: Sandbox) -> None:
    running = asyncio.create_task(use(sandbox, "shell", command="echo > begun; exec tail -f /dev/null"))
    await sandbox.run("until [ -e begun ]; do sleep 0.01; done", timeout=30)
    await sandbox.close()
    with pytest.raises(Failed, match="nobody knows what it did") as failed:
        await running
    assert (failed.value.failure.code, failed.value.failure.reason) == ("F-UNK", "OutcomeUnknown")


@pytest.mark.parametrize("tool", [("shell", {"command": "true"}), ("file_read", {"path": "a"})])
async def test_a_call_that_finds_no_sandbox_says_so_and_may_be_retried(
    sandbox: Sandbox, tool: tuple[str, dict[str, str]]
) -> None:
    await sandbox.close()
    with pytest.raises(Failed, match="the sandbox can no longer be used") as failed:
        await use(sandbox, tool[0], **tool[1])
    assert (failed.value.failure.code, failed.value.failure.reason) == ("F-RES", "")


class Losing:
    """Loses its sandbox in the middle of each call, `times` times."""

    def __init__(self, sandbox: Sandbox, times: int) -> None:
        self.calls = 0
        self._sandbox = sandbox
        self._times = times

    async def current(self) -> Sandbox:
        return cast(Sandbox, self) if self.calls < self._times else self._sandbox

    async def get(self, path: str, *, max_bytes: int) -> FileContent:
        self.calls += 1
        raise SandboxLost("the sandbox has gone away")

    put = run = get


async def test_a_call_that_may_be_repeated_is_made_again_in_the_next_sandbox(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("there")
    losing = Losing(sandbox, 2)
    assert text(await use(losing, "file_read", path="a")) == "there"
    assert losing.calls == 2


async def test_a_call_that_costs_one_sandbox_after_the_other_is_given_up(sandbox: Sandbox) -> None:
    with pytest.raises(Failed, match="each of 3 sandboxes was lost during a call of `file_read`"):
        await use(Losing(sandbox, 9), "file_read", path="a")


def test_only_calls_that_do_no_harm_twice_are_idempotent() -> None:
    tools = builtin_tools(BUILTIN_NAMES, sandboxes=None, gate=DomainGate.of(None))  # type: ignore[arg-type]
    assert {tool.name: tool.idempotent for tool in tools} == {
        "file_read": True,
        "file_write": True,
        "file_list": True,
        "apply_patch": False,
        "shell": False,
        "web_fetch": True,
    }
    assert [tool.name for tool in tools if tool.execution_mode == "sequential"] == ["apply_patch"]


def test_a_name_that_is_not_built_in_is_refused() -> None:
    with pytest.raises(ToolRefused, match="`browser` is not a built-in tool; they are: file_read, file_write, "):
        builtin_tools(["browser"], sandboxes=None, gate=DomainGate.of(None))  # type: ignore[arg-type]
