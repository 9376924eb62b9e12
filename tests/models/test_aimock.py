"""The OpenAI-compatible provider against aimock, a mock server that mirrors OpenAI's wire format."""

from typing import Any

import pytest

from pilothouse.agents.messages import (
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolResultMessage,
    UserMessage,
)
from pilothouse.models.http_provider import HttpProvider
from pilothouse.models.patience import Patience
from pilothouse.models.provider import ModelRequest, ToolSpec
from tests.models.dialects import CHAT_DIALECT
from tests.models.wire import Naps, collect, done, failed, request, types

pytestmark = pytest.mark.peer("aimock")

WRITE = ToolSpec("file_write", "Writes a file.", {"type": "object", "properties": {"path": {"type": "string"}}})


@pytest.fixture
def provider(aimock: str) -> HttpProvider:
    return CHAT_DIALECT.provider(aimock, "gpt-5-mini", api_key=lambda: "sk-test")


def result(call_id: str, *content: TextContent) -> ToolResultMessage:
    fields: dict[str, Any] = {"tool_call_id": call_id, "tool_name": "file_write", "content": content}
    return ToolResultMessage(**fields, is_error=False, timestamp=2)


async def test_text_and_reasoning_arrive_in_pieces_and_whole(provider: HttpProvider) -> None:
    events = await collect(provider, request("greet"))
    message = done(events).message
    assert message.content == (
        ThinkingContent(thinking="The user wants a greeting."),
        TextContent(text="Grüße aus Köln, 你好 🚀"),
    )
    assert types(events).count("text_delta") > 2
    assert types(events).count("thinking_delta") > 2
    assert "".join(e.delta for e in events if e.type == "text_delta") == message.text
    assert (message.stop_reason, message.api, message.model) == ("stop", "openai-completions", "gpt-5-mini")


async def test_the_usage_at_the_end_of_the_stream_is_counted(provider: HttpProvider) -> None:
    usage = done(await collect(provider, request("greet"))).message.usage
    assert (usage.input, usage.output, usage.total_tokens) == (30, 12, 42)


async def test_two_parallel_calls_and_the_turn_that_follows(provider: HttpProvider) -> None:
    asked = request("use tools", tools=[WRITE])
    first = done(await collect(provider, asked)).message
    assert first.stop_reason == "toolUse"
    assert [(c.id, c.arguments) for c in first.tool_calls] == [
        ("call_a", {"path": "a.md", "text": 'ä\n"b"'}),
        ("call_b", {"path": "b.md", "text": ""}),
    ]
    results: list[Message] = [
        result("call_a", TextContent(text="ok")),
        result("call_b"),
    ]
    follow_up = ModelRequest(asked.system, [*asked.messages, first, *results], tools=[WRITE])
    assert done(await collect(provider, follow_up)).message.text == "Both files are written."


async def test_text_after_a_call_keeps_its_place(provider: HttpProvider) -> None:
    message = done(await collect(provider, request("interleave"))).message
    assert [block.type for block in message.content] == ["toolCall", "text"]


async def test_malformed_arguments_are_kept_as_text(provider: HttpProvider) -> None:
    (call,) = done(await collect(provider, request("garble"))).message.tool_calls
    assert call.arguments == {}
    assert call.arguments_text == '{"path": "a'
    assert call.arguments_error == "arguments are not valid JSON: Unterminated string starting at at character 9"


async def test_an_answer_that_ran_out_of_tokens_says_so(provider: HttpProvider) -> None:
    assert done(await collect(provider, request("run out"))).message.stop_reason == "length"


async def test_a_filtered_answer_is_a_refusal_that_is_final(provider: HttpProvider) -> None:
    failure = failed(await collect(provider, request("be filtered"))).failure
    assert (failure.code, failure.retryable) == ("F-SEC", False)


async def test_a_rate_limit_is_waited_out(aimock: str) -> None:
    naps = Naps()
    provider = CHAT_DIALECT.provider(aimock, "m", patience=Patience(sleep=naps))
    assert done(await collect(provider, request("overload"))).message.text == "now there is room"
    assert naps.seconds == [4.0]


async def test_a_stream_that_is_cut_is_a_failure(aimock: str) -> None:
    provider = CHAT_DIALECT.provider(aimock, "m", patience=Patience(sleep=Naps()))
    failure = failed(await collect(provider, request("hang up"))).failure
    assert (failure.code, failure.retryable) == ("F-DEP", True)


async def test_images_of_the_user_are_sent(provider: HttpProvider) -> None:
    content = (TextContent(text="greet"), ImageContent(media_type="image/png", data="AAAA"))
    asked = ModelRequest("", [UserMessage(content=content, timestamp=1)])
    assert done(await collect(provider, asked)).message.text.startswith("Grüße")
