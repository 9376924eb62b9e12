"""OpenAI's Responses: what is sent, and how answers are read."""

import json
from typing import Any

import pytest

from pilothouse.agents.messages import TextContent, ThinkingContent, ToolCall
from pilothouse.models.provider import ModelOptions, ModelRequest
from tests.models.dialects import RESPONSES_DIALECT, events, item, piece, response
from tests.models.talk import SCHEMA, TOOLS, conversation, received, result, sent
from tests.models.wire import DONE, Reply, collect, failed, raw_server, request

PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
REASONING: dict[str, Any] = {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}


async def body_of(asked: ModelRequest) -> dict[str, Any]:
    return await sent(RESPONSES_DIALECT, asked)


async def answer_of(*data: dict[str, Any]) -> Any:
    return await received(RESPONSES_DIALECT, events(*data))


async def test_a_plain_request_holds_only_what_was_asked_for() -> None:
    assert await body_of(request("hi")) == {
        "model": "m",
        "instructions": "Be brief.",
        "input": [{"role": "user", "content": "hi"}],
        "stream": True,
        "store": False,
    }


async def test_options_tools_and_schema_are_sent() -> None:
    options = ModelOptions(temperature=0, top_p=0.5, max_output_tokens=50, thinking="high")
    body = await body_of(request(options=options, tools=TOOLS[:1], response_schema=SCHEMA))
    assert (body["temperature"], body["top_p"], body["max_output_tokens"]) == (0, 0.5, 50)
    assert body["reasoning"] == {"effort": "high", "summary": "auto"}
    assert body["include"] == ["reasoning.encrypted_content"]
    tool = {"type": "function", "name": "s", "description": "First.", "parameters": SCHEMA, "strict": False}
    assert body["tools"] == [tool]
    assert body["text"] == {"format": {"type": "json_schema", "name": "answer", "schema": SCHEMA}}


@pytest.mark.feature("A5")
@pytest.mark.feature("A24")
async def test_a_conversation_is_sent_as_items_and_without_what_no_model_may_see() -> None:
    kept = {**REASONING, "encrypted_content": "cipher"}
    thinking = (
        ThinkingContent(thinking="hm", thinking_signature=json.dumps(kept)),
        ThinkingContent(thinking="unsigned"),
    )
    body = await body_of(ModelRequest("", conversation(RESPONSES_DIALECT, thinking)))
    assert body["input"] == [
        {"role": "user", "content": [{"type": "input_text", "text": "look"}, PICTURE]},
        kept,
        {"role": "assistant", "content": "Now."},
        {"type": "function_call", "call_id": "c1", "name": "t", "arguments": '{"a": "\\u00fc"}'},
        {"type": "function_call", "call_id": "c2", "name": "t", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "seen"}, PICTURE]},
        {"type": "function_call_output", "call_id": "c2", "output": "no JSON"},
        {"role": "user", "content": "go on"},
    ]


async def test_an_empty_result_is_sent_as_a_text() -> None:
    body = await body_of(ModelRequest("", [result("c1")]))
    assert body["input"] == [{"type": "function_call_output", "call_id": "c1", "output": "(no text)"}]


