"""Chat completions: what is sent, and how the dialects of the servers are read."""

from typing import Any

import pytest

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
from pilothouse.models.provider import ModelOptions, ModelRequest, ToolSpec
from tests.models.dialects import CHAT_DIALECT
from tests.models.wire import DONE, Reply, answer, call_delta, collect, delta, done, failed, raw_server, request, sse


async def sent(asked: ModelRequest) -> dict[str, Any]:
    async with raw_server(Reply([answer()])) as server:
        done(await collect(CHAT_DIALECT.provider(server.url), asked))
    return server.seen[0].body


async def received(*chunks: dict[str, Any], asked: ModelRequest | None = None) -> AssistantMessage:
    async with raw_server(Reply([sse(*chunks), DONE])) as server:
        return done(await collect(CHAT_DIALECT.provider(server.url), asked)).message


def assistant(*content: TextContent | ThinkingContent | ToolCall, stop: Any = "stop") -> AssistantMessage:
    return AssistantMessage(
        content=content, api="a", provider="p", model="m", usage=Usage(), stop_reason=stop, timestamp=1
    )


def result(call_id: str, *content: TextContent | ImageContent) -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=call_id, tool_name="t", content=content, is_error=False, timestamp=1)


async def test_a_plain_request_holds_only_what_was_asked_for() -> None:
    assert await sent(request("hi")) == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_options_tools_and_schema_are_sent() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    options = ModelOptions(
        temperature=0, top_p=0.5, max_output_tokens=50, thinking="high", seed=7, stop=("END", "\n\n")
    )
    body = await sent(request(options=options, tools=[ToolSpec("t", "d", schema)], response_schema=schema))
    assert (body["temperature"], body["max_tokens"], body["reasoning_effort"]) == (0, 50, "high")
    assert (body["top_p"], body["seed"], body["stop"]) == (0.5, 7, ["END", "\n\n"])
    assert body["tools"] == [{"type": "function", "function": {"name": "t", "description": "d", "parameters": schema}}]
    assert body["response_format"] == {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


async def test_a_conversation_is_sent_without_what_the_server_cannot_read() -> None:
    image = ImageContent(media_type="image/png", data="AAAA")
    broken = ToolCall(id="c2", name="t", arguments_text="{oops")
    history: list[Message] = [
        UserMessage(content=(TextContent(text="look"), image), timestamp=1),
        assistant(TextContent(text="half"), stop="error"),
        CustomMessage(role="note"),
        assistant(ThinkingContent(thinking="hm"), ToolCall(id="c1", name="t", arguments={"a": "ü"}), broken),
        result("c1", TextContent(text="seen"), image),
        result("c2"),
        UserMessage.of("go on", timestamp=1),
    ]
    body = await sent(ModelRequest("", history))
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}

    def called(call_id: str, arguments: str) -> dict[str, Any]:
        return {"id": call_id, "type": "function", "function": {"name": "t", "arguments": arguments}}

    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "look"}, picture]},
        {"role": "assistant", "content": None, "tool_calls": [called("c1", '{"a": "\\u00fc"}'), called("c2", "{}")]},
        {"role": "tool", "tool_call_id": "c1", "content": "seen"},
        {"role": "tool", "tool_call_id": "c2", "content": "(no text)"},
        {"role": "user", "content": [{"type": "text", "text": "Images from the tool results above:"}, picture]},
        {"role": "user", "content": "go on"},
    ]


async def test_calls_are_put_together_by_index() -> None:
    message = await received(
        call_delta(0, "", id="c0", name="first"),
        call_delta(1, '{"b"', id="c1", name="second"),
        call_delta(0, '{"a": '),
        call_delta(1, ": 2}"),
        call_delta(0, "1}"),
        delta(finish="tool_calls"),
    )
    assert [(c.id, c.name, c.arguments) for c in message.tool_calls] == [
        ("c0", "first", {"a": 1}),
        ("c1", "second", {"b": 2}),
    ]


async def test_whole_calls_under_one_index_are_told_apart_by_id() -> None:
    message = await received(
        call_delta(0, '{"a": 1}', id="x", name="t"), call_delta(0, '{"a": 2}', id="y", name="t"), delta(finish="stop")
    )
    assert [c.arguments for c in message.tool_calls] == [{"a": 1}, {"a": 2}]
    assert message.stop_reason == "toolUse"


