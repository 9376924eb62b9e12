"""An MCP server of the reference library, as a program: `python server.py stdio ERA FOLDER`, or `http ERA FOLDER PORT`,
which prints its port. What its tools do to the world goes into the folder, where the tests can see it."""

import asyncio
import os
import socket
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.message import SessionMessage

PAGE = 3


def object_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


class World:
    """The tools, and what they do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "pid").write_text(str(os.getpid()))
        self.bus = InMemorySubscriptionBus()
        names = ["echo", "content", "fail", "slow", "die", "die_once", "grow", "big", "odd.name/x", "echo", "progress"]
        self.tools = [self.tool(name) for name in names]

    def tool(self, name: str) -> types.Tool:
        hints = {
            "echo": types.ToolAnnotations(read_only_hint=True),
            "die_once": types.ToolAnnotations(idempotent_hint=True, destructive_hint=False),
        }
        text = {"type": "string"}
        return types.Tool(
            name=name,
            description=f"Does {name}.\u202e" + ("x" * 10_000 if name == "big" else ""),
            input_schema=object_of(text=text, filler={"enum": ["y" * 70_000]})
            if name == "huge"
            else object_of(text=text),
            output_schema=object_of(n={"type": "integer"}) if name == "content" else None,
            annotations=hints.get(name),
        )

    def note(self, what: str) -> None:
        with (self.folder / "calls").open("a") as file:
            file.write(what + "\n")

    async def list(self, context: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        start = int((params and params.cursor) or 0)
        following = str(start + PAGE) if start + PAGE < len(self.tools) else None
        return types.ListToolsResult(tools=self.tools[start : start + PAGE], next_cursor=following)

    async def call(
        self, context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        self.note(params.name)
        name, arguments = params.name, params.arguments or {}
        if name == "content":
            return self.contents()
        if name == "fail":
            return types.CallToolResult(content=[types.TextContent(type="text", text="it failed")], is_error=True)
        if name == "progress":
            for number in (1, 2):
                await context.session.report_progress(number, 2, f"step {number}")
        if name == "slow":
            await self.wait()
        if name == "die" or (name == "die_once" and (self.folder / "calls").read_text().count("die_once") == 1):
            os._exit(7)
        if name == "grow":
            self.tools.append(self.tool("grown"))
            self.tools.append(self.tool("huge"))
            await self.tell_of_change(context)
        text = "z" * 10_000_000 if name == "big" else f"{name}: {arguments.get('text', '')}"
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    async def wait(self) -> None:
        (self.folder / "waiting").touch()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            self.note("cancelled")
            raise

    async def tell_of_change(self, context: ServerRequestContext[Any, Any]) -> None:
        """To those who listen, or on the session's own stream."""
        await self.bus.publish(ToolsListChanged())
        if not (context.session.protocol_version or "").startswith("2026"):
            await context.session.send_tool_list_changed()

    def contents(self) -> types.CallToolResult:
        return types.CallToolResult(
            content=[
                types.TextContent(type="text", text="text"),
                types.ImageContent(type="image", data="AAAA", mime_type="image/png"),
                types.ImageContent(type="image", data="AAAA", mime_type="image/x-odd"),
                types.AudioContent(type="audio", data="AAAA", mime_type="audio/wav"),
                types.EmbeddedResource(
                    type="resource",
                    resource=types.TextResourceContents(uri="file:///a.txt", mime_type="text/plain", text="in it"),
                ),
                types.EmbeddedResource(
                    type="resource", resource=types.BlobResourceContents(uri="file:///b", blob="AAAA")
                ),
                types.ResourceLink(type="resource_link", name="link", uri="file:///c"),
            ],
            structured_content={"n": "not an integer"},
        )


def make(folder: Path) -> "Server[Any]":
    world = World(folder)
    listen = ListenHandler(world.bus)
    return Server("reference", on_list_tools=world.list, on_call_tool=world.call, on_subscriptions_listen=listen)


async def serve_stdio(server: "Server[Any]") -> None:
    from mcp.server.stdio import stdio_server

    sys.stderr.write("ready\n")
    print("this line is no message", flush=True)  # noqa: T201
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))
    async with stdio_server() as (read, write), anyio.create_task_group() as group:
        original = read
        if ERA == "early":
            forward, read = anyio.create_memory_object_stream[Any](0)
            group.start_soon(refuse_discovery, original, forward, write)
        await server.run(read, write, options)


async def refuse_discovery(read: Any, forward: Any, write: Any) -> None:
    """As a server from before there was discovery does: its client then begins with `initialize`."""
    async with forward:
        async for message in read:
            if getattr(message.message, "method", "") == "server/discover":
                error = types.ErrorData(code=types.METHOD_NOT_FOUND, message="Method not found")
                await write.send(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=message.message.id, error=error)))
            else:
                await forward.send(message)


def serve_http(server: "Server[Any]", port: int) -> None:
    """Asks for the header `Authorization: Bearer <the text of FOLDER/token>`, if there is that file."""
    import uvicorn

    app = server.streamable_http_app()
    listener = socket.create_server(("127.0.0.1", port))
    print(listener.getsockname()[1], flush=True)  # noqa: T201
    uvicorn.Server(uvicorn.Config(guarded(app), log_level="error")).run(sockets=[listener])


def guarded(app: Any) -> Any:
    token = FOLDER / "token"

    async def guard(scope: Any, receive: Any, send: Any) -> None:
        http = scope["type"] == "http"
        given = dict(scope["headers"]).get(b"authorization", b"").decode() if http else ""
        body = await whole(receive) if http and scope["method"] == "POST" else None
        if http and token.exists() and given != f"Bearer {token.read_text()}":
            await answer(send, 401)
        elif ERA == "early" and body and b'"server/discover"' in body:
            await answer(send, 400)
        else:
            await app(scope, receive if body is None else replay(body, receive), send)

    return guard


async def answer(send: Any, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def whole(receive: Any) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body


def replay(body: bytes, receive: Any) -> Any:
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Any:
        return messages.pop() if messages else await receive()

    return again


if __name__ == "__main__":
    TRANSPORT, ERA, FOLDER = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    if TRANSPORT == "stdio":
        asyncio.run(serve_stdio(make(FOLDER)))
    else:
        serve_http(make(FOLDER), int(sys.argv[4]))
