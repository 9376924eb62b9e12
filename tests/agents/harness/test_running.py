"""Runs of the harness: what is kept, what each turn is made of, how a run ends, and what is refused meanwhile."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from pilothouse.agents.abort import Signal
from pilothouse.agents.errors import AgentError
from pilothouse.agents.events import AgentEnd, MessageEnd, ToolExecutionEnd, TurnEnd
from pilothouse.agents.harness import Destination
from pilothouse.agents.harness.events import Aborted, HarnessEvent, SavePoint, Settled
from pilothouse.agents.harness.hooks import StartChange, Starting
from pilothouse.agents.hooks import Block, EndedCall, GatedCall, ResultPatch
from pilothouse.agents.messages import ImageContent, Message, TextContent, UserMessage
from pilothouse.agents.session import CompactionSettings, CustomBody, CustomMessageBody, MessageBody
from pilothouse.models.provider import ModelOptions, ModelRequest
from pilothouse.store.errors import Superseded
from pilothouse.tools.tool import ToolInvocation, ToolResult
from tests.agents.desk import Desk
from tests.agents.doubles import ATool, HangingModel, InOrder, Model, calls, says
from tests.agents.harness.scene import A, B, entries_of, harness_on, said, texts
from tests.agents.session.making import Teller


@pytest.mark.feature("A44")
@pytest.mark.feature("A61")
async def test_a_prompt_is_a_run_whose_messages_are_kept_and_gives_its_last_answer(desk: Desk) -> None:
    harness, heard = await harness_on(desk, Model(calls(A), says("hi")), ATool())
    answer = await harness.prompt("go")
    assert answer.text == "hi"
    assert await entries_of(desk) == ["user", "assistant", "toolResult", "assistant"]
    assert heard.names[-4:] == ["turn_end", "save_point", "agent_end", "settled"]
    assert harness.phase == "idle"


@pytest.mark.feature("A62")
async def test_a_message_is_in_the_session_before_anyone_hears_of_its_end(desk: Desk) -> None:
    harness, _ = await harness_on(desk, Model(calls(A), says("hi")), ATool())
    stored: list[bool] = []

    async def listen(event: HarnessEvent, signal: Signal) -> None:
        if isinstance(event, MessageEnd):
            entries = (await desk.stored()).entries
            stored.append(entries[-1].body["message"]["role"] == event.message.role)

    harness.subscribe(listen)
    await harness.prompt("go")
    assert stored == [True] * 4


@pytest.mark.feature("A60")
@pytest.mark.feature("A61")
async def test_what_a_listener_writes_during_a_turn_follows_the_turns_messages(desk: Desk) -> None:
    harness, heard = await harness_on(desk, Model(calls(A), says("hi")), ATool())

    async def listen(event: HarnessEvent, signal: Signal) -> None:
        if isinstance(event, MessageEnd) and event.message.role == "assistant":
            await harness.append(CustomBody(custom_type="note", data=len(heard.seen)))

    harness.subscribe(listen)
    await harness.prompt("go")
    assert await entries_of(desk) == ["user", "assistant", "toolResult", "custom", "assistant", "custom"]
    assert [point.had_pending_mutations for point in heard.all_of(SavePoint)] == [True, True]
    await harness.append(CustomBody(custom_type="note"))
    assert (await entries_of(desk))[-1] == "custom"


@pytest.mark.feature("A60")
async def test_a_pending_message_is_part_of_the_next_request(desk: Desk) -> None:
    model = Model(calls(A), says("hi"))

    async def work(call: ToolInvocation) -> ToolResult:
        await harness.append(MessageBody(message=said("by the way")))
        return ToolResult.of("ok")

    harness, _ = await harness_on(desk, model, ATool(work=work))
    await harness.prompt("go")
    assert [message.role for message in model.requests[1].messages] == ["user", "assistant", "toolResult", "user"]


@pytest.mark.feature("A60")
@pytest.mark.feature("A61")
async def test_what_is_written_at_a_save_point_is_part_of_the_next_request(desk: Desk) -> None:
    model = Model(calls(A), says("hi"))
    harness, _ = await harness_on(desk, model, ATool())

    async def listen(event: HarnessEvent, signal: Signal) -> None:
        if isinstance(event, SavePoint) and model.calls == 1:
            await harness.append(CustomMessageBody(custom_type="note", content="by the way"))

    harness.subscribe(listen)
    await harness.prompt(said("go"))
    assert texts(model.requests[1].messages) == ["go", "by the way"]


@pytest.mark.feature("A59")
async def test_a_compaction_within_a_run_holds_for_its_later_turns(desk: Desk) -> None:
    big = ("A", "say", {"text": "word " * 160})
    model = InOrder(calls(big), calls(A), says("hi"))
    harness, _ = await harness_on(
        desk, model, ATool(), summarise=Teller(), compaction=CompactionSettings(window=500, reserve=100, keep_recent=50)
    )
    await harness.prompt("go")
    assert "compaction" in await entries_of(desk)
    assert ["what was said" in str(request.messages) for request in model.requests] == [False, True, True]


@pytest.mark.feature("A60")
@pytest.mark.feature("A68")
async def test_a_listener_that_fails_loses_no_pending_write_and_the_failure_is_kept(desk: Desk) -> None:
    harness, heard = await harness_on(desk, Model(says("hi"), says("never")))

    async def listen(event: HarnessEvent, signal: Signal) -> None:
        if isinstance(event, TurnEnd) and event.message.stop_reason == "stop":
            await harness.append(CustomBody(custom_type="note"))
            raise RuntimeError("it broke")

    harness.subscribe(listen)
    answer = await harness.prompt("go")
    assert (answer.stop_reason, answer.error_message) == ("error", "it broke")
    assert await entries_of(desk) == ["user", "assistant", "custom", "assistant"]
    assert heard.names[-4:] == ["turn_end", "save_point", "agent_end", "settled"]
    assert len(heard.all_of(SavePoint)) == 1


@pytest.mark.feature("A68")
@pytest.mark.feature("A41")
async def test_a_listener_that_fails_among_tools_leaves_no_call_without_a_result(desk: Desk) -> None:
    async def work(call: ToolInvocation) -> ToolResult:
        if call.id == "B":
            await asyncio.Event().wait()
        return ToolResult.of(call.id)

    async def listen(event: HarnessEvent, signal: Signal) -> None:
        if isinstance(event, ToolExecutionEnd):
            raise RuntimeError("it broke")

    harness, _ = await harness_on(desk, Model(calls(A, B), says("never")), ATool(work=work))
    harness.subscribe(listen)
    answer = await harness.prompt("go")
    assert answer.error_message == "it broke"
    assert await entries_of(desk) == ["user", "assistant", "toolResult", "toolResult", "assistant"]
    results = [entry.body["message"] for entry in (await desk.stored()).entries[2:4]]
    assert [(result["toolCallId"], result["isError"]) for result in results] == [("A", False), ("B", True)]


@pytest.mark.feature("A67")
async def test_what_needs_an_idle_harness_is_refused_with_a_code(desk: Desk) -> None:
    model = HangingModel(says("hi"))
    harness, _ = await harness_on(desk, model)
    run = asyncio.create_task(harness.prompt("go"))
    await model.begun.wait()
    assert harness.phase == "turn"
    target = harness.tree.leaf
    assert target
    for refused in (
        harness.prompt("no"),
        harness.continue_(),
        harness.compact(),
        harness.navigate(Destination(target)),
    ):
        with pytest.raises(AgentError) as raised:
            await refused
        assert raised.value.code == "busy"
    await harness.abort()
    await run


@pytest.mark.feature("A67")
async def test_a_listener_of_the_end_cannot_begin_an_overlapping_run(desk: Desk) -> None:
    harness, _ = await harness_on(desk, Model(says("hi"), says("never")))
    codes: list[str] = []

    async def listen(event: HarnessEvent, signal: Signal) -> None:
        if isinstance(event, AgentEnd | Settled):
            with pytest.raises(AgentError) as raised:
                await harness.prompt("again")
            codes.append(raised.value.code)

    harness.subscribe(listen)
    await harness.prompt("go")
    assert codes == ["busy", "busy"]


@pytest.mark.feature("A33")
async def test_the_first_hook_adds_messages_after_the_prompt_and_a_prompt_of_the_system_for_the_run(desk: Desk) -> None:
    model = Model(calls(A), says("hi"), says("ho"))
    harness, _ = await harness_on(desk, model, ATool(), system_prompt="plain", resources={"team": "blue"})

    async def start(event: Starting) -> StartChange | None:
        assert (texts(event.prompts), event.system_prompt, event.resources) == (["go"], "plain", {"team": "blue"})
        return StartChange([said("after")], "special")

    leave = harness.hooks.before_agent_start.add(start)
    await harness.next_turn(said("before"))
    await harness.prompt(said("go"))
    assert texts(model.requests[0].messages) == ["before", "go", "after"]
    leave()
    await harness.prompt("once more")
    assert [request.system for request in model.requests] == ["special", "special", "plain"]


@pytest.mark.feature("A68")
@pytest.mark.feature("A33")
async def test_a_first_hook_that_fails_is_kept_as_a_failed_answer_and_loses_no_queued_message(desk: Desk) -> None:
    model = Model(says("unused"), says("hi"))
    harness, heard = await harness_on(desk, model)

    async def start(event: Starting) -> None:
        raise RuntimeError("it broke")

    leave = harness.hooks.before_agent_start.add(start)
    await harness.next_turn(said("before"))
    answer = await harness.prompt("go")
    assert (answer.stop_reason, answer.error_message) == ("error", "the hook `before_agent_start` failed: it broke")
    assert await entries_of(desk) == ["assistant"]
    assert heard.names[-6:] == ["message_start", "message_end", "turn_end", "save_point", "agent_end", "settled"]
    leave()
    await harness.prompt(said("go"))
    assert texts(model.requests[0].messages) == ["before", "go"]


@pytest.mark.feature("A25")
async def test_any_block_is_final_and_the_last_word_on_a_result_holds(desk: Desk) -> None:
    tool, asked = ATool(), []
    harness, _ = await harness_on(desk, Model(calls(A, B), says("hi")), tool)

    async def block(call: GatedCall) -> Block | None:
        return Block("not A") if call.call.id == "A" else None

    async def allow(call: GatedCall) -> Block | None:
        asked.append(call.call.id)
        return None

    def writes(text: str) -> Any:
        async def patch(call: EndedCall) -> ResultPatch:
            return ResultPatch(content=(TextContent(text=text),))

        return patch

    harness.hooks.tool_call.add(block)
    harness.hooks.tool_call.add(allow)
    harness.hooks.tool_result.add(writes("first"))
    harness.hooks.tool_result.add(writes("last"))
    await harness.prompt("go")
    results = [entry.body["message"] for entry in (await desk.stored()).entries[2:4]]
    assert [result["content"][0]["text"] for result in results] == ["not A", "last"]
    assert (asked, tool.calls) == (["B"], ["B"])


@pytest.mark.feature("A21")
async def test_the_context_hook_and_the_chain_before_a_request_change_that_request_only(desk: Desk) -> None:
    model = Model(says("hi"))
    harness, _ = await harness_on(desk, model)

    async def context(messages: Sequence[Message]) -> Sequence[Message]:
        return [said("first"), *messages]

    def adds(text: str) -> Any:
        async def before(request: ModelRequest) -> ModelRequest:
            options = ModelOptions(stop=(*request.options.stop, text))
            return ModelRequest(request.system, request.messages, request.tools, options)

        return before

    harness.hooks.context.add(context)
    harness.hooks.before_provider_request.add(adds("a"))
    harness.hooks.before_provider_request.add(adds("b"))
    await harness.prompt(said("go"))
    [request] = model.requests
    assert (texts(request.messages), request.options.stop) == (["first", "go"], ("a", "b"))
    assert await entries_of(desk) == ["user", "assistant"]


@pytest.mark.feature("A63")
@pytest.mark.feature("A66")
@pytest.mark.feature("A33")
async def test_an_abort_returns_what_was_queued_for_the_run_and_keeps_the_next_turn(desk: Desk) -> None:
    model = HangingModel(says("half"))
    harness, heard = await harness_on(desk, model)
    run = asyncio.create_task(harness.prompt("first"))
    await model.begun.wait()
    await harness.steer(said("s"))
    await harness.follow_up(said("f"))
    await harness.next_turn(said("n"))
    cleared = await harness.abort()
    assert harness.phase == "idle"
    answer = await run
    assert (texts(cleared.steer), texts(cleared.follow_up), answer.stop_reason) == (["s"], ["f"], "aborted")
    assert heard.all_of(Aborted) == [Aborted(cleared.steer, cleared.follow_up)]
    assert heard.all_of(Settled) == [Settled(1)]
    again, _ = await harness_on(desk, model)
    assert again.tree.leaf == harness.tree.leaf


@pytest.mark.feature("A63")
async def test_an_abort_of_an_idle_harness_only_says_so(desk: Desk) -> None:
    harness, heard = await harness_on(desk, Model(says("hi")))
    cleared = await harness.abort()
    assert (cleared.steer, heard.names) == ((), ["queue_update", "abort"])


@pytest.mark.feature("A69")
async def test_a_new_process_continues_the_open_turn_and_repeats_nothing(desk: Desk) -> None:
    """The process dies while its second tool runs; the first one's result is recorded by then."""
    begun = asyncio.Event()

    async def work(call: ToolInvocation) -> ToolResult:
        if call.id == "B" and not begun.is_set():
            begun.set()
            await asyncio.Event().wait()
        return ToolResult.of(call.id)

    tool = ATool(work=work, idempotent=True, execution_mode="sequential")
    first, _ = await harness_on(desk, Model(calls(A, B), says("never")), tool)
    dead = asyncio.create_task(first.prompt("go"))
    await begun.wait()
    model = Model(says("unused"), says("hi"))
    second, _ = await harness_on(desk, model, tool)
    answer = await second.continue_()
    assert (answer.text, tool.calls, model.calls) == ("hi", ["A", "B", "B"], 1)
    dead.cancel()
    with pytest.raises(asyncio.CancelledError):
        await dead
    assert await entries_of(desk) == ["user", "assistant", "toolResult", "toolResult", "assistant"]


