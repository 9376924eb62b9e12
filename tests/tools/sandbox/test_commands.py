"""What a command gets and what comes back of it."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandbox.errors import CommandRefused, PathNotFound, PathRefused, TooLarge
from tests.tools.sandbox.processes import peak_memory, server_of

pytestmark = pytest.mark.feature("B35")


async def test_output_and_exit_code_come_back(sandbox: Sandbox) -> None:
    result = await sandbox.run("echo out; echo err >&2; exit 3", timeout=10)
    assert (result.exit_code, result.signal, result.timed_out) == (3, None, False)
    assert (result.stdout, result.stderr, result.truncated) == (b"out\n", b"err\n", False)


async def test_an_argument_list_is_not_read_by_a_shell(sandbox: Sandbox) -> None:
    result = await sandbox.run(["printf", "%s|", "$HOME", "a b", "; exit 9", "ü\udcff"], timeout=10)
    assert result.stdout == b"$HOME|a b|; exit 9|\xc3\xbc\xff|"


async def test_an_end_by_a_signal_is_told_from_an_exit_code(sandbox: Sandbox) -> None:
    result = await sandbox.run("kill -USR1 $$", timeout=10)
    assert (result.exit_code, result.signal, result.timed_out) == (None, 10, False)


@pytest.mark.parametrize(
    "argv", [["no-such-program"], ["./plain"], ["/"], ["a\0b"], ["\ud800"], ["echo", "x" * 200_000]]
)
async def test_what_cannot_start_is_refused_and_the_sandbox_goes_on(sandbox: Sandbox, argv: list[str]) -> None:
    await sandbox.put("plain", b"not executable", mode=0o600)
    with pytest.raises((CommandRefused, TooLarge)):
        await sandbox.run(argv, timeout=10)
    assert (await sandbox.run(["true"], timeout=10)).exit_code == 0


async def test_commands_that_fail_to_start_take_nothing_from_others(sandbox: Sandbox) -> None:
    """Their pipes are closed at once, and the numbers of those are used again."""
    good = [sandbox.run("cat; echo end", timeout=30, stdin=b"x" * 100_000) for _ in range(20)]
    bad = [sandbox.run(["no-such-program"], timeout=30, stdin=b"x" * 100_000) for _ in range(20)]
    mixed = [run for pair in zip(good, bad, strict=True) for run in pair]
    results = await asyncio.gather(*mixed, return_exceptions=True)
    assert [getattr(result, "stdout", None) for result in results[::2]] == [b"x" * 100_000 + b"end\n"] * 20
    assert {type(result) for result in results[1::2]} == {CommandRefused}


async def test_a_bad_command_or_timeout_is_the_callers_error(sandbox: Sandbox) -> None:
    for command, timeout in (("", 1.0), ("true", 0.0), ("true", -1.0), ("true", float("nan")), ("true", 1e9)):
        with pytest.raises(ValueError, match="must not be empty"):
            await sandbox.run(command, timeout=timeout)


async def test_input_and_output_flow_both_ways_while_the_command_runs(sandbox: Sandbox) -> None:
    heard: asyncio.Queue[bytes] = asyncio.Queue()

    async def answers() -> AsyncIterator[bytes]:
        for number in range(3):
            assert await heard.get() == b"ask %d\n" % number
            yield b"answer %d\n" % number

    def hear(stream: str, data: bytes) -> None:
        if stream == "stdout":
            heard.put_nowait(data)

    script = "for i in 0 1 2; do echo ask $i; read line; echo got $line >&2; done"
    result = await sandbox.run(script, timeout=30, stdin=answers(), on_output=hear)
    assert result.stderr == b"got answer 0\ngot answer 1\ngot answer 2\n"


async def test_input_of_any_size_arrives_whole(sandbox: Sandbox) -> None:
    data = os.urandom(3_000_001)
    result = await sandbox.run(["cat"], timeout=30, stdin=data, max_output=4_000_000)
    assert result.stdout == data


async def test_a_command_without_input_reads_end_of_file(sandbox: Sandbox) -> None:
    assert (await sandbox.run(["cat"], timeout=10)).stdout == b""
    assert (await sandbox.run(["cat"], timeout=10, stdin=b"")).stdout == b""


async def test_a_command_may_stop_reading_its_input(sandbox: Sandbox) -> None:
    result = await sandbox.run(["head", "-c", "1"], timeout=30, stdin=b"x" * 5_000_000)
    assert (result.exit_code, result.stdout) == (0, b"x")


async def test_an_error_of_the_callers_stream_ends_the_command(sandbox: Sandbox) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"x"
        raise LookupError("the caller's")

    with pytest.raises(LookupError, match="the caller's"):
        await sandbox.run(["cat"], timeout=1000, stdin=broken())


async def test_an_error_of_the_callers_callback_ends_the_command(sandbox: Sandbox) -> None:
    def broken(stream: str, data: bytes) -> None:
        raise LookupError("the caller's")

    with pytest.raises(LookupError, match="the caller's"):
        await sandbox.run("echo x; sleep 1000", timeout=1000, on_output=broken)
    assert (await sandbox.run(["true"], timeout=10)).exit_code == 0


async def test_huge_output_is_cut_in_the_middle_and_fills_no_memory(sandbox: Sandbox) -> None:
    server = await server_of(sandbox)
    before = peak_memory(os.getpid())
    result = await sandbox.run("echo first; head -c 400000000 /dev/zero; echo last", timeout=50, max_output=1000)
    assert result.stdout.startswith(b"first\n\0")
    assert result.stdout.endswith(b"\0last\n")
    assert result.stdout_omitted == 400_000_011 - 1000
    assert b"bytes left out" in result.stdout
    assert peak_memory(server) < 100_000_000
    assert peak_memory(os.getpid()) - before < 50_000_000


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 250])
async def test_output_is_whole_up_to_its_cap(sandbox: Sandbox, size: int) -> None:
    result = await sandbox.run(f"head -c {size} /dev/zero", timeout=10, max_output=100)
    assert result.stdout_omitted == max(0, size - 100)
    assert result.truncated == (size > 100)
    assert result.stdout.count(b"\0") == min(size, 100)


async def test_fifty_commands_run_side_by_side(sandbox: Sandbox, workspace: Path) -> None:
    """Each waits until all have started, so they end only if none waits for another's end."""
    script = "touch started-$N; while [ $(ls started-* | wc -l) -lt 50 ]; do sleep 0.05; done; echo $N"
    runs = [sandbox.run(script, timeout=50, env={"N": str(number)}) for number in range(50)]
    results = await asyncio.gather(*runs)
    assert [int(result.stdout) for result in results] == list(range(50))


