"""The loop's events, in the order that the agent harness documents, and what is recorded before each."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from uuid import UUID

import pytest

from pilothouse.agents.context import Context
from pilothouse.agents.events import AgentEnd, MessageEnd, ToolExecutionUpdate, TurnEnd
from pilothouse.agents.hooks import Block, EndedTurn, GatedCall, Hooks
from pilothouse.agents.journal import CallResult
from pilothouse.agents.loop import LoopConfig, run_loop
from pilothouse.agents.messages import AssistantMessage, CustomMessage, Message, UserMessage
from pilothouse.models.provider import ModelEvent, ModelRequest
from pilothouse.records.values import ValueRefused
from pilothouse.store.errors import Superseded
from pilothouse.tools.tool import ToolInvocation, ToolResult
from tests.agents.doubles import ATool, Events, Model, Notes, calls, registry, says

HELLO = UserMessage.of("hello", 1)
A = ("A", "say", {"text": "a"})
B = ("B", "say", {"text": "b"})


def message(who: str) -> list[str]:
    return [f"message_start {who}", f"message_end {who}"]


def executed(call: str) -> list[str]:
    return [f"tool_execution_start {call}", f"tool_execution_end {call}"]


async def play(model: Model, *tools: ATool, history: Sequence[Message] = (), **config: object) -> tuple[Events, Notes]:
    events, notes = Events(), Notes()
    prompts = () if history else (HELLO,)
    await run_loop(
        Context("be short", history, registry(*tools)),
        LoopConfig(provider=model, recorder=notes, **config),  # type: ignore[arg-type]
        events,
        prompts=prompts,
    )
    return events, notes


OPENING = ["agent_start", "turn_start", *message("user"), *message("assistant")]
CLOSING = ["turn_start", *message("assistant"), "turn_end", "agent_end"]


def slow_a_waits_for(done: asyncio.Event) -> ATool:
    async def work(call: ToolInvocation) -> ToolResult:
        if call.id == "A":
            await done.wait()
        else:
            done.set()
        return ToolResult.of(call.id)

    return ATool(work=work)


@pytest.mark.feature("A8")
@pytest.mark.feature("A9")
@pytest.mark.feature("A10")
async def test_a_text_answer_is_one_turn() -> None:
    events, _ = await play(Model(says("hi")))
    assert events.names == [*OPENING, "turn_end", "agent_end"]


@pytest.mark.feature("A12")
@pytest.mark.feature("A41")
async def test_one_tool_call_makes_a_second_turn() -> None:
    events, _ = await play(Model(calls(A), says("hi")))
    assert events.names == [*OPENING, *executed("A"), *message("A"), "turn_end", *CLOSING]


@pytest.mark.feature("A42")
async def test_parallel_calls_end_as_they_finish_and_answer_in_the_order_of_the_message() -> None:
    events, _ = await play(Model(calls(A, B), says("hi")), slow_a_waits_for(asyncio.Event()))
    starts = ["tool_execution_start A", "tool_execution_start B"]
    ends = ["tool_execution_end B", "tool_execution_end A"]
    assert events.names == [*OPENING, *starts, *ends, *message("A"), *message("B"), "turn_end", *CLOSING]


@pytest.mark.feature("A42")
async def test_one_sequential_tool_makes_the_batch_go_call_by_call() -> None:
    steady = ATool("steady", execution_mode="sequential")
    model = Model(calls(A, ("S", "steady", {"text": "s"})), says("hi"))
    events, notes = await play(model, ATool(), steady)
    batch = [*executed("A"), *message("A"), *executed("S"), *message("S")]
    assert events.names == [*OPENING, *batch, "turn_end", *CLOSING]
    assert notes.log[2:8] == ["intend A", "record A", "append toolResult", "intend S", "record S", "append toolResult"]


@pytest.mark.feature("A36")
async def test_an_unknown_tool_ends_before_a_sibling_runs_and_answers_in_its_place() -> None:
    model = Model(calls(A, ("X", "nope", {})), says("hi"))
    events, notes = await play(model)
    batch = [
        "tool_execution_start A",
        *executed("X"),
        "tool_execution_end A",
        *message("A"),
        *message("X"),
    ]
    assert events.names == [*OPENING, *batch, "turn_end", *CLOSING]
    assert events.results[1].is_error
    assert "Tool nope not found" in events.results[1].text
    assert "intend X" not in notes.log


@pytest.mark.feature("A68")
async def test_a_failed_model_call_ends_the_loop() -> None:
    events, notes = await play(Model({"text": "I th", "error": {"message": "overloaded"}}, says("never")))
    assert events.names == [*OPENING, "turn_end", "agent_end"]
    assert isinstance(events.seen[-2], TurnEnd)
    assert events.seen[-2].message.stop_reason == "error"
    assert notes.log == ["append user", "append assistant"]


@pytest.mark.feature("A62")
async def test_every_message_and_call_is_recorded_before_it_is_announced() -> None:
    """The recorder and the subscriber write into one list, so their order is seen."""
    notes = Notes()

    async def subscriber(event: object) -> None:
        if isinstance(event, MessageEnd):
            notes.log.append(f"heard {event.message.role}")

    config = LoopConfig(provider=Model(calls(A), says("hi")), recorder=notes)
    await run_loop(Context("", (), registry()), config, subscriber, prompts=(HELLO,))
    heard = ["append user", "heard user", "append assistant", "heard assistant"]
    tool = ["intend A", "record A", "append toolResult", "heard toolResult"]
    assert notes.log == [*heard, *tool, "append assistant", "heard assistant"]


@pytest.mark.feature("A8")
async def test_the_end_lists_only_what_this_loop_added() -> None:
    events, _ = await play(Model(says("hi")), history=(HELLO,))
    end = events.seen[-1]
    assert isinstance(end, AgentEnd)
    assert [added.role for added in end.messages] == ["assistant"]
    assert events.names[:3] == ["agent_start", "turn_start", "message_start assistant"]


@pytest.mark.feature("A24")
async def test_the_model_sees_only_standard_roles_and_complete_answers() -> None:
    broken = AssistantMessage.model_validate(
        {
            "role": "assistant",
            "content": [],
            "api": "x",
            "provider": "x",
            "model": "x",
            "usage": {},
            "stopReason": "aborted",
            "timestamp": 1,
        }
    )
    model = Model(says("hi"))
    await play(model, history=(HELLO, broken, CustomMessage(role="note")))
    assert [seen.role for seen in model.requests[0].messages] == ["user"]


@pytest.mark.feature("A40")
@pytest.mark.parametrize(("who", "turns"), [("AB", 1), ("A", 2), ("", 2)])
async def test_the_loop_terminates_only_if_every_result_says_so(who: str, turns: int) -> None:
    async def work(call: ToolInvocation) -> ToolResult:
        return ToolResult(ToolResult.of("ok").content, terminate=call.id in who)

    model = Model(calls(A, B), says("hi"))
    events, _ = await play(model, ATool(work=work))
    assert model.calls == turns
    assert events.names[-2:] == ["turn_end", "agent_end"]


@pytest.mark.feature("A27")
async def test_should_stop_ends_the_run_after_the_turn() -> None:
    async def stop(turn: EndedTurn) -> bool:
        return len(turn.tool_results) == 1

    events, _ = await play(Model(calls(A), says("never")), hooks=Hooks(should_stop_after_turn=stop))
    assert events.names == [*OPENING, *executed("A"), *message("A"), "turn_end", "agent_end"]


@pytest.mark.feature("A30")
@pytest.mark.feature("A32")
async def test_follow_ups_continue_the_run_where_it_would_stop() -> None:
    queue = [UserMessage.of("and now?", 2)]

    async def follow_ups() -> Sequence[Message]:
        return (queue.pop(),) if queue else ()

    events, _ = await play(Model(calls(A), says("hi"), says("bye")), hooks=Hooks(get_follow_up_messages=follow_ups))
    tail = ["turn_start", *message("user"), *message("assistant"), "turn_end", "agent_end"]
    assert events.names[-7:] == tail
    assert events.names.count("message_start user") == 2


@pytest.mark.feature("A13")
async def test_updates_come_before_the_end_and_late_ones_are_ignored() -> None:
    late: list[ToolInvocation] = []

    async def work(call: ToolInvocation) -> ToolResult:
        late.append(call)
        await call.on_update(ToolResult.of("half"))
        return ToolResult.of("whole")

    events, _ = await play(Model(calls(A), says("hi")), ATool(work=work))
    await late[0].on_update(ToolResult.of("too late"))
    batch = ["tool_execution_start A", "tool_execution_update A", "tool_execution_end A"]
    assert events.names[len(OPENING) : len(OPENING) + 3] == batch
    assert sum(isinstance(event, ToolExecutionUpdate) for event in events.seen) == 1


@pytest.mark.feature("A11")
async def test_deltas_of_the_answer_join_to_its_text() -> None:
    text = "a long answer that a model sends in pieces"
    events, _ = await play(Model(says(text)))
    wires = [event.to_wire() for event in events.seen]
    updates = [wire["assistantMessageEvent"] for wire in wires if wire["type"] == "message_update"]
    deltas = [update["delta"] for update in updates if update["type"] == "text_delta"]
    assert len(deltas) > 1
    assert "".join(deltas) == text
    assert updates[0] == {"type": "text_start", "contentIndex": 0}
    assert updates[-1] == {"type": "text_end", "contentIndex": 0, "content": text}


async def refuse(call: GatedCall) -> Block | None:
    """Blocks the call A and fails on the call B."""
    if call.call.id == "B":
        raise RuntimeError("the policy could not be read")
    return Block("not on Fridays") if call.call.id == "A" else None


@pytest.mark.feature("A25")
async def test_a_blocked_call_and_one_whose_gate_fails_do_not_run() -> None:
    tool = ATool()
    model = Model(calls(A, B, ("C", "say", {"text": "c"})), says("hi"))
    events, notes = await play(model, tool, hooks=Hooks(before_tool_call=refuse))
    assert tool.calls == ["C"]
    assert [result.is_error for result in events.results] == [True, True, False]
    assert events.results[0].text == "not on Fridays"
    assert "the policy could not be read" in events.results[1].text
    assert [line for line in notes.log if line.startswith("intend")] == ["intend C"]


async def test_a_gate_that_finds_itself_superseded_ends_the_loop() -> None:
    async def late(call: GatedCall) -> Block | None:
        raise Superseded("another attempt is open")

    with pytest.raises(Superseded):
        await play(Model(calls(A), says("never")), hooks=Hooks(before_tool_call=late))


async def test_an_answer_that_no_store_takes_becomes_a_failed_answer() -> None:
    class Strict(Notes):
        async def append(self, messages: Sequence[Message], results: Sequence[CallResult] = ()) -> UUID:
            if any(isinstance(added, AssistantMessage) and added.text == "too big" for added in messages):
                raise ValueRefused("the value takes too many bytes")
            return await super().append(messages, results)

    events = Events()
    config = LoopConfig(provider=Model(says("too big")), recorder=Strict())
    added = await run_loop(Context("", (), registry()), config, events, prompts=(HELLO,))
    assert events.names == [*OPENING, "turn_end", "agent_end"]
    assert isinstance(added[-1], AssistantMessage)
    assert (added[-1].stop_reason, added[-1].text) == ("error", "")


async def test_a_provider_that_raises_gives_an_answer_that_says_so() -> None:
    class Broken(Model):
        def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
            raise OSError("no route")

    events, _ = await play(Broken(says("x")))
    assert events.names == [*OPENING, "turn_end", "agent_end"]
    assert isinstance(events.seen[-2], TurnEnd)
    assert events.seen[-2].message.error_message == "the provider raised OSError: no route"
