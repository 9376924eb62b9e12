"""An MCP server as a source of tools: connects, lists, calls, and connects anew after the server has died."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from pilothouse.records.failures import OUTCOME_UNKNOWN, Failed, FailureCode
from pilothouse.tools.mcp.connection import (
    Connection,
    Forgotten,
    Lost,
    OnProgress,
    ServerError,
    TimedOut,
    Transport,
    Unreachable,
)
from pilothouse.tools.mcp.content import Offer, offer_of, result_of
from pilothouse.tools.mcp.names import tool_name
from pilothouse.tools.sandbox.errors import SandboxError
from pilothouse.tools.sandboxed import TRIES
from pilothouse.tools.tool import ExecutionMode, Tool, ToolInvocation, ToolResult

if TYPE_CHECKING:
    import mcp_types as types

CALL_LIMIT = 600.0
"""Seconds that a call may take."""


class McpServer:
    """`connect` makes a transport for each connection; `listed` is given all tools whenever the list is known anew.
    Tools are filtered by the server's own names; whatever cannot be offered is told to `tell`."""

    def __init__(
        self,
        name: str,
        connect: Callable[[], Awaitable[Transport]],
        listed: Callable[[Sequence[Tool]], None],
        tell: Callable[[str], None],
        *,
        include: Sequence[str] | None = None,
        exclude: Sequence[str] = (),
        call_limit: float = CALL_LIMIT,
    ) -> None:
        self.name = name
        self._connect = connect
        self._listed = listed
        self._tell = tell
        self._include = include
        self._exclude = exclude
        self._call_limit = call_limit
        self._connection: Connection | None = None
        self._connecting = asyncio.Lock()
        self._stale = False
        self._refreshing: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connects and lists. Raises Failed, for a run without its tools is none."""
        try:
            await self._connected()
        except Unreachable as error:
            raise Failed(FailureCode.DEP, f"the MCP server `{self.name}` cannot be used: {error}") from None

    async def close(self) -> None:
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.gather(self._refreshing, return_exceptions=True)
        if self._connection is not None:
            await self._connection.close()

    async def call(self, offer: Offer, arguments: Mapping[str, JsonValue], on_progress: OnProgress) -> ToolResult:
        """The result, once a change of the list that came before it is known, too.

        A call that was under way when the server died is made again if the tool is idempotent; otherwise its outcome is
        unknown, and Failed ends the task.
        """
        lost: Exception | None = None
        for _ in range(TRIES):
            try:
                connection = await self._connected()
                result = await connection.call(offer.name, dict(arguments), self._call_limit, on_progress)
                await self._refresh()
                return result_of(result)
            except Unreachable as error:
                return _error(
                    "Unreachable", f"The MCP server `{self.name}` cannot be reached: {error}. Nothing was done."
                )
            except TimedOut:
                return _error("TimedOut", self._too_late())
            except ServerError as error:
                return _error("ServerError", f"The MCP server `{self.name}` answered with an error: {error}")
            except Forgotten as error:
                lost = error
            except Lost as error:
                if not offer.idempotent:
                    raise self._outcome_unknown(offer, error) from None
                lost = error
        raise Failed(FailureCode.DEP, f"the MCP server `{self.name}` was lost {TRIES} times during a call: {lost}")

    async def _connected(self) -> Connection:
        """The connection; a new one, with the list known anew, where there is none. Raises Unreachable."""
        async with self._connecting:
            if self._connection is not None and self._connection.usable:
                return self._connection
            if self._connection is not None:
                self._tell(f"connecting anew to the MCP server {self.name}")
                await self._connection.close()
            connection = Connection(await self._transport(), self._changed)
            await connection.open()
            self._connection = connection
            try:
                await self._list(connection)
            except (Forgotten, Lost, ServerError) as error:
                raise Unreachable(str(error)) from None
            return connection

    async def _transport(self) -> Transport:
        try:
            return await self._connect()
        except SandboxError as error:
            raise Unreachable(f"the sandbox can no longer be used: {error}") from None

    def _changed(self) -> None:
        self._stale = True
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._refresh())

    async def _refresh(self) -> None:
        """Lists again, until the list is known that the last change made. A server that cannot list keeps its tools."""
        async with self._connecting:
            while self._stale and self._connection is not None and self._connection.usable:
                try:
                    await self._list(self._connection)
                except (Forgotten, Lost, ServerError) as error:
                    self._tell(f"the MCP server {self.name} did not list its tools again: {error}")

    async def _list(self, connection: Connection) -> None:
        self._stale = False
        listed = await connection.tools()
        for name in set(self._include or ()) - {tool.name for tool in listed}:
            self._tell(f"the MCP server {self.name} has no tool {name}, which is to be included")
        tools: dict[str, Tool] = {}
        for tool in listed:
            if self._wanted(tool.name):
                self._add(tools, tool)
        self._listed(list(tools.values()))

    def _wanted(self, name: str) -> bool:
        return (self._include is None or name in self._include) and name not in self._exclude

    def _add(self, tools: dict[str, Tool], tool: "types.Tool") -> None:
        name = tool_name(self.name, tool.name)
        try:
            if name in tools:
                raise ValueError("it is listed twice")
            tools[name] = McpTool(self, name, offer_of(tool))
        except ValueError as error:
            self._tell(f"the tool {tool.name!r:.100} of the MCP server {self.name} is left out: {error}")

    def _too_late(self) -> str:
        return (
            f"The MCP server `{self.name}` did not answer within {self._call_limit:g} seconds and was told to stop. "
            "Whether the call had an effect is not known."
        )

    def _outcome_unknown(self, offer: Offer, error: Lost) -> Failed:
        text = (
            f"a call of the tool `{offer.name}` was under way when its MCP server `{self.name}` was lost ({error}), so "
            "nobody knows what it did; the tool is not declared idempotent, so it is not run again"
        )
        return Failed(FailureCode.UNK, text, OUTCOME_UNKNOWN)


class McpTool:
    """A tool of a server. `offer` has what the server says of it, for gates and approvals."""

    execution_mode: ExecutionMode = "parallel"

    def __init__(self, server: McpServer, name: str, offer: Offer) -> None:
        self.name = name
        self.offer = offer
        self._server = server

    @property
    def description(self) -> str:
        return self.offer.description

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self.offer.parameters

    @property
    def idempotent(self) -> bool:
        return self.offer.idempotent

    async def execute(self, call: ToolInvocation) -> ToolResult:
        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            of = f" of {total:g}" if total else ""
            await call.on_update(ToolResult.of(f"{progress:g}{of}{f': {message}' if message else ''}"))

        return await self._server.call(self.offer, call.arguments, on_progress)


def _error(reason: str, text: str) -> ToolResult:
    return ToolResult.of(text, {"error": reason}, is_error=True)
