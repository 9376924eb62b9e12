"""Anthropic's messages: what is sent, and how answers are read."""

import json
from typing import Any

import pytest

from pilothouse.agents.messages import Message, TextContent, ThinkingContent, ToolCall, UserMessage
from pilothouse.models.provider import ModelOptions, ModelRequest
from tests.models.dialects import MESSAGES_DIALECT, block, close, events, grow, message_end, message_start
from tests.models.talk import SCHEMA, TOOLS, assistant, conversation, received, result, sent
from tests.models.wire import Reply, collect, failed, raw_server, request, types

CACHED = {"cache_control": {"type": "ephemeral"}}
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
FORCED = request(response_schema=SCHEMA)


async def body_of(asked: ModelRequest, model: str = "m") -> dict[str, Any]:
    return await sent(MESSAGES_DIALECT, asked, model)


def call(index: int, call_id: str, *pieces: str, name: str = "t") -> list[dict[str, Any]]:
    deltas = [grow(index, "input_json_delta", partial_json=piece) for piece in pieces]
    return [block(index, type="tool_use", id=call_id, name=name, input={}), *deltas, close(index)]


async def test_a_plain_request_holds_only_what_was_asked_for() -> None:
    assert await body_of(request("hi")) == {
        "model": "m",
        "system": [{"type": "text", "text": "Be brief.", **CACHED}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi", **CACHED}]}],
        "stream": True,
        "max_tokens": 8192,
    }


async def test_the_version_of_the_format_is_sent() -> None:
    async with raw_server(Reply([MESSAGES_DIALECT.answer()])) as server:
        await collect(MESSAGES_DIALECT.provider(server.url))
    assert "anthropic-version: 2023-06-01\r\n" in server.seen[0].head


async def test_options_and_tools_are_sent_and_the_last_tool_marks_the_cache() -> None:
    options = ModelOptions(temperature=0, top_p=0.5, max_output_tokens=50, stop=("END",))
    body = await body_of(request(options=options, tools=TOOLS))
    assert (body["temperature"], body["top_p"], body["max_tokens"], body["stop_sequences"]) == (0, 0.5, 50, ["END"])
    assert body["tools"] == [
        {"name": "s", "description": "First.", "input_schema": SCHEMA},
        {"name": "t", "description": "Second.", "input_schema": SCHEMA, **CACHED},
    ]


@pytest.mark.feature("A5")
@pytest.mark.feature("A24")
async def test_a_conversation_is_sent_by_turns_and_without_what_no_model_may_see() -> None:
    thinking = (
        ThinkingContent(thinking="hm", thinking_signature="sig"),
        ThinkingContent(thinking="", thinking_signature="cipher", redacted=True),
        ThinkingContent(thinking="unsigned"),
    )
    body = await body_of(ModelRequest("", conversation(MESSAGES_DIALECT, thinking)))
    seen = [{"type": "text", "text": "seen"}, PICTURE]
    error = [{"type": "text", "text": "no JSON"}]
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "look"}, PICTURE]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "sig"},
                {"type": "redacted_thinking", "data": "cipher"},
                {"type": "text", "text": "Now."},
                {"type": "tool_use", "id": "c1", "name": "t", "input": {"a": "ü"}},
                {"type": "tool_use", "id": "c2", "name": "t", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": seen},
                {"type": "tool_result", "tool_use_id": "c2", "content": error, "is_error": True},
                {"type": "text", "text": "go on", **CACHED},
            ],
        },
    ]


async def test_blank_texts_and_empty_results_are_sent_as_the_server_takes_them() -> None:
    history: list[Message] = [
        UserMessage(content=(TextContent(text=" \n"),), timestamp=1),
        assistant(MESSAGES_DIALECT, TextContent(text=" "), ToolCall(id="c1", name="t")),
        result("c1"),
    ]
    silent = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "(no text)"}], **CACHED}
    assert (await body_of(ModelRequest("", history)))["messages"] == [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "t", "input": {}}]},
        {"role": "user", "content": [silent]},
    ]


