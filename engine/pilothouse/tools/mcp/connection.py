"""One connection to an MCP server, from its handshake to its end."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, Any, Protocol

from pilothouse import __version__

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams
    from mcp.client.client import Client
    from mcp_types import CallToolResult, Tool

for name in ("mcp", "client"):  # What the library logs would end up on the terminal: here it is raised and told.
    logging.getLogger(name).addHandler(logging.NullHandler())

CONNECT_LIMIT = 60.0
"""Seconds for the start of the server and the handshake; programs are fetched by some launchers first."""
CLOSE_LIMIT = 5.0
"""Seconds that a connection may take to close."""
LIST_LIMIT = 60.0
"""Seconds for one page of tools."""
MAX_PAGES = 100
MAX_TOOLS = 1_000


class OnProgress(Protocol):
    """Is told how far a call is."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


class Unreachable(Exception):  # noqa: N818 - it says what happened
    """There is no connection, and what was asked for was not sent."""


class Lost(Exception):  # noqa: N818 - it says what happened
    """The connection ended while an answer was waited for."""


class Forgotten(Exception):  # noqa: N818 - it says what happened
    """The server was started anew and refused what it was asked, as it does not know the connection."""


class ServerError(Exception):
    """The server answered a request with an error, or with what is no answer."""


class TimedOut(ServerError):  # noqa: N818 - it says what happened
    """The server did not answer in time, and was told to stop."""


class Transport(Protocol):
    """How a server is reached, for one connection. `ended` says why it cannot be reached any more, `unsent` that the
    request which met that has not been carried out, `forgotten` that the server lives but for this connection."""

    ended: str
    unsent: bool
    forgotten: bool

    def open(self) -> "AbstractAsyncContextManager[TransportStreams]": ...


class Connection:
    """Held open by a task of its own, as the library wants to be entered and left in one task. `changed` is called when
    the server says that its tools have changed."""

    def __init__(self, transport: Transport, changed: Callable[[], None]) -> None:
        self._transport = transport
        self._changed = changed
        self._client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._holding: asyncio.Task[None] | None = None
        self._waiting = 0
        self._over = False

    @property
    def usable(self) -> bool:
        held = self._holding is not None and not self._holding.done()
        return held and not self._over and not self._transport.ended

    async def open(self) -> None:
        """Raises Unreachable."""
        self._holding = asyncio.create_task(self._hold())
        try:
            async with asyncio.timeout(CONNECT_LIMIT):
                await asyncio.shield(self._client)
        except TimeoutError:
            await self.close()
            raise Unreachable(f"it did not answer within {CONNECT_LIMIT:g} s") from None
        except Exception as error:
            reason = self._transport.ended or _reason(error)
            await self.close()
            raise Unreachable(reason) from None
        except asyncio.CancelledError:
            await self.close()
            raise

    async def tools(self) -> "list[Tool]":
        """All pages of the server's list. Raises Lost and ServerError."""
        from mcp_types import PaginatedRequestParams

        client = self._client.result()
        found: list[Tool] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            params = PaginatedRequestParams(cursor=cursor) if cursor else None
            page = await self._ask(client.session.list_tools(params=params))
            found += page.tools
            cursor = page.next_cursor
            if not cursor:
                return found
            if len(found) > MAX_TOOLS:
                break
        raise ServerError(f"its list of tools has more than {MAX_TOOLS} tools or {MAX_PAGES} pages")

    async def call(
        self, tool: str, arguments: dict[str, Any], limit: float, on_progress: OnProgress
    ) -> "CallToolResult":
        """Raises Unreachable and Forgotten where the server has not carried it out, Lost, ServerError and TimedOut.
        Cancelling tells the server."""
        import mcp_types as types
        from pydantic import TypeAdapter

        # Not `call_tool`: it compiles the server's output schema, patterns included, and drops what does not fit.
        request = types.CallToolRequest(params=types.CallToolRequestParams(name=tool, arguments=arguments))
        answers: TypeAdapter[Any] = TypeAdapter(types.CallToolResult | types.InputRequiredResult)
        session = self._client.result().session
        result = await self._ask(session.send_request(request, answers, limit, progress_callback=on_progress))
        if not isinstance(result, types.CallToolResult):
            raise ServerError("it asks for input, which this agent cannot give")
        return result

    async def close(self) -> None:
        self._closing.set()
        if self._holding is not None:
            try:
                await asyncio.wait({self._holding}, timeout=CLOSE_LIMIT)
            finally:
                self._holding.cancel()
                await asyncio.gather(self._holding, return_exceptions=True)

    async def _ask(self, request: Awaitable[Any]) -> Any:
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
        from pydantic import ValidationError

        alone = self._waiting == 0
        self._waiting += 1
        try:
            return await request
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                raise await self._end(alone) from None
            if self._transport.forgotten:
                raise Forgotten(self._transport.ended) from None
            raise (TimedOut if error.code == REQUEST_TIMEOUT else ServerError)(error.message) from None
        except ValidationError as error:
            raise ServerError(f"its answer is not one of the protocol ({error.error_count()} faults)") from None
        finally:
            self._waiting -= 1

    async def _end(self, alone: bool) -> Exception:
        """Why the connection has ended; what ended it may be about to say so."""
        self._over = True
        assert self._holding is not None  # noqa: S101 - for the type checker
        if not self._transport.ended:
            await asyncio.wait({self._holding}, timeout=1)
        unsent = alone and self._waiting == 1 and self._transport.unsent
        return (Unreachable if unsent else Lost)(self._transport.ended or "the connection was closed")

    async def _hold(self) -> None:
        from mcp import Client
        from mcp_types import Implementation

        info = Implementation(name="pilothouse", version=__version__)
        try:
            client = Client(
                self._transport.open(),
                cache=None,
                client_info=info,
                message_handler=self._hear,
                read_timeout_seconds=LIST_LIMIT,
            )
            async with client:
                self._client.set_result(client)
                watching = asyncio.create_task(self._watch(client))
                try:
                    await self._closing.wait()
                finally:
                    watching.cancel()
                    await asyncio.gather(watching, return_exceptions=True)
        except BaseException as error:
            if not self._client.done():
                self._client.set_exception(error if isinstance(error, Exception) else Lost("it was closed"))
                self._client.exception()
            if isinstance(error, asyncio.CancelledError):
                raise

    async def _hear(self, message: object) -> None:
        """Servers up to the protocol of 2025 tell of changes by themselves."""
        from mcp_types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self._changed()

    async def _watch(self, client: "Client") -> None:
        """Later ones are asked to tell."""
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        tools = client.server_capabilities.tools
        if not (tools and tools.list_changed):
            return
        with suppress(ListenNotSupportedError, SubscriptionLost, MCPError):
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    self._changed()


def _reason(error: BaseException) -> str:
    """The first cause in what the library's task groups raise."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