@pytest.mark.feature("A69")
async def test_a_process_that_was_superseded_writes_and_tells_nothing_more(desk: Desk) -> None:
    begun, end = asyncio.Event(), asyncio.Event()

    async def work(call: ToolInvocation) -> ToolResult:
        begun.set()
        await end.wait()
        return ToolResult.of("late")

    first, heard = await harness_on(desk, Model(calls(A), says("never")), ATool(work=work))
    late = asyncio.create_task(first.prompt("go"))
    await begun.wait()
    await desk.attempt()
    before = heard.names
    end.set()
    with pytest.raises(Superseded):
        await late
    assert (heard.names, first.phase) == (before, "idle")
    assert await entries_of(desk) == ["user", "assistant"]


@pytest.mark.feature("A5")
async def test_images_reach_the_model_and_the_session(desk: Desk) -> None:
    model = Model(says("a cat"))
    harness, _ = await harness_on(desk, model)
    image = ImageContent(media_type="image/png", data="AA==")
    await harness.prompt("what is it?", [image])
    [message] = model.requests[0].messages
    assert isinstance(message, UserMessage)
    assert message.content == (TextContent(text="what is it?"), image)
    stored = (await desk.stored()).entries[0].body["message"]["content"]
    assert stored[1] == {"type": "image", "mediaType": "image/png", "data": "AA=="}


async def test_a_session_without_messages_has_nothing_to_continue(desk: Desk) -> None:
    harness, _ = await harness_on(desk, Model(says("hi")))
    with pytest.raises(AgentError) as raised:
        await harness.continue_()
    assert raised.value.code == "invalid_state"