@pytest.mark.parametrize(
    ("model", "level", "fields"),
    [
        ("claude-sonnet-4-5", "off", {"max_tokens": 50}),
        ("claude-sonnet-4-5-20250929", "medium", {"max_tokens": 8242, "thinking": 8192}),
        ("claude-3-7-sonnet-latest", "minimal", {"max_tokens": 1074, "thinking": 1024}),
        ("claude-opus-4-20250514", "xhigh", {"max_tokens": 23602, "thinking": 23552}),
        ("anthropic/claude-opus-4.1", "low", {"max_tokens": 2098, "thinking": 2048}),
        ("glm-5", "high", {"max_tokens": 16434, "thinking": 16384}),
        ("claude-opus-4-6", "high", {"max_tokens": 50, "effort": "high"}),
        ("claude-opus-4.7", "xhigh", {"max_tokens": 50, "effort": "xhigh"}),
        ("claude-haiku-4-10", "medium", {"max_tokens": 50, "effort": "medium"}),
        ("claude-sonnet-5", "minimal", {"max_tokens": 50, "effort": "low"}),
    ],
)
async def test_a_thinking_level_is_a_budget_or_an_effort(model: str, level: Any, fields: dict[str, Any]) -> None:
    body = await body_of(request(options=ModelOptions(thinking=level, max_output_tokens=50)), model)
    budget = {"type": "enabled", "budget_tokens": fields.get("thinking")} if "thinking" in fields else None
    adaptive = {"type": "adaptive", "display": "summarized"} if "effort" in fields else None
    assert body["max_tokens"] == fields["max_tokens"]
    assert body.get("thinking") == (budget or adaptive)
    assert body.get("output_config") == ({"effort": fields["effort"]} if "effort" in fields else None)


async def test_an_answer_by_a_schema_is_a_call_that_the_model_must_make() -> None:
    body = await body_of(FORCED)
    assert body["tools"] == [{"name": "answer", "description": "Gives the final answer.", "input_schema": SCHEMA}]
    assert body["tool_choice"] == {"type": "tool", "name": "answer"}


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": TOOLS},
        {"options": ModelOptions(thinking="low")},
        {"response_schema": {"type": "array"}},
    ],
)
async def test_nothing_is_forced_where_that_would_exclude_something(fields: dict[str, Any]) -> None:
    body = await body_of(request(**{"response_schema": SCHEMA, **fields}))
    assert "tool_choice" not in body
    assert len(body.get("tools", [])) == len(fields.get("tools", []))


async def test_the_arguments_of_the_forced_call_are_the_text_of_the_answer() -> None:
    stream = events(message_start(), *call(0, "c", '{"a": ', '"ü"}', name="answer"), *message_end("tool_use"))
    message = await received(MESSAGES_DIALECT, stream, FORCED)
    assert (json.loads(message.text), message.tool_calls, message.stop_reason) == ({"a": "ü"}, (), "stop")


async def test_every_kind_of_block_is_read_in_order_and_goes_back_unchanged() -> None:
    said = [
        block(0, type="thinking", thinking="", signature=""),
        grow(0, "thinking_delta", thinking="let me "),
        grow(0, "thinking_delta", thinking="see"),
        grow(0, "signature_delta", signature="sig=="),
        close(0),
        block(1, type="redacted_thinking", data="cipher"),
        close(1),
        block(2, type="thinking", thinking="", signature=""),
        grow(2, "signature_delta", signature="hidden=="),
        close(2),
        block(3, type="text", text=""),
        grow(3, "text_delta", text="Grüße"),
        close(3),
        block(4, type="text", text="whole"),
        close(4),
        *call(5, "toolu_1", '{"a"', ': "x"}'),
        *call(6, "toolu_2"),
    ]
    message = await received(MESSAGES_DIALECT, events(message_start(), *said, *message_end("tool_use")))
    assert message.content == (
        ThinkingContent(thinking="let me see", thinking_signature="sig=="),
        ThinkingContent(thinking="", thinking_signature="cipher", redacted=True),
        ThinkingContent(thinking="", thinking_signature="hidden=="),
        TextContent(text="Grüße"),
        TextContent(text="whole"),
        ToolCall(id="toolu_1", name="t", arguments={"a": "x"}),
        ToolCall(id="toolu_2", name="t"),
    )
    assert message.stop_reason == "toolUse"
    follow_up = ModelRequest("", [message, result("toolu_1"), result("toolu_2")])
    returned = (await body_of(follow_up))["messages"][0]["content"]
    assert returned[:3] == [
        {"type": "thinking", "thinking": "let me see", "signature": "sig=="},
        {"type": "redacted_thinking", "data": "cipher"},
        {"type": "thinking", "thinking": "", "signature": "hidden=="},
    ]
    assert [kept["type"] for kept in returned[3:]] == ["text", "text", "tool_use", "tool_use"]


