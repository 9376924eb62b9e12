"""The three formats against aimock, a mock server that mirrors the vendors' own and checks what it is sent."""

import json
from typing import Any

import pytest

from pilothouse.agents.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolResultMessage,
    UserMessage,
)
from pilothouse.models.http_provider import HttpProvider
from pilothouse.models.patience import Patience
from pilothouse.models.provider import ModelOptions, ModelRequest, ToolSpec
from tests.models.dialects import CHAT_DIALECT, MESSAGES_DIALECT, RESPONSES_DIALECT, Dialect
from tests.models.wire import Naps, collect, done, failed, request, types

pytestmark = pytest.mark.peer("aimock")

WRITE = ToolSpec("file_write", "Writes a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
MODELS = {CHAT_DIALECT: "gpt-5-mini", RESPONSES_DIALECT: "gpt-5-mini", MESSAGES_DIALECT: "claude-sonnet-4-5"}


@pytest.fixture
def provider(aimock: str, dialect: Dialect) -> HttpProvider:
    return made(aimock, dialect)


def made(aimock: str, dialect: Dialect, **fields: Any) -> HttpProvider:
    return dialect.provider(aimock, MODELS[dialect], api_key=lambda: "sk-test", **fields)


def result(call_id: str, *content: TextContent) -> ToolResultMessage:
    fields: dict[str, Any] = {"tool_call_id": call_id, "tool_name": "file_write", "content": content}
    return ToolResultMessage(**fields, is_error=False, timestamp=2)


def after(asked: ModelRequest, message: AssistantMessage, *results: Message) -> ModelRequest:
    return ModelRequest(asked.system, [*asked.messages, message, *results], asked.tools, asked.options)


async def test_text_and_reasoning_arrive_in_pieces_and_whole(provider: HttpProvider, dialect: Dialect) -> None:
    events = await collect(provider, request("greet"))
    message = done(events).message
    (thinking, text) = message.content
    assert isinstance(thinking, ThinkingContent)
    assert thinking.thinking == "The user wants a greeting."
    assert text == TextContent(text="Grüße aus Köln, 你好 🚀")
    assert types(events).count("text_delta") > 2
    assert types(events).count("thinking_delta") > 2
    assert "".join(e.delta for e in events if e.type == "text_delta") == message.text
    assert (message.stop_reason, message.api, message.model) == ("stop", dialect.wire.api, MODELS[dialect])


async def test_the_usage_of_the_stream_is_counted(provider: HttpProvider) -> None:
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
    follow_up = after(asked, first, result("call_a", TextContent(text="ok")), result("call_b"))
    assert done(await collect(provider, follow_up)).message.text == "Both files are written."


async def test_thinking_goes_back_as_the_format_demands_it(aimock: str) -> None:
    """The server refuses a turn with tool results whose thinking lacks its signature or its place."""
    provider = made(aimock, MESSAGES_DIALECT)
    asked = request("think first", tools=[WRITE], options=ModelOptions(thinking="low"))
    first = done(await collect(provider, asked)).message
    assert first.content[:2] == (
        ThinkingContent(thinking="", thinking_signature="Y2lwaGVy", redacted=True),
        ThinkingContent(thinking="First I write.", thinking_signature="c2lnbmVk"),
    )
    follow_up = after(asked, first, result("toolu_1"))
    assert done(await collect(provider, follow_up)).message.text == "It was a good thought."
    thoughtless = first.model_copy(update={"content": first.content[2:]})
    failure = failed(await collect(provider, after(asked, thoughtless, result("toolu_1")))).failure
    assert (failure.code, failure.status) == ("F-INP", 400)


async def test_reasoning_is_kept_with_its_ciphertext(aimock: str) -> None:
    provider = made(aimock, RESPONSES_DIALECT)
    message = done(await collect(provider, request("greet", options=ModelOptions(thinking="low")))).message
    thinking = message.content[0]
    assert isinstance(thinking, ThinkingContent)
    assert json.loads(thinking.thinking_signature or "{}")["encrypted_content"]


async def test_text_after_a_call_keeps_its_place(provider: HttpProvider) -> None:
    message = done(await collect(provider, request("interleave"))).message
    assert [block.type for block in message.content if block.type != "thinking"] == ["toolCall", "text"]


@pytest.mark.parametrize("spoken", [CHAT_DIALECT, RESPONSES_DIALECT], ids=["chat", "responses"])
async def test_malformed_arguments_are_kept_as_text(aimock: str, spoken: Dialect) -> None:
    (call,) = done(await collect(made(aimock, spoken), request("garble"))).message.tool_calls
    assert call.arguments == {}
    assert call.arguments_text == '{"path": "a'
    assert call.arguments_error == "arguments are not valid JSON: Unterminated string starting at at character 9"


async def test_an_answer_that_ran_out_of_tokens_says_so(provider: HttpProvider) -> None:
    assert done(await collect(provider, request("run out"))).message.stop_reason == "length"


@pytest.mark.parametrize(
    ("spoken", "asked"), [(CHAT_DIALECT, "be filtered"), (MESSAGES_DIALECT, "refuse")], ids=["chat", "messages"]
)
async def test_a_filtered_answer_is_a_refusal_that_is_final(aimock: str, spoken: Dialect, asked: str) -> None:
    failure = failed(await collect(made(aimock, spoken), request(asked))).failure
    assert (failure.code, failure.retryable) == ("F-SEC", False)


async def test_a_rate_limit_is_waited_out(aimock: str, dialect: Dialect) -> None:
    naps = Naps()
    provider = made(aimock, dialect, patience=Patience(sleep=naps))
    events = await collect(provider, request(f"overload {dialect.wire.api}"))
    assert done(events).message.text == "now there is room"
    assert naps.seconds == [4.0]


async def test_a_stream_that_is_cut_is_a_failure(aimock: str, dialect: Dialect) -> None:
    provider = made(aimock, dialect, patience=Patience(sleep=Naps()))
    failure = failed(await collect(provider, request("hang up"))).failure
    assert (failure.code, failure.retryable) == ("F-DEP", True)


async def test_images_of_the_user_are_sent(provider: HttpProvider) -> None:
    content = (TextContent(text="greet"), ImageContent(media_type="image/png", data="AAAA"))
    asked = ModelRequest("", [UserMessage(content=content, timestamp=1)])
    assert done(await collect(provider, asked)).message.text.startswith("Grüße")
