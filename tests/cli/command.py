"""The `pilothouse` command as its users run it: a process of its own, on a database and a folder of the test's."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PIPE = asyncio.subprocess.PIPE

PROGRAM = (sys.executable, "-c", "from pilothouse.cli.main import main; main()")

WORKFLOW = """\
apiVersion: pilothouse.dev/v1alpha1
kind: Workflow
metadata: {name: %s}
spec:
%s
"""


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


class Process:
    """A command that is under way."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._told = ""

    async def until(self, text: str) -> str:
        """Reads standard error up to a line that holds the text."""
        return await self._until(self._process.stderr, text)

    async def until_out(self, text: str) -> str:
        """Reads standard output up to a line that holds the text."""
        return await self._until(self._process.stdout, text)

    async def _until(self, stream: asyncio.StreamReader | None, text: str) -> str:
        assert stream is not None
        told = ""
        while text not in told:
            line = await stream.readline()
            assert line, f"it ended without saying {text!r}; it said: {told}"
            told += line.decode()
        return told

    async def say(self, line: str) -> None:
        """Types a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        await self._process.stdin.drain()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def end(self) -> Result:
        out, err = await self._process.communicate()
        assert self._process.returncode is not None
        return Result(self._process.returncode, (out or b"").decode(), err.decode())


@dataclass(frozen=True)
class Cli:
    """The command with its options for where runs are kept, and variables of the environment."""

    folder: Path
    where: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)

    async def __call__(self, *arguments: str, stdin: str = "") -> Result:
        """Runs a command to its end."""
        process = await self._spawn(arguments)
        out, err = await process.communicate(stdin.encode())
        assert process.returncode is not None
        result = Result(process.returncode, out.decode(), err.decode())
        assert "Traceback" not in result.err, result.err
        return result

    @asynccontextmanager
    async def begun(self, *arguments: str, unread: bool = False) -> AsyncIterator[Process]:
        """A command under way, which is killed where the test has not ended it. `unread`: its output has no reader."""
        process = await self._spawn(arguments, _closed_pipe() if unread else PIPE)
        try:
            yield Process(process)
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()

    async def _spawn(
        self, arguments: tuple[str, ...], out: int = asyncio.subprocess.PIPE
    ) -> asyncio.subprocess.Process:
        command = arguments[0]
        where = () if command in {"validate", "version"} or command.startswith("-") else self.where
        words = 2 if command == "session" else 1
        return await asyncio.create_subprocess_exec(
            *PROGRAM,
            *arguments[:words],
            *where,
            *arguments[words:],
            stdin=PIPE,
            stdout=out,
            stderr=PIPE,
            cwd=self.folder,
            env={**environment(), **self.variables},
        )

    def text(self, path: str) -> str:
        """What a file holds."""
        return Path(path).read_text()

    def file(self, text: str, name: str = "workflow.yaml") -> str:
        """Writes a file and gives its path."""
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def workflow(self, spec: str, name: str = "w") -> str:
        """Writes a Workflow of that spec, indented by two blanks, and gives its path."""
        return self.file(WORKFLOW % (name, spec), f"{name}.yaml")


def processes_of(folder: Path) -> list[int]:
    """The living processes whose command line names the folder."""
    lines = {int(path.parent.name): _read(path) for path in Path("/proc").glob("[0-9]*/cmdline")}
    return [pid for pid, line in lines.items() if str(folder).encode() in line and pid != os.getpid()]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


def _closed_pipe() -> int:
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def environment() -> dict[str, str]:
    """Nothing of the developer's own may decide what the command does."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return kept | {"LANG": "C.UTF-8", "PYTHONWARNINGS": "error"}
