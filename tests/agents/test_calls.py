"""A tool call that cannot be made is answered, never silently dropped, and the loop goes on."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any
from uuid import UUID

import pytest

from pilothouse.agents.context import Context
from pilothouse.agents.events import ToolExecutionStart
from pilothouse.agents.journal import CallResult
from pilothouse.agents.loop import LoopConfig, run_loop
from pilothouse.agents.messages import AssistantMessage, Message, ToolResultMessage, Usage, UserMessage
from pilothouse.models.provider import Done, ModelEvent, ModelRequest
from pilothouse.records.values import encode
from pilothouse.tools.tool import ToolInvocation, ToolResult
from tests.agents.doubles import ATool, Events, Model, Notes, calls, registry, says

PROMPT = UserMessage.of("go", 1)


async def results_of(turn: dict[str, Any], *tools: ATool, cap: int = 5) -> list[ToolResultMessage]:
    """Plays the turn and one answer; the loop must reach the answer."""
    model, events = Model(turn, says("done")), Events()
    config = LoopConfig(provider=model, recorder=Notes(), tool_calls_per_turn=cap)
    added = await run_loop(Context("", (), registry(*tools)), config, events, prompts=(PROMPT,))
    assert isinstance(added[-1], AssistantMessage)
    assert added[-1].text == "done"
    return events.results


def raw(arguments: str) -> dict[str, Any]:
    return {"toolCalls": [{"id": "A", "name": "say", "argumentsText": arguments}]}


@pytest.mark.feature("A37")
@pytest.mark.feature("B12")
@pytest.mark.parametrize(
    ("turn", "says_what"),
    [
        (raw("{'text': 1}"), "not valid JSON"),
        (raw('{"text": 9007199254740993}'), "an integer beyond 2^53"),
        (raw('{"text": 1e400}'), "Not executed"),
        (raw("[1]"), "must be a JSON object, not an array"),
        (raw('{"text": "a", "text": "b"}'), "the same key twice"),
        (calls(("A", "say", {"text": 1})), 'arguments.text: 1 is not of type "string"'),
        (calls(("A", "say", {})), 'arguments: "text" is a required property'),
        (calls(("A", "say", {"text": "a", "loud": True})), "'loud' was unexpected"),
        (calls(("A", "shout", {"text": "a"})), "Tool shout not found. The tools are: say."),
    ],
)
async def test_bad_arguments_and_names_are_answered_with_what_is_wrong(turn: dict[str, Any], says_what: str) -> None:
    tool = ATool()
    [result] = await results_of(turn, tool)
    assert result.is_error
    assert says_what in result.text
    assert tool.calls == []


async def test_subscribers_see_the_arguments_as_the_model_wrote_them() -> None:
    events = Events()
    config = LoopConfig(provider=Model(raw("{oops"), says("done")), recorder=Notes())
    await run_loop(Context("", (), registry()), config, events, prompts=(PROMPT,))
    [start] = [event for event in events.seen if isinstance(event, ToolExecutionStart)]
    assert start.args == "{oops"


@pytest.mark.feature("A38")
async def test_a_tool_that_raises_is_an_error_result_and_its_siblings_are_not_harmed() -> None:
    async def work(call: ToolInvocation) -> ToolResult:
        if call.id == "A":
            raise ValueError("no such city")
        return ToolResult.of("fine")

    first, second = await results_of(calls(("A", "say", {"text": "a"}), ("B", "say", {"text": "b"})), ATool(work=work))
    assert (first.is_error, first.text) == (True, "no such city")
    assert (second.is_error, second.text) == (False, "fine")


async def test_a_tool_that_cancels_itself_does_not_abort_the_run() -> None:
    async def work(call: ToolInvocation) -> ToolResult:
        raise asyncio.CancelledError("an inner timeout")

    [result] = await results_of(calls(("A", "say", {"text": "a"})), ATool(work=work))
    assert (result.is_error, result.text) == (True, "an inner timeout")


class Strict(Notes):
    """Takes what can be stored, and keeps the results that it took."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[str] = []

    async def append(self, messages: Sequence[Message], results: Sequence[CallResult] = ()) -> UUID:
        for message in messages:
            encode(message.model_dump(by_alias=True))
        self.taken += [result.message.text for result in results]
        return await super().append(messages, results)

    async def record(self, result: CallResult) -> None:
        encode(result.message.model_dump(by_alias=True))
        self.taken.append(result.message.text)
        await super().record(result)


