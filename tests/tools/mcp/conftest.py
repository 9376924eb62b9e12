"""The reference library's own server, as a program in a sandbox and behind a URL, in both eras of the protocol."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pilothouse.api.governance import AllowDeny
from pilothouse.governance.domains import DomainGate
from pilothouse.tools.mcp.connection import Transport
from pilothouse.tools.mcp.http import HttpTransport
from pilothouse.tools.mcp.server import McpServer
from pilothouse.tools.mcp.stdio import StdioTransport
from pilothouse.tools.registry import ToolRegistry
from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandbox.local import local_sandbox
from pilothouse.tools.tool import ToolInvocation, ToolResult
from tests.tools.calls import nobody


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.01)


PROGRAM = Path(__file__).parent / "server.py"
HERE = DomainGate.of(AllowDeny(allow=("127.0.0.1",)))


def program(transport: str, era: str, folder: Path) -> list[str]:
    return [sys.executable, "-I", str(PROGRAM), transport, era, str(folder)]


class HttpServer:
    """The program behind a URL, which can be killed and started again on its port."""

    def __init__(self, era: str, folder: Path) -> None:
        self.url = ""
        self._era = era
        self._folder = folder
        self._port = 0
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        command = [*program("http", self._era, self._folder), str(self._port)]
        self._process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        assert self._process.stdout is not None
        self._port = int(await self._process.stdout.readline())
        self.url = f"http://127.0.0.1:{self._port}/mcp"

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
        if self._process is not None:
            await self._process.wait()


@dataclass
class Reference:
    """The server in one transport and era; `told` is what its client told."""

    folder: Path
    connect: Callable[[], Any]
    http: HttpServer | None = None
    sandbox: Sandbox | None = None
    told: list[str] = field(default_factory=list)
    registry: ToolRegistry = field(default_factory=ToolRegistry)

    @asynccontextmanager
    async def opened(self, **options: Any) -> AsyncIterator[McpServer]:
        server = McpServer(
            "ref", self.connect, lambda tools: self.registry.replace("ref", tools), self.told.append, **options
        )
        try:
            await server.open()
            yield server
        finally:
            await server.close()

    async def use(self, name: str, on_update: Any = nobody, **arguments: Any) -> ToolResult:
        tool = self.registry.find(name)
        assert tool is not None, self.registry.names
        return await tool.execute(ToolInvocation("A", arguments, on_update))

    def calls(self) -> Sequence[str]:
        return (self.folder / "calls").read_text().split()

    async def came(self, name: str) -> None:
        """Waits until the server has made the file."""
        await until((self.folder / name).exists)


ALL = ["stdio-modern", "stdio-early", "http-modern", "http-early"]
"""The four ways to reach it; a test that says nothing is run over two of them, which differ in both."""
all_ways = pytest.mark.parametrize("reference", ALL, indirect=True)


@pytest.fixture(params=["stdio-modern", "http-early"])
async def reference(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Reference]:
    transport, _, era = request.param.partition("-")
    if transport == "stdio":
        async with local_sandbox(tmp_path) as sandbox:

            async def start() -> Transport:
                return StdioTransport(await sandbox.current(), program("stdio", era, tmp_path), {})

            yield Reference(tmp_path, start, sandbox=sandbox)
        return
    http = HttpServer(era, tmp_path)
    await http.start()

    async def reach() -> Transport:
        return HttpTransport(http.url, dict, HERE)

    try:
        yield Reference(tmp_path, reach, http)
    finally:
        await http.kill()
