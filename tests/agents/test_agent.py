"""The agent in memory: state before listeners, queues in both modes, refusals while busy, and how a run ends."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pilothouse.agents.abort import Signal
from pilothouse.agents.agent import Agent
from pilothouse.agents.errors import AgentError
from pilothouse.agents.events import AgentEnd, AgentEvent, MessageEnd, MessageUpdate, TurnEnd, TurnStart
from pilothouse.agents.hooks import EndedTurn, GatedCall, Hooks, NextTurn
from pilothouse.agents.inputs import prompts_of
from pilothouse.agents.messages import AssistantMessage, CustomMessage, ImageContent, Message, TextContent, UserMessage
from pilothouse.agents.queue import QueueMode
from pilothouse.tools.tool import ToolInvocation, ToolResult
from tests.agents.doubles import ATool, Events, HangingModel, Model, calls, says

A = ("A", "say", {"text": "a"})
B = ("B", "say", {"text": "b"})


def said(text: str) -> UserMessage:
    return UserMessage.of(text, 1)


def texts(messages: Sequence[Message]) -> list[str]:
    """What users and models said, in order."""
    return [
        message.content[0].text
        for message in messages
        if isinstance(message, UserMessage | AssistantMessage)
        and message.content
        and isinstance(message.content[0], TextContent)
    ]


def heard_by(agent: Agent) -> Events:
    events = Events()

    async def listen(event: AgentEvent, signal: Signal) -> None:
        await events(event)

    agent.subscribe(listen)
    return events


IMAGE = ImageContent(media_type="image/png", data="AA==")


@pytest.mark.feature("A1")
@pytest.mark.feature("A2")
@pytest.mark.feature("A5")
def test_a_text_becomes_a_message_and_messages_stay_as_they_are() -> None:
    [message] = prompts_of("hi", [IMAGE])
    assert isinstance(message, UserMessage)
    assert message.content == (TextContent(text="hi"), IMAGE)
    assert message.timestamp > 1_600_000_000_000
    note, listed = CustomMessage(role="note"), [said("a"), said("b")]
    assert prompts_of(note) == [note]
    assert prompts_of(listed) is listed
    with pytest.raises(AgentError) as raised:
        prompts_of([])
    assert raised.value.code == "invalid_argument"


@pytest.mark.feature("A14")
@pytest.mark.feature("A15")
@pytest.mark.feature("A16")
@pytest.mark.feature("A19")
async def test_the_state_is_reduced_before_each_listener_hears_of_it() -> None:
    agent = Agent(Model(calls(A, B), says("hi")))
    agent.state.tools = [ATool()]
    seen: list[str] = []
    pending: list[frozenset[str]] = []

    async def listen(event: AgentEvent, signal: Signal) -> None:
        state = agent.state
        pending.append(state.pending_tool_calls)
        if not isinstance(event, MessageUpdate):
            streaming = state.streaming_message.role if state.streaming_message else "-"
            calls = "".join(sorted(state.pending_tool_calls)) or "-"
            seen.append(f"{Events([event]).names[0]}: {streaming} {len(state.messages)} {calls}")
        assert state.is_streaming
        assert not signal.aborted

    agent.subscribe(listen)
    await agent.prompt("go")
    assert seen == [
        "agent_start: - 0 -",
        "turn_start: - 0 -",
        "message_start user: user 0 -",
        "message_end user: - 1 -",
        "message_start assistant: assistant 1 -",
        "message_end assistant: - 2 -",
        "tool_execution_start A: - 2 A",
        "tool_execution_start B: - 2 AB",
        "tool_execution_end A: - 2 B",
        "tool_execution_end B: - 2 -",
        "message_start A: toolResult 2 -",
        "message_end A: - 3 -",
        "message_start B: toolResult 3 -",
        "message_end B: - 4 -",
        "turn_end: - 4 -",
        "turn_start: - 4 -",
        "message_start assistant: assistant 4 -",
        "message_end assistant: - 5 -",
        "turn_end: - 5 -",
        "agent_end: - 5 -",
    ]
    assert {frozenset("A"), frozenset("AB"), frozenset("B"), frozenset()} == set(pending)
    assert (agent.state.is_streaming, agent.signal) == (False, None)


@pytest.mark.feature("A14")
async def test_the_streaming_message_grows_with_each_update() -> None:
    agent, grown = Agent(Model(says("a text of more than sixteen characters"))), []

    async def listen(event: AgentEvent, signal: Signal) -> None:
        if isinstance(event, MessageUpdate):
            assert agent.state.streaming_message is event.message
            grown.append(event.message.text)

    agent.subscribe(listen)
    await agent.prompt("go")
    assert grown == sorted(grown, key=len)
    assert len(set(grown)) > 2


@pytest.mark.feature("A7")
@pytest.mark.feature("A19")
async def test_listeners_hear_in_order_until_they_leave_and_the_run_waits_for_them() -> None:
    agent, heard = Agent(Model(says("hi"), says("ho"))), []

    def listener(name: str) -> Callable[[AgentEvent, Signal], Any]:
        async def listen(event: AgentEvent, signal: Signal) -> None:
            if isinstance(event, AgentEnd):
                await asyncio.sleep(0)
                assert agent.state.is_streaming
                heard.append(name)

        return listen

    leave = agent.subscribe(listener("first"))
    agent.subscribe(listener("second"))
    run = asyncio.create_task(agent.prompt("go"))
    await asyncio.sleep(0)
    await agent.wait_for_idle()
    assert heard == ["first", "second"]
    assert not agent.state.is_streaming
    await run
    leave()
    await agent.prompt("again")
    assert heard == ["first", "second", "second"]


@pytest.mark.feature("A17")
async def test_the_error_of_an_answer_is_in_the_state_until_the_next_run() -> None:
    agent = Agent(Model({"error": {"message": "overloaded"}}, says("never")))
    await agent.prompt("go")
    assert agent.state.error_message == "overloaded"
    seen: list[str | None] = []

    async def listen(event: AgentEvent, signal: Signal) -> None:
        seen.append(agent.state.error_message)

    agent.subscribe(listen)
    await agent.continue_()
    assert seen[0] is None


@pytest.mark.feature("A1")
async def test_what_a_busy_agent_cannot_do_is_refused() -> None:
    model = HangingModel(says("hi"))
    agent = Agent(model)
    run = asyncio.create_task(agent.prompt("go"))
    await model.begun.wait()
    for refused in (agent.prompt("no"), agent.continue_()):
        with pytest.raises(AgentError) as raised:
            await refused
        assert raised.value.code == "busy"
    with pytest.raises(AgentError, match="at work"):
        agent.reset()
    agent.abort()
    await run
    agent.reset()
    assert agent.state.messages == []


@pytest.mark.feature("A18")
@pytest.mark.feature("A20")
async def test_changes_of_the_state_hold_from_the_next_request() -> None:
    other, model = Model(says("unused"), says("hi")), Model(calls(A))
    agent = Agent(model)
    agent.state.system_prompt, agent.state.tools = "first", [ATool()]

    async def listen(event: AgentEvent, signal: Signal) -> None:
        if isinstance(event, MessageEnd) and isinstance(event.message, AssistantMessage):
            agent.state.system_prompt, agent.state.model = "second", other
            agent.state.thinking_level, agent.state.tools = "low", [ATool(), ATool("more")]

    agent.subscribe(listen)
    await agent.prompt("go")
    assert model.requests[0].system == "first"
    [request] = other.requests
    assert (request.system, request.options.thinking) == ("second", "low")
    assert [spec.name for spec in request.tools] == ["say", "more"]


@pytest.mark.feature("A20")
async def test_assigned_lists_are_copied() -> None:
    agent, messages, tools = Agent(Model(says("hi"))), [said("a")], [ATool()]
    agent.state.messages, agent.state.tools = messages, tools
    messages.clear()
    tools.clear()
    assert (len(agent.state.messages), len(agent.state.tools)) == (1, 1)


@pytest.mark.feature("A28")
async def test_what_a_hook_prepared_stays_until_the_state_is_changed() -> None:
    first, other = Model(calls(A)), Model(says("unused"), calls(B), says("hi"))

    async def prepare(turn: EndedTurn) -> NextTurn | None:
        return NextTurn(model=other) if turn.message.model == "scripted" and not other.requests else None

    agent = Agent(first, hooks=Hooks(prepare_next_turn=prepare))
    agent.state.tools = [ATool()]
    await agent.prompt("go")
    assert (first.calls, other.calls) == (1, 2)


@pytest.mark.feature("A31")
@pytest.mark.feature("A32")
@pytest.mark.feature("A34")
@pytest.mark.feature("A35")
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("one-at-a-time", ["go", "s1", "1", "s2", "2", "f1", "3", "f2", "4"]),
        ("all", ["go", "s1", "s2", "1", "f1", "f2", "2"]),
    ],
)
async def test_queued_messages_come_in_order_steering_first(mode: QueueMode, expected: list[str]) -> None:
    agent = Agent(Model(*[says(str(number)) for number in range(1, 6)]))
    agent.steering.mode = agent.follow_ups.mode = mode
    for number in "12":
        agent.follow_up(said(f"f{number}"))
        agent.steer(said(f"s{number}"))
    await agent.prompt(said("go"))
    assert texts(agent.state.messages) == expected
    assert agent.steering.waiting == agent.follow_ups.waiting == ()


@pytest.mark.feature("A31")
async def test_steering_waits_for_all_tools_of_the_turn() -> None:
    agent = Agent(Model(calls(A, B), says("hi")))

    async def work(call: ToolInvocation) -> ToolResult:
        if call.id == "A":
            agent.steer(said("wait"))
        return ToolResult.of(call.id)

    agent.state.tools = [ATool(work=work)]
    await agent.prompt("go")
    roles = [message.role for message in agent.state.messages]
    assert roles == ["user", "assistant", "toolResult", "toolResult", "user", "assistant"]


@pytest.mark.feature("A35")
@pytest.mark.parametrize("queue", ["steer", "follow_up"])
async def test_an_agent_continues_after_an_answer_with_what_is_queued(queue: str) -> None:
    agent = Agent(Model(says("1"), says("2"), says("3")))
    await agent.prompt(said("go"))
    with pytest.raises(AgentError) as raised:
        await agent.continue_()
    assert raised.value.code == "invalid_state"
    for text in "ab":
        getattr(agent, queue)(said(text))
    await agent.continue_()
    assert texts(agent.state.messages) == ["go", "1", "a", "2", "b", "3"]


async def test_an_agent_without_messages_has_nothing_to_continue() -> None:
    with pytest.raises(AgentError, match="no message"):
        await Agent(Model(says("hi"))).continue_()


@pytest.mark.feature("A63")
@pytest.mark.feature("A66")
async def test_an_abort_ends_the_answer_and_keeps_what_is_queued() -> None:
    model = HangingModel(says("half an answer"))
    agent = Agent(model)
    events = heard_by(agent)
    run = asyncio.create_task(agent.prompt("go"))
    await model.begun.wait()
    agent.steer(said("later"))
    agent.abort()
    agent.abort()
    await run
    assert events.names[-3:] == ["message_end assistant", "turn_end", "agent_end"]
    last = agent.state.messages[-1]
    assert isinstance(last, AssistantMessage)
    assert (last.stop_reason, last.text, agent.state.error_message) == (
        "aborted",
        "half an answer",
        "Operation aborted",
    )
    assert agent.steering.waiting == (said("later"),)


@pytest.mark.feature("A64")
@pytest.mark.feature("A66")
async def test_an_abort_among_tools_gives_each_call_a_result_and_an_answer_that_says_so() -> None:
    begun = asyncio.Event()

    async def work(call: ToolInvocation) -> ToolResult:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError("never")

    agent = Agent(Model(calls(A, B), says("never")))
    agent.state.tools = [ATool(work=work)]
    events = heard_by(agent)
    run = asyncio.create_task(agent.prompt("go"))
    await begun.wait()
    agent.abort()
    await run
    assert [result.is_error for result in events.results] == [True, True]
    closing = ["turn_end", "turn_start", "message_start assistant", "message_end assistant", "turn_end", "agent_end"]
    assert events.names[-6:] == closing
    end = events.seen[-1]
    assert isinstance(end, AgentEnd)
    assert [message.role for message in end.messages] == ["user", "assistant", "toolResult", "toolResult", "assistant"]
    assert agent.state.pending_tool_calls == frozenset()


@pytest.mark.feature("A63")
async def test_a_listener_that_aborts_is_not_cut_off_and_no_queue_is_asked_after_it() -> None:
    agent = Agent(Model(calls(A), says("never")))
    agent.state.tools = [ATool()]
    heard: list[object] = []

    async def aborts(event: AgentEvent, signal: Signal) -> None:
        if isinstance(event, TurnEnd) and event.tool_results:
            agent.steer(said("mine"))
            agent.abort()
            await asyncio.sleep(0)
            heard.append(signal.aborted)

    async def second(event: AgentEvent, signal: Signal) -> None:
        if isinstance(event, TurnEnd):
            heard.append(event.message.stop_reason)

    agent.subscribe(aborts)
    agent.subscribe(second)
    await agent.prompt("go")
    assert heard == [True, "toolUse", "aborted"]
    assert agent.steering.waiting == (said("mine"),)


@pytest.mark.feature("A63")
async def test_a_message_that_was_taken_when_the_abort_came_is_delivered_once_by_the_next_run() -> None:
    agent, starts = Agent(Model(calls(A), says("hi"), says("ho"))), 0
    agent.state.tools = [ATool()]

    async def aborts(event: AgentEvent, signal: Signal) -> None:
        nonlocal starts
        starts += isinstance(event, TurnStart)
        if isinstance(event, TurnStart) and starts == 2:
            agent.abort()

    agent.subscribe(aborts)

    async def before(event: AgentEvent, signal: Signal) -> None:
        if isinstance(event, TurnEnd) and starts == 1:
            agent.steer(said("mine"))

    agent.subscribe(before)
    await agent.prompt(said("go"))
    assert agent.steering.waiting == (said("mine"),)
    await agent.prompt(said("again"))
    assert [text for text in texts(agent.state.messages) if text == "mine"] == ["mine"]


@pytest.mark.feature("A68")
@pytest.mark.parametrize("where", ["hook", "listener"])
async def test_a_failure_of_a_hook_or_a_listener_becomes_a_failed_answer_and_a_whole_tail(where: str) -> None:
    failing = True

    async def stop(turn: EndedTurn) -> bool:
        if where == "hook":
            raise RuntimeError("it broke")
        return False

    async def listen(event: AgentEvent, signal: Signal) -> None:
        nonlocal failing
        if where == "listener" and isinstance(event, TurnEnd) and failing:
            failing = False
            raise RuntimeError("it broke")

    agent = Agent(Model(says("hi")), hooks=Hooks(should_stop_after_turn=stop))
    events = heard_by(agent)
    agent.subscribe(listen)
    await agent.prompt("go")
    assert events.names[-4:] == ["message_start assistant", "message_end assistant", "turn_end", "agent_end"]
    end = events.seen[-1]
    assert isinstance(end, AgentEnd)
    [message] = end.messages
    assert isinstance(message, AssistantMessage)
    assert (message.stop_reason, message.text, message.error_message) == ("error", "", "it broke")
    assert agent.state.error_message == "it broke"
    assert events.names.count("agent_end") == 1


@pytest.mark.feature("A8")
async def test_a_listener_that_fails_at_the_end_is_raised_and_the_agent_is_idle() -> None:
    async def listen(event: AgentEvent, signal: Signal) -> None:
        if isinstance(event, AgentEnd):
            raise RuntimeError("it broke")

    agent = Agent(Model(says("hi")))
    events = heard_by(agent)
    agent.subscribe(listen)
    with pytest.raises(RuntimeError, match="it broke"):
        await agent.prompt("go")
    assert events.names.count("agent_end") == 1
    assert not agent.state.is_streaming


async def test_cancelling_the_caller_is_no_abort_and_is_raised() -> None:
    model = HangingModel(says("hi"))
    agent = Agent(model)
    run = asyncio.create_task(agent.prompt("go"))
    await model.begun.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert not agent.state.is_streaming


@pytest.mark.feature("A65")
async def test_a_hook_is_cancelled_by_the_abort() -> None:
    begun, cut = asyncio.Event(), asyncio.Event()

    async def before(call: GatedCall) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cut.set()

    agent = Agent(Model(calls(A), says("never")), hooks=Hooks(before_tool_call=before))
    agent.state.tools = [ATool()]
    run = asyncio.create_task(agent.prompt("go"))
    await begun.wait()
    agent.abort()
    await run
    assert cut.is_set()