@pytest.mark.parametrize("bad", ["A", "B"], ids=["of the first call to end", "of the last one"])
@pytest.mark.parametrize("details", [{"size": float("nan")}, {"set": {1}}, {"big": 2**80}])
async def test_a_result_that_cannot_be_stored_becomes_an_error_result(details: Any, bad: str) -> None:
    async def work(call: ToolInvocation) -> ToolResult:
        return ToolResult.of("fine", details if call.id == bad else None)

    events, notes = Events(), Strict()
    both = calls(("A", "say", {"text": "a"}), ("B", "say", {"text": "b"}))
    config = LoopConfig(provider=Model(both, says("done")), recorder=notes)
    await run_loop(Context("", (), registry(ATool(work=work))), config, events, prompts=(PROMPT,))
    assert [result.is_error for result in events.results] == [bad == "A", bad == "B"]
    assert notes.taken == [result.text for result in events.results]
    assert events.names.count(f"tool_execution_end {bad}") == 1


async def test_calls_beyond_the_cap_of_a_turn_are_answered_and_do_not_run() -> None:
    tool = ATool()
    three = [(name, "say", {"text": name}) for name in "ABC"]
    results = await results_of(calls(*three), tool, cap=2)
    assert tool.calls == ["A", "B"]
    assert [result.tool_call_id for result in results] == ["A", "B", "C"]
    assert [result.is_error for result in results] == [False, False, True]
    assert "at most 2 tool calls run in one turn" in results[2].text


async def test_calls_of_a_response_that_was_cut_off_do_not_run() -> None:
    class Cut(Model):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
            async for event in super().stream(request):
                if isinstance(event, Done) and event.message.tool_calls:
                    yield Done(event.message.model_copy(update={"stop_reason": "length"}))
                else:
                    yield event

    tool, events = ATool(), Events()
    model = Cut(calls(("A", "say", {"text": "a"}), ("B", "say", {"text": "b"})), says("done"))
    config = LoopConfig(provider=model, recorder=Notes())
    await run_loop(Context("", (), registry(tool)), config, events, prompts=(PROMPT,))
    assert tool.calls == []
    assert [result.is_error for result in events.results] == [True, True]
    assert model.calls == 2


async def test_two_calls_with_the_same_id_both_run_and_both_get_a_result() -> None:
    tool = ATool()
    results = await results_of(calls(("A", "say", {"text": "a"}), ("A", "say", {"text": "b"})), tool)
    assert [result.text for result in results] == ["said a", "said b"]


@pytest.mark.feature("A39")
async def test_all_that_a_tool_returns_travels_on_its_message() -> None:
    async def work(call: ToolInvocation) -> ToolResult:
        return ToolResult(ToolResult.of("t").content, {"k": 1}, usage=Usage(total_tokens=7), added_tool_names=("more",))

    [result] = await results_of(calls(("A", "say", {"text": "a"})), ATool(work=work))
    assert result.details == {"k": 1}
    assert result.usage == Usage(total_tokens=7)
    assert result.added_tool_names == ("more",)


async def test_a_call_runs_exactly_what_its_record_holds() -> None:
    """1.0 and 1 are one number in canonical JSON, so the tool gets what the recorded bytes say."""
    seen: list[Any] = []

    async def work(call: ToolInvocation) -> ToolResult:
        seen.append(call.arguments["n"])
        return ToolResult.of("ok")

    tool = ATool(work=work, parameters={"type": "object"})
    await results_of(calls(("A", "say", {"n": 1.0})), tool)
    assert [(type(value), value) for value in seen] == [(int, 1)]
