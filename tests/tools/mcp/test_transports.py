"""How an MCP server is reached: behind a URL the gate and the headers, in the sandbox a program; and what is none."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest

from pilothouse.api.governance import AllowDeny
from pilothouse.governance.domains import DomainGate
from pilothouse.records.failures import Failed
from pilothouse.tools.mcp import connection
from pilothouse.tools.mcp.connection import Transport
from pilothouse.tools.mcp.http import HttpTransport
from pilothouse.tools.mcp.server import McpServer
from pilothouse.tools.mcp.stdio import StdioTransport
from pilothouse.tools.registry import ToolRegistry
from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandbox.local import local_sandbox
from tests.tools.calls import text, use
from tests.tools.mcp.conftest import HERE, HttpServer
from tests.tools.web.site import Site, running


def server(
    url: str, registry: ToolRegistry, headers: Mapping[str, str], gate: DomainGate = HERE, *addresses: str
) -> McpServer:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return addresses

    async def connect() -> Transport:
        return HttpTransport(url, lambda: headers, gate, resolve)

    return McpServer("web", connect, lambda tools: registry.replace("web", tools), print)


async def refusal(one: McpServer) -> str:
    try:
        with pytest.raises(Failed) as failed:
            await one.open()
    finally:
        await one.close()
    assert failed.value.failure.code == "F-DEP"
    return failed.value.failure.message


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with running() as site:
        yield site


@pytest.mark.feature("W11")
@pytest.mark.parametrize(
    ("url", "allow", "addresses", "why"),
    [
        ("http://127.0.0.1:1/mcp", None, (), "127.0.0.1, which is not public"),
        ("http://tools.example/mcp", None, ("10.0.0.7",), "10.0.0.7, which is not public"),
        ("http://tools.example/mcp", ("other.example",), (), "`tools.example` is not among the allowed domains"),
        ("http://tools.example/mcp", None, ("1.1.1.1", "169.254.169.254"), "169.254.169.254, which is not public"),
    ],
)
async def test_a_server_that_the_gate_refuses_is_not_spoken_to(
    url: str, allow: tuple[str, ...] | None, addresses: tuple[str, ...], why: str
) -> None:
    gate = DomainGate.of(None if allow is None else AllowDeny(allow=allow))
    assert why in await refusal(server(url, ToolRegistry(), {}, gate, *addresses))


async def test_a_redirect_to_another_host_is_not_followed(site: Site) -> None:
    """The headers were meant for the one host."""
    async with running() as other:
        site.redirect("/mcp", f"http://127.0.0.1:{other.port}/mcp")
        await refusal(server(f"http://127.0.0.1:{site.port}/mcp", ToolRegistry(), {"Authorization": "Bearer t"}))
        assert "Authorization: Bearer t" in site.requests[0]
        assert other.requests == []


@pytest.mark.parametrize(
    "answer", ["not json", '{"jsonrpc": "2.0"}', "[]", '{"jsonrpc":"2.0","id":1,"result":{"tools":7}}']
)
async def test_a_server_that_is_none_is_named(site: Site, answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_LIMIT", 5.0)  # The last one answers another question.
    site.page("/mcp", answer, "application/json")
    told = await refusal(server(f"http://127.0.0.1:{site.port}/mcp", ToolRegistry(), {}))
    assert told.startswith("the MCP server `web` cannot be used: ")


async def test_a_silent_server_is_not_waited_for(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_LIMIT", 0.3)
    over = asyncio.Event()

    async def silent(writer: asyncio.StreamWriter) -> None:
        await over.wait()

    site.pages["/mcp"] = silent
    assert "did not answer within 0.3 s" in await refusal(
        server(f"http://127.0.0.1:{site.port}/mcp", ToolRegistry(), {})
    )
    over.set()


async def test_a_rotated_token_is_used_from_the_next_request_on(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    headers = {"Authorization": "Bearer first"}
    http, registry = HttpServer("modern", tmp_path), ToolRegistry()
    await http.start()
    one = server(http.url, registry, headers)
    try:
        await one.open()
        tool = registry.find("web_echo")
        assert tool is not None
        token.write_text("second")
        assert (await use(tool)).is_error
        headers["Authorization"] = "Bearer second"
        assert text(await use(tool)) == "echo: "
    finally:
        await one.close()
        await http.kill()


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[Sandbox]:
    async with local_sandbox(tmp_path) as sandbox:
        yield sandbox


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("no-such-program", "cannot start 'no-such-program'"),
        ("echo oops >&2; exit 3", "the program ended with exit code 3; it said: oops"),
        ("kill -9 $$", "the program ended with signal 9"),
        ("while :; do echo '{}'; done", "faster than they could be read|did not answer within"),
        ("head -c 40000000 /dev/zero; sleep 60", "a message of more than 33,554,432 bytes"),
    ],
)
async def test_a_program_that_is_no_server_is_named(
    sandbox: Sandbox, command: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CONNECT_LIMIT", 10.0)

    async def connect() -> Transport:
        argv = [command] if command.startswith("no-") else ["/bin/sh", "-c", command]
        return StdioTransport(sandbox, argv, {})

    assert re.search(why, await refusal(McpServer("web", connect, print, print)))
    assert (await sandbox.run(["true"], timeout=10)).exit_code == 0