async def test_the_environment_holds_nothing_of_the_agents(
    sandbox: Sandbox, workspace: Path, python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "import json, os; print(json.dumps(dict(os.environ)))"
    result = await sandbox.run([python, "-I", "-c", script], timeout=20, env={"MINE": "1", "TERM": "vt100"})
    variables = json.loads(result.stdout)
    variables.pop("LC_CTYPE", None)  # Python's own, not ours.
    assert set(variables) == {"PATH", "HOME", "LANG", "TERM", "MINE"}
    assert (variables["HOME"], variables["TERM"], variables["MINE"]) == (str(workspace), "vt100", "1")


async def test_no_open_file_leaks_into_a_command(sandbox: Sandbox, python: str) -> None:
    script = "import os\nfor n in range(3, 4096):\n try: os.fstat(n)\n except OSError: continue\n print(n)"
    busy = asyncio.create_task(sandbox.run(["cat"], timeout=30, stdin=_never()))
    assert (await sandbox.run([python, "-I", "-c", script], timeout=20)).stdout == b""
    busy.cancel()
    await asyncio.gather(busy, return_exceptions=True)


async def _never() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b""


async def test_a_command_starts_in_the_workspace_or_below(sandbox: Sandbox, workspace: Path) -> None:
    await sandbox.put("deep/er/file", b"")
    assert (await sandbox.run(["pwd"], timeout=10)).stdout.decode().strip() == str(workspace)
    assert (await sandbox.run(["pwd"], timeout=10, cwd="deep/er")).stdout.decode().strip() == f"{workspace}/deep/er"


async def test_a_command_cannot_start_elsewhere(sandbox: Sandbox, workspace: Path) -> None:
    (workspace / "out").symlink_to("/etc")
    for directory in ("..", "/etc", "out"):
        with pytest.raises(PathRefused):
            await sandbox.run(["pwd"], timeout=10, cwd=directory)
    with pytest.raises(PathNotFound):
        await sandbox.run(["pwd"], timeout=10, cwd="missing")