async def test_pieces_without_index_or_id_belong_to_the_last_call() -> None:
    message = await received(
        call_delta(None, '{"a"', name="t"),
        call_delta(None, ": 1}"),
        call_delta(None, "{}", name="u"),
        delta(finish="tool_calls"),
    )
    assert [(c.id, c.name, c.arguments) for c in message.tool_calls] == [
        ("call_0_0", "t", {"a": 1}),
        ("call_0_1", "u", {}),
    ]


async def test_arguments_sent_as_an_object_are_read() -> None:
    chunk = delta(tool_calls=[{"index": 0, "id": "c", "function": {"name": "t", "arguments": {"a": [1]}}}])
    (call,) = (await received(chunk, delta(finish="tool_calls"))).tool_calls
    assert call.arguments == {"a": [1]}


async def test_an_id_is_never_used_twice_in_a_conversation() -> None:
    earlier = assistant(ToolCall(id="call_1", name="t"), ToolCall(id="call_1_0", name="t"), stop="toolUse")
    asked = ModelRequest("", [UserMessage.of("hi", 1), earlier, result("call_1"), result("call_1_0")])
    chunks = [call_delta(i, "{}", id="call_1", name="t") for i in range(2)]
    message = await received(*chunks, delta(finish="tool_calls"), asked=asked)
    assert [call.id for call in message.tool_calls] == ["call_1_1", "call_1_2"]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_is_thinking(field: str) -> None:
    message = await received(delta(**{field: "let me "}), delta(**{field: "see"}), delta("stop", content="42"))
    thinking = ThinkingContent(thinking="let me see", thinking_signature=field)
    assert message.content == (thinking, TextContent(text="42"))
    body = await sent(ModelRequest("", [message]))
    assert body["messages"] == [{"role": "assistant", "content": "42", field: "let me see"}]


async def test_usage_counts_cached_tokens_apart_and_ignores_nonsense() -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 12, "prompt_tokens_details": {"cached_tokens": 10}}
    counted = (await received(delta("stop", content="a"), {"choices": [], "usage": usage})).usage
    assert (counted.input, counted.cache_read, counted.output, counted.total_tokens) == (20, 10, 12, 42)
    nonsense = {"prompt_tokens": -3, "completion_tokens": "many", "prompt_tokens_details": None}
    assert (await received(delta("stop", content="a"), {"choices": [], "usage": nonsense})).usage == Usage()


async def test_what_went_into_the_cache_is_counted_apart() -> None:
    details = {"cached_tokens": 10, "cache_write_tokens": 5}
    usage = {"prompt_tokens": 30, "completion_tokens": 12, "prompt_tokens_details": details}
    counted = (await received(delta("stop", content="a"), {"choices": [], "usage": usage})).usage
    assert (counted.input, counted.cache_read, counted.cache_write, counted.total_tokens) == (15, 10, 5, 42)


@pytest.mark.parametrize(
    ("reason", "stop"), [("stop", "stop"), ("eos", "stop"), ("end_turn", "stop"), ("length", "length")]
)
async def test_the_usual_ends_of_an_answer_are_known(reason: str, stop: str) -> None:
    assert (await received(delta(reason, content="a"))).stop_reason == stop


async def test_an_end_that_is_not_known_is_a_failure() -> None:
    async with raw_server(Reply([sse(delta("recitation", content="a")), DONE])) as server:
        last = failed(await collect(CHAT_DIALECT.provider(server.url)))
    assert (last.failure.code, last.failure.retryable, last.message.text) == ("F-DEP", True, "a")
    assert last.failure.message == "the model server ended the answer for a reason that is not known: 'recitation'"


async def test_calls_that_were_announced_and_never_came_are_a_failure() -> None:
    async with raw_server(Reply([sse(delta(content="a"), delta(finish="tool_calls")), DONE])) as server:
        failure = failed(await collect(CHAT_DIALECT.provider(server.url))).failure
    assert (failure.code, failure.retryable) == ("F-DEP", True)


async def test_an_empty_answer_is_an_answer() -> None:
    message = await received(delta(finish="stop"))
    assert (message.content, message.stop_reason) == ((), "stop")