async def test_every_kind_of_item_is_read_in_order_and_goes_back_unchanged() -> None:
    reasoning = {
        **REASONING,
        "summary": [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "b"}],
    }
    function: dict[str, Any] = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "t"}
    message = await answer_of(
        {"type": "response.created", "response": {"id": "resp_1"}},
        item(0, type="reasoning", id="rs_1", summary=[]),
        {"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 0},
        piece(0, "reasoning_summary_text", "o", summary_index=0),
        piece(0, "reasoning_summary_text", "ne", summary_index=0),
        {"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 1},
        piece(0, "reasoning_summary_text", "b", summary_index=1),
        item(0, done=True, **reasoning, encrypted_content="cipher", status="completed", content=None),
        item(1, type="message", role="assistant", content=[]),
        piece(1, "output_text", "Grü", content_index=0),
        piece(1, "output_text", "ße", content_index=0),
        item(1, done=True, type="message", content=[{"type": "output_text", "text": "Grüße"}]),
        item(2, **function, arguments=""),
        piece(2, "function_call_arguments", '{"a"'),
        piece(2, "function_call_arguments", ': "x"}'),
        item(2, done=True, **function, arguments='{"a": "x"}'),
        response(),
    )
    (thinking, text, call) = message.content
    assert thinking.thinking == "one\n\nb"
    assert (text, call) == (TextContent(text="Grüße"), ToolCall(id="call_1", name="t", arguments={"a": "x"}))
    assert message.stop_reason == "toolUse"
    returned = (await body_of(ModelRequest("", [message, result("call_1")])))["input"]
    assert returned[0] == {**reasoning, "encrypted_content": "cipher"}


async def test_reasoning_without_its_ciphertext_does_not_go_back() -> None:
    said = [item(1, type="message"), piece(1, "output_text", "42"), response()]
    message = await answer_of(
        item(0, type="reasoning", id="rs_1"),
        piece(0, "reasoning_text", "hm"),
        item(0, done=True, **REASONING),
        *said,
    )
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert (await body_of(ModelRequest("", [message])))["input"] == [{"role": "assistant", "content": "42"}]


async def test_what_comes_only_as_a_whole_is_read() -> None:
    message = await answer_of(
        item(0, done=True, type="message", role="assistant", content=[{"type": "output_text", "text": "whole"}]),
        item(1, done=True, type="function_call", call_id="c", name="t", arguments='{"a": 1}'),
        response(),
    )
    assert message.text == "whole"
    assert [(c.id, c.arguments) for c in message.tool_calls] == [("c", {"a": 1})]


async def test_an_id_that_comes_twice_is_replaced() -> None:
    calls = [item(n, done=True, type="function_call", call_id="c", name="t", arguments="{}") for n in range(2)]
    assert [made.id for made in (await answer_of(*calls, response())).tool_calls] == ["c", "call_0_1"]


async def test_a_refusal_is_what_the_model_says() -> None:
    message = await answer_of(item(0, type="message"), piece(0, "refusal", "I will not."), response())
    assert (message.text, message.stop_reason) == ("I will not.", "stop")


async def test_cached_tokens_are_counted_apart() -> None:
    usage = {"input_tokens": 30, "output_tokens": 12, "input_tokens_details": {"cached_tokens": 10}}
    counted = (await answer_of(piece(0, "output_text", "a"), response(usage=usage))).usage
    assert (counted.input, counted.cache_read, counted.output, counted.total_tokens) == (20, 10, 12, 42)


async def test_an_answer_that_ran_out_of_tokens_says_so() -> None:
    end = response("incomplete", incomplete_details={"reason": "max_output_tokens"})
    assert (await answer_of(piece(0, "output_text", "a"), end)).stop_reason == "length"


async def test_a_closing_word_after_the_end_does_no_harm() -> None:
    stream = events(piece(0, "output_text", "a")) + DONE + events(response()) + DONE
    assert (await received(RESPONSES_DIALECT, stream)).text == "a"


@pytest.mark.parametrize(
    ("end", "code", "retryable", "says"),
    [
        (response("incomplete", incomplete_details={"reason": "content_filter"}), "F-SEC", False, "content filter"),
        (response("incomplete", incomplete_details={"reason": "boredom"}), "F-DEP", True, "not known: 'boredom'"),
        (response("failed", error={"code": "server_error", "message": "oh"}), "F-DEP", True, "failed: oh"),
        (response("failed", error={"code": "invalid_prompt", "message": "oh"}), "F-INP", False, "failed: oh"),
        (response("failed"), "F-DEP", True, "not known: 'failed'"),
        ({"type": "error", "code": "rate_limit_exceeded", "message": "slow"}, "F-DEP", True, "failed: slow"),
    ],
)
async def test_ends_that_leave_no_answer_are_failures(
    end: dict[str, Any], code: str, retryable: bool, says: str
) -> None:
    async with raw_server(Reply([events(piece(0, "output_text", "a"), end)])) as server:
        failure = failed(await collect(RESPONSES_DIALECT.provider(server.url))).failure
    assert (failure.code, failure.retryable) == (code, retryable)
    assert says in failure.message
