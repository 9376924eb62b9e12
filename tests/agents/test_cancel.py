"""Cancelling the task is the abort: the turn closes with a result for every call, then the cancellation goes on."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

import pytest

from pilothouse.agents.context import Context
from pilothouse.agents.events import AgentEnd, TurnEnd
from pilothouse.agents.journal import CallResult
from pilothouse.agents.loop import LoopConfig, run_loop
from pilothouse.agents.messages import Message, UserMessage
from pilothouse.models.provider import ToolCallDelta
from pilothouse.store.errors import Superseded
from pilothouse.tools.tool import ToolInvocation, ToolResult
from tests.agents.doubles import ATool, Events, HangingModel, Model, Notes, calls, registry, says

AB = calls(("A", "say", {"text": "a"}), ("B", "say", {"text": "b"}))


class Hanging:
    """The call A ends when told to, all others hang; `begun` is set once B hangs."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def work(self, call: ToolInvocation) -> ToolResult:
        if call.id == "A":
            return ToolResult.of("A is done")
        self.begun.set()
        await asyncio.Event().wait()
        raise AssertionError("never")


def start(model: Model, tool: ATool, notes: Notes, events: Events) -> "asyncio.Task[object]":
    config = LoopConfig(provider=model, recorder=notes)
    loop = run_loop(Context("", (), registry(tool)), config, events, prompts=(UserMessage.of("go", 1),))
    return asyncio.create_task(loop)


@pytest.mark.feature("A64")
@pytest.mark.feature("A66")
@pytest.mark.parametrize("mode", ["parallel", "sequential"])
async def test_every_call_has_a_result_when_the_batch_is_aborted(mode: str) -> None:
    hanging, notes, events = Hanging(), Notes(), Events()
    model = Model(calls(*[(name, "say", {"text": name}) for name in "ABC"]), says("never"))
    tool = ATool(work=hanging.work, execution_mode=mode)  # type: ignore[arg-type]
    task = start(model, tool, notes, events)
    await hanging.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    texts = [result.text for result in events.results]
    assert texts[0] == "A is done"
    assert texts[1].startswith("Operation aborted while the tool ran")
    assert texts[2].startswith("Operation aborted")
    assert [result.is_error for result in events.results] == [False, True, True]
    ends = [name for name in events.names if name.startswith("tool_execution_end")]
    starts = [name for name in events.names if name.startswith("tool_execution_start")]
    assert len(ends) == len(starts)
    assert isinstance(events.seen[-2], TurnEnd)
    assert events.seen[-2].tool_results == tuple(events.results)
    assert isinstance(events.seen[-1], AgentEnd)
    assert model.calls == 1


async def test_an_aborted_call_that_had_begun_is_recorded_as_aborted() -> None:
    hanging, notes, events = Hanging(), Notes(), Events()
    task = start(Model(AB, says("never")), ATool(work=hanging.work), notes, events)
    await hanging.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(notes.log[2:-1]) == ["intend A", "intend B", "record A", "record B"]
    assert notes.log[-1] == "append toolResult toolResult"


@pytest.mark.feature("A63")
async def test_an_aborted_answer_keeps_its_text_and_not_its_calls() -> None:
    model = HangingModel({"text": "I will", "toolCalls": AB["toolCalls"]}, at=ToolCallDelta)
    events, notes = Events(), Notes()
    task = start(model, ATool(), notes, events)
    await model.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    turn = events.seen[-2]
    assert isinstance(turn, TurnEnd)
    assert (turn.message.stop_reason, turn.message.text, turn.message.tool_calls) == ("aborted", "I will", ())
    assert notes.log == ["append user", "append assistant"]


@pytest.mark.parametrize("names", ["A", "AB"])
async def test_a_result_that_was_there_when_the_abort_came_is_not_lost(names: str) -> None:
    """The abort lands while the result of a finished tool is being recorded, alone or with the messages."""
    recording = asyncio.Event()

    class Slow(Notes):
        async def wait(self) -> None:
            if not recording.is_set():
                recording.set()
                await asyncio.Event().wait()

        async def record(self, result: CallResult) -> None:
            await self.wait()
            await super().record(result)

        async def append(self, messages: Sequence[Message], results: Sequence[CallResult] = ()) -> UUID:
            if results:
                await self.wait()
            return await super().append(messages, results)

    async def work(call: ToolInvocation) -> ToolResult:
        return ToolResult.of("paid")

    events, notes = Events(), Slow()
    two = calls(*[(name, "say", {"text": name}) for name in names])
    task = start(Model(two, says("never")), ATool(work=work), notes, events)
    await recording.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert events.results[0].text == "paid"
    recorded = [line for line in notes.log if line.startswith("record")]
    assert recorded[0] == "record A"
    assert len(recorded) == len(set(recorded))


@pytest.mark.parametrize("names", ["A", "AB"])
async def test_a_tool_that_keeps_the_cancellation_to_itself_does_not_keep_the_run_alive(names: str) -> None:
    begun = asyncio.Event()

    async def work(call: ToolInvocation) -> ToolResult:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return ToolResult.of("I had to finish")
        raise AssertionError("never")

    model = Model(calls(*[(name, "say", {"text": name}) for name in names]), says("never"))
    events = Events()
    task = start(model, ATool(work=work), Notes(), events)
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert events.results[0].text == "I had to finish"
    assert model.calls == 1


async def test_an_abort_that_the_store_refuses_is_still_an_abort() -> None:
    hanging, events = Hanging(), Events()

    class Lost(Notes):
        async def append(self, messages: Sequence[Message], results: Sequence[CallResult] = ()) -> UUID:
            if hanging.begun.is_set():
                raise Superseded("another attempt is open")
            return await super().append(messages, results)

    task = start(Model(AB), ATool(work=hanging.work), Lost(), events)
    await hanging.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert events.results == []


async def test_the_first_error_of_the_recorder_ends_the_batch_at_once() -> None:
    hanging = Hanging()

    class Refusing(Notes):
        async def record(self, *args: object) -> None:
            await hanging.begun.wait()
            raise Superseded("another attempt is open")

    events, notes = Events(), Refusing()
    with pytest.raises(Superseded):
        await start(Model(AB, says("never")), ATool(work=hanging.work), notes, events)
    assert events.names[-1] == "tool_execution_start B"
    assert notes.log[-2:] == ["intend A", "intend B"]
