"""A conversation with one of everything, and the parts that tests of the formats build others from."""

from collections.abc import Sequence
from typing import Any

from pilothouse.agents.messages import (
    AssistantMessage,
    CustomMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from pilothouse.models.provider import ModelRequest, ToolSpec
from tests.models.dialects import PROVIDERS, Dialect
from tests.models.wire import Reply, collect, done, raw_server

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
TOOLS = (ToolSpec("s", "First.", SCHEMA), ToolSpec("t", "Second.", SCHEMA))
IMAGE = ImageContent(media_type="image/png", data="AAAA")


async def sent(dialect: Dialect, asked: ModelRequest, model: str = "m") -> dict[str, Any]:
    """The body of the request."""
    async with raw_server(Reply([dialect.answer()])) as server:
        done(await collect(dialect.provider(server.url, model), asked))
    return server.seen[0].body


async def received(dialect: Dialect, stream: bytes, asked: ModelRequest | None = None) -> AssistantMessage:
    """The answer that these bytes are."""
    async with raw_server(Reply([stream])) as server:
        return done(await collect(dialect.provider(server.url), asked)).message


def assistant(
    dialect: Dialect, *content: TextContent | ThinkingContent | ToolCall, stop: Any = "stop", model: str = "m"
) -> AssistantMessage:
    api = dialect.wire.api
    origin = {"api": api, "provider": PROVIDERS[api], "model": model}
    return AssistantMessage(content=content, **origin, usage=Usage(), stop_reason=stop, timestamp=1)


def result(call_id: str, *content: TextContent | ImageContent, is_error: bool = False) -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=call_id, tool_name="t", content=content, is_error=is_error, timestamp=1)


def conversation(dialect: Dialect, thinking: Sequence[ThinkingContent]) -> list[Message]:
    """Two calls, one with malformed arguments, both answered; and what no model may see."""
    broken = ToolCall(id="c2", name="t", arguments_text="{oops")
    return [
        UserMessage(content=(TextContent(text="look"), IMAGE), timestamp=1),
        assistant(dialect, TextContent(text="half"), stop="error"),
        CustomMessage(role="note"),
        assistant(
            dialect, *thinking, TextContent(text="Now."), ToolCall(id="c1", name="t", arguments={"a": "ü"}), broken
        ),
        result("c1", TextContent(text="seen"), IMAGE),
        result("c2", TextContent(text="no JSON"), is_error=True),
        UserMessage.of("go on", timestamp=1),
    ]
