"""A scripted model says its turns in order, also to a process that takes over in the middle."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pilothouse.agents.messages import Message, TextContent, ThinkingContent
from pilothouse.models.factory import create
from pilothouse.models.provider import ModelRequest
from pilothouse.models.script import ScriptError, load_script, parse_script
from pilothouse.models.scripted import ScriptedProvider
from tests.models.wire import collect, done, failed, request, types

WRITE = {"name": "file_write", "arguments": {"path": "a.md", "text": "hi"}}
SCRIPT: list[dict[str, Any]] = [{"toolCalls": [WRITE, WRITE]}, {"text": "done"}]


def scripted(*turns: dict[str, Any]) -> ScriptedProvider:
    return ScriptedProvider(parse_script(turns))


async def conversation(turns: int) -> ModelRequest:
    """A request as it stands after that many answers, each asked of a new provider."""
    messages: list[Message] = list(request().messages)
    for _ in range(turns):
        asked = ModelRequest("", messages)
        messages = [*messages, done(await collect(scripted(*SCRIPT), asked)).message]
    return ModelRequest("", messages)


async def test_the_turn_is_chosen_by_the_answers_in_the_conversation() -> None:
    second = done(await collect(scripted(*SCRIPT), await conversation(1))).message
    assert (second.text, second.stop_reason) == ("done", "stop")


async def test_asking_past_the_end_is_a_failure_that_says_so() -> None:
    last = failed(await collect(scripted(*SCRIPT), await conversation(2)))
    assert last.failure.message == "the script has 2 turns, and the conversation asks for turn 3"
    assert (last.failure.code, last.failure.retryable, last.message.stop_reason) == ("F-INP", False, "error")


async def test_call_ids_are_the_same_each_time() -> None:
    answers = [done(await collect(scripted(*SCRIPT))).message for _ in range(2)]
    ids = [[call.id for call in answer.tool_calls] for answer in answers]
    assert ids == [["call_0_0", "call_0_1"]] * 2
    assert answers[0].stop_reason == "toolUse"
    assert answers[0].tool_calls[0].arguments == WRITE["arguments"]


async def test_an_answer_streams_in_pieces_that_make_the_whole() -> None:
    text, thinking = "The quick brown fox jumps over the lazy dog.", "x" * 40
    events = await collect(scripted({"thinking": thinking, "text": text}))
    assert types(events) == ["start", *["thinking_delta"] * 3, *["text_delta"] * 3, "done"]
    assert done(events).message.content == (ThinkingContent(thinking=thinking), TextContent(text=text))
    assert [e.partial.text for e in events if e.type == "text_delta"] == [text[:16], text[:32], text]


async def test_a_call_has_no_arguments_before_they_are_complete() -> None:
    events = await collect(scripted({"toolCalls": [WRITE]}))
    assert types(events) == ["start", "toolcall_start", *["toolcall_delta"] * 2, "toolcall_end", "done"]
    partial = [e.partial.tool_calls[0].arguments for e in events if e.type == "toolcall_delta"]
    assert partial == [{}, {}]
    assert [e.tool_call.arguments for e in events if e.type == "toolcall_end"] == [WRITE["arguments"]]


async def test_malformed_arguments_can_be_scripted() -> None:
    events = await collect(scripted({"toolCalls": [{"name": "t", "argumentsText": "{oops"}]}))
    (call,) = done(events).message.tool_calls
    assert call.arguments_text == "{oops"


async def test_an_error_can_be_scripted_after_some_text() -> None:
    turn = {"text": "half", "error": {"message": "overloaded", "code": "F-DEP", "retryable": True}}
    last = failed(await collect(scripted(turn)))
    assert (last.message.text, last.message.error_message, last.message.error_code) == ("half", "overloaded", "F-DEP")
    assert last.failure.retryable


async def test_usage_can_be_scripted() -> None:
    usage = {"input": 7, "output": 3, "totalTokens": 10, "cost": {"total": 0.5}}
    message = done(await collect(scripted({"text": "x", "usage": usage}))).message
    assert (message.usage.total_tokens, message.usage.cost.total) == (10, 0.5)


async def test_a_cancelled_task_stops_between_pieces() -> None:
    seen: list[str] = []

    async def read() -> None:
        async for event in scripted({"text": "x" * 16_000}).stream(request()):
            seen.append(event.type)
            if len(seen) == 3:
                asyncio.current_task().cancel()  # type: ignore[union-attr]

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(read())
    assert len(seen) == 3


@pytest.mark.parametrize("suffix", ["yaml", "json"])
async def test_a_script_may_stand_in_a_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"script.{suffix}"
    path.write_text('[{"text": "from a file"}]' if suffix == "json" else "- text: from a file\n")
    assert done(await collect(ScriptedProvider(load_script(path)))).message.text == "from a file"


@pytest.mark.parametrize("content", [b"text: one turn only", b"- [", b"\xff"])
def test_a_file_that_holds_no_script_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "script.yaml"
    path.write_bytes(content)
    with pytest.raises(ScriptError, match=r"script\.yaml: "):
        load_script(path)


@pytest.mark.parametrize(
    ("turns", "complaint"),
    [
        ([], "script: "),
        ([{"text": "a"}, {"txt": "b"}], "script[1].txt: Extra inputs are not permitted"),
        ([{"toolCalls": [{"arguments": {}}]}], "script[0].toolCalls[0].name: Field required"),
        ([{"toolCalls": [{"name": "a", "arguments": [1]}]}], "script[0].toolCalls[0].arguments: "),
        ([{}], "script[0]: Value error, a turn needs text, thinking, toolCalls or error"),
        (["done"], "script[0]: "),
    ],
)
def test_an_unusable_script_is_refused_by_place(turns: list[Any], complaint: str) -> None:
    with pytest.raises(ScriptError) as caught:
        create("Scripted", script=turns)
    assert str(caught.value).startswith(complaint)
