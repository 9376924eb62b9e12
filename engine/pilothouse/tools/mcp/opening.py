"""The MCP servers that an Agent lists, opened for as long as it runs."""

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pilothouse.api.agent import McpServer as Spec
from pilothouse.api.meta import KeyRef
from pilothouse.governance.domains import DomainGate
from pilothouse.records.failures import Failed, FailureCode
from pilothouse.tools.mcp.connection import Transport
from pilothouse.tools.mcp.server import McpServer
from pilothouse.tools.mcp.stdio import StdioTransport
from pilothouse.tools.output import BoundedTool, Outputs
from pilothouse.tools.registry import ToolRefused, ToolRegistry
from pilothouse.tools.sandboxed import Sandboxes
from pilothouse.tools.tool import Tool


@dataclass(frozen=True, slots=True)
class McpGround:
    """What servers need of where the agent runs. `secret` is asked for the value of a header before each request."""

    registry: ToolRegistry
    sandboxes: Sandboxes
    gate: DomainGate
    outputs: Outputs
    secret: Callable[[KeyRef], str]
    tell: Callable[[str], None]


@asynccontextmanager
async def mcp_tools(specs: Sequence[Spec], ground: McpGround) -> AsyncIterator[None]:
    """Opens the servers side by side; within the block their tools are in the registry. Raises Failed."""
    if specs and importlib.util.find_spec("mcp") is None:
        raise Failed(FailureCode.ENV, "MCP servers need a library that is not installed: pip install 'pilothouse[mcp]'")
    servers = [_server(spec, ground) for spec in specs]
    try:
        await _open(servers)
        yield
    finally:
        await asyncio.gather(*(server.close() for server in servers))


async def _open(servers: Sequence[McpServer]) -> None:
    """The first that fails is raised once all others have come to their end, so that none is opened after it."""
    for outcome in await asyncio.gather(*(server.open() for server in servers), return_exceptions=True):
        if isinstance(outcome, Failed):
            text = outcome.failure.message
            raise Failed(outcome.failure.code, text)
        if outcome is not None:
            raise outcome


def _server(spec: Spec, ground: McpGround) -> McpServer:
    async def connect() -> Transport:
        if spec.command is not None:
            env = {variable.name: variable.value or "" for variable in spec.env}
            return StdioTransport(await ground.sandboxes.current(), spec.command, env)
        from pilothouse.tools.mcp.http import HttpTransport  # Here, so that a program needs no HTTP client.

        return HttpTransport(spec.url or "", lambda: _headers(spec, ground.secret), ground.gate)

    def tell(text: str) -> None:
        ground.tell(ground.outputs.redactor.text(text))

    def listed(tools: Sequence[Tool]) -> None:
        ground.registry.replace(spec.name, _fitting(tools, ground, tell))

    return McpServer(spec.name, connect, listed, tell, include=spec.include, exclude=spec.exclude)


def _fitting(tools: Sequence[Tool], ground: McpGround, tell: Callable[[str], None]) -> list[Tool]:
    """The tools whose schemas can be checked, bounded; one bad tool takes nothing from the others."""
    kept: list[Tool] = []
    for tool in tools:
        try:
            ToolRegistry([tool])
            kept.append(BoundedTool(tool, ground.outputs))
        except ToolRefused as error:
            tell(f"a tool is left out: {error}")
    return kept


def _headers(spec: Spec, secret: Callable[[KeyRef], str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for header in spec.headers:
        source = header.value_from and header.value_from.secret_key_ref
        found[header.name] = secret(source).strip() if source else header.value or ""
    return found