@pytest.mark.parametrize("kind", ["signature_delta", "redacted_thinking"])
async def test_a_signature_that_is_no_text_can_be_stored(kind: str) -> None:
    odd = "\ud800x"
    thought = grow(0, kind, signature=odd) if kind == "signature_delta" else block(0, type=kind, data=odd)
    said = [thought, close(0), block(1, type="text", text="a")]
    message = await received(MESSAGES_DIALECT, events(message_start(), *said, *message_end("end_turn")))
    assert message.content[0] == ThinkingContent(
        thinking="", thinking_signature="\ufffdx", redacted=kind == "redacted_thinking"
    )


async def test_arguments_that_come_at_once_are_read() -> None:
    whole = block(0, type="tool_use", id="c", name="t", input={"a": [1]})
    stream = events(message_start(), whole, close(0), *message_end("tool_use"))
    assert [c.arguments for c in (await received(MESSAGES_DIALECT, stream)).tool_calls] == [{"a": [1]}]


async def test_an_id_that_comes_twice_is_replaced() -> None:
    stream = events(message_start(), *call(0, "toolu_1"), *call(1, "toolu_1"), *call(2, ""), *message_end("tool_use"))
    ids = [made.id for made in (await received(MESSAGES_DIALECT, stream)).tool_calls]
    assert ids == ["toolu_1", "call_0_1", "call_0_2"]


async def test_usage_is_counted_to_the_end() -> None:
    first = message_start(input_tokens=10, output_tokens=1, cache_read_input_tokens=20, cache_creation_input_tokens=5)
    said = [block(0, type="text", text="a"), close(0)]
    usage = (await received(MESSAGES_DIALECT, events(first, *said, *message_end("end_turn", output_tokens=7)))).usage
    assert (usage.input, usage.cache_read, usage.cache_write, usage.output) == (10, 20, 5, 7)
    assert usage.total_tokens == 42
    nonsense = events(message_start(input_tokens=-3), *said, *message_end("end_turn", output_tokens=None))
    assert (await received(MESSAGES_DIALECT, nonsense)).usage.total_tokens == 0


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
    ],
)
async def test_why_an_answer_ended(reason: str, stop: str) -> None:
    stream = events(message_start(), block(0, type="text", text="a"), *message_end(reason))
    assert (await received(MESSAGES_DIALECT, stream)).stop_reason == stop


@pytest.mark.parametrize(
    ("reason", "code", "retryable", "says"),
    [
        ("refusal", "F-SEC", False, "content filter"),
        ("pause_turn", "F-DEP", True, "not known: 'pause_turn'"),
        ("boredom", "F-DEP", True, "not known: 'boredom'"),
        ("tool_use", "F-DEP", True, "announced tool calls and sent none"),
    ],
)
async def test_ends_that_leave_no_answer_are_failures(reason: str, code: str, retryable: bool, says: str) -> None:
    stream = events(message_start(), block(0, type="text", text="a"), *message_end(reason))
    async with raw_server(Reply([stream])) as server:
        events_seen = await collect(MESSAGES_DIALECT.provider(server.url))
    failure = failed(events_seen).failure
    assert (failure.code, failure.retryable) == (code, retryable)
    assert says in failure.message
    assert types(events_seen) == ["start", "text_delta", "error"]
