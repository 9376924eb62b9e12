"""What each hook of the loop may change, what it may not, and what happens where it fails."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pilothouse.agents.context import Context
from pilothouse.agents.convert import ModelMessage
from pilothouse.agents.events import AgentEvent, ToolExecutionUpdate
from pilothouse.agents.hooks import Block, EndedCall, EndedTurn, GatedCall, Hooks, NextTurn, ResultPatch, first_block
from pilothouse.agents.loop import LoopConfig, run_loop
from pilothouse.agents.messages import CustomMessage, Message, TextContent, ToolResultMessage, Usage, UserMessage
from pilothouse.store.errors import Superseded
from pilothouse.tools.tool import ToolInvocation, ToolResult
from tests.agents.doubles import ATool, Events, Model, Notes, calls, registry, says

A = ("A", "say", {"text": "a"})
B = ("B", "say", {"text": "b"})
HELLO = UserMessage.of("hello", 1)


async def play(
    model: Model, hooks: Hooks, *tools: ATool, prompts: Sequence[Message] = (HELLO,)
) -> tuple[Events, Sequence[Message]]:
    events = Events()
    added = await run_loop(
        Context("be short", (), registry(*tools)), LoopConfig(model, Notes(), hooks), events, prompts=prompts
    )
    return events, added


def texts(messages: Sequence[Message]) -> list[str]:
    return [
        message.text if isinstance(message, ToolResultMessage) else message.content[0].text  # type: ignore[union-attr]
        for message in messages
        if not isinstance(message, CustomMessage)
    ]


@pytest.mark.feature("A21")
@pytest.mark.feature("A22")
@pytest.mark.feature("A23")
async def test_a_transform_changes_one_request_and_not_the_conversation() -> None:
    async def transform(messages: Sequence[Message]) -> Sequence[Message]:
        return [UserMessage.of("it is Monday", 1), *messages[1:]]

    model = Model(says("hi"))
    history = [UserMessage.of("old", 1), HELLO]
    _, added = await play(model, Hooks(transform_context=transform), prompts=history)
    assert texts(model.requests[0].messages) == ["it is Monday", "hello"]
    assert texts(added) == ["old", "hello", "hi"]


@pytest.mark.feature("A6")
@pytest.mark.feature("A24")
async def test_a_converter_maps_roles_after_the_transform() -> None:
    async def transform(messages: Sequence[Message]) -> Sequence[Message]:
        return [*messages, CustomMessage(role="weather")]

    async def convert(messages: Sequence[Message]) -> Sequence[ModelMessage]:
        return [UserMessage.of(f"[{one.role}]", 1) if isinstance(one, CustomMessage) else one for one in messages]

    model = Model(says("hi"))
    await play(model, Hooks(transform_context=transform, convert_to_llm=convert))
    assert texts(model.requests[0].messages) == ["hello", "[weather]"]


@pytest.mark.feature("A25")
async def test_a_check_before_a_call_sees_all_of_it_and_its_changes_run_unchecked() -> None:
    seen: list[GatedCall] = []

    async def before(call: GatedCall) -> Block | None:
        seen.append(replace(call, arguments=dict(call.arguments)))
        call.arguments["text"] = 7
        return None

    ran: list[Any] = []

    async def work(call: ToolInvocation) -> ToolResult:
        ran.append(call.arguments["text"])
        return ToolResult.of("ok")

    await play(Model(calls(A), says("hi")), Hooks(before_tool_call=before), ATool(work=work))
    [call] = seen
    assert (call.call.id, call.arguments, call.context.system) == ("A", {"text": "a"}, "be short")
    assert [message.role for message in call.context.messages] == ["user", "assistant"]
    assert ran == [7]


@pytest.mark.feature("A25")
async def test_a_change_that_is_no_json_is_answered_and_does_not_run() -> None:
    async def before(call: GatedCall) -> Block | None:
        call.arguments["text"] = float("nan")
        return None

    tool = ATool()
    events, _ = await play(Model(calls(A), says("hi")), Hooks(before_tool_call=before), tool)
    assert (tool.calls, events.results[0].is_error) == ([], True)


@pytest.mark.feature("A25")
@pytest.mark.feature("A40")
async def test_a_block_is_final_has_a_default_reason_and_may_end_the_run() -> None:
    asked: list[str] = []

    async def block(call: GatedCall) -> Block | None:
        return Block(terminate=True)

    async def allow(call: GatedCall) -> Block | None:
        asked.append(call.call.id)
        return None

    model = Model(calls(A), says("never"))
    events, _ = await play(model, Hooks(before_tool_call=first_block(block, allow)))
    assert events.results[0].text == "Tool execution was blocked"
    assert (asked, model.calls) == ([], 1)


USAGE = Usage.of(input=3)


@pytest.mark.feature("A26")
@pytest.mark.parametrize(
    ("patch", "changed"),
    [
        (None, {}),
        (ResultPatch(), {}),
        (ResultPatch(content=(TextContent(text="new"),)), {"content": (TextContent(text="new"),)}),
        (ResultPatch(content=()), {"content": ()}),
        (ResultPatch(details={"b": 2}), {"details": {"b": 2}}),
        (ResultPatch(usage=USAGE), {"usage": USAGE}),
        (ResultPatch(is_error=True), {"is_error": True}),
        (ResultPatch(terminate=False), {"terminate": None}),
    ],
    ids=["nothing", "an empty patch", "content", "no content", "details", "usage", "isError", "terminate"],
)
async def test_a_check_after_a_call_changes_single_fields(patch: ResultPatch | None, changed: dict[str, Any]) -> None:
    async def work(call: ToolInvocation) -> ToolResult:
        return ToolResult((TextContent(text="old"),), {"a": 1}, terminate=True)

    async def after(call: EndedCall) -> ResultPatch | None:
        assert call.result.details == {"a": 1}
        return patch

    events, _ = await play(Model(calls(A), says("hi")), Hooks(after_tool_call=after), ATool(work=work))
    [result] = events.results
    whole = {"content": (TextContent(text="old"),), "details": {"a": 1}, "usage": None, "is_error": False}
    seen = {name: getattr(result, name) for name in whole} | {"terminate": (result.model_extra or {}).get("terminate")}
    assert seen == {**whole, "terminate": True} | changed


@pytest.mark.feature("A26")
async def test_a_check_after_a_call_sees_the_error_of_a_tool_that_raised() -> None:
    async def work(call: ToolInvocation) -> ToolResult:
        raise OSError("no disk")

    async def after(call: EndedCall) -> ResultPatch | None:
        return ResultPatch(is_error=not call.result.is_error)

    events, _ = await play(Model(calls(A), says("hi")), Hooks(after_tool_call=after), ATool(work=work))
    assert (events.results[0].text, events.results[0].is_error) == ("no disk", False)


@pytest.mark.feature("A28")
async def test_what_is_prepared_for_the_next_turn_holds_from_the_next_request_and_a_stop_sees_it() -> None:
    other = Model(says("unused"), says("from the other one"))
    shout = ATool("shout")
    stops: list[str] = []

    async def prepare(turn: EndedTurn) -> NextTurn | None:
        if len(turn.tool_results) == 0:
            return None
        context = Context("be loud", turn.context.messages, registry(shout))
        return NextTurn(context=context, model=other, thinking_level="high")

    async def stop(turn: EndedTurn) -> bool:
        stops.append(turn.context.system)
        return False

    first = Model(calls(A))
    _, added = await play(first, Hooks(prepare_next_turn=prepare, should_stop_after_turn=stop))
    [request] = other.requests
    assert (request.system, request.options.thinking) == ("be loud", "high")
    assert [spec.name for spec in request.tools] == ["shout"]
    assert stops == ["be loud", "be loud"]
    assert [message.role for message in added] == ["user", "assistant", "toolResult", "assistant"]


FAILS = [
    "transform_context",
    "convert_to_llm",
    "prepare_next_turn",
    "should_stop_after_turn",
    "get_steering_messages",
    "get_follow_up_messages",
]


async def broken(*args: object) -> Any:
    raise RuntimeError("the hook broke")


@pytest.mark.feature("A68")
@pytest.mark.parametrize("hook", FAILS)
async def test_a_hook_that_fails_ends_the_loop(hook: str) -> None:
    with pytest.raises(RuntimeError, match="the hook broke"):
        await play(Model(says("hi")), Hooks(**{hook: broken}))


@pytest.mark.feature("A25")
@pytest.mark.feature("A26")
@pytest.mark.parametrize(("hook", "ran"), [("before_tool_call", []), ("after_tool_call", ["A"])])
async def test_a_failing_check_of_a_call_is_its_error_result_and_the_run_goes_on(hook: str, ran: list[str]) -> None:
    tool = ATool()
    events, _ = await play(Model(calls(A), says("hi")), Hooks(**{hook: broken}), tool)
    assert (events.results[0].is_error, tool.calls) == (True, ran)
    assert "the hook broke" in events.results[0].text
    assert events.names[-1] == "agent_end"


@pytest.mark.parametrize("hook", ["before_tool_call", "after_tool_call"])
async def test_a_check_that_finds_itself_superseded_ends_the_loop(hook: str) -> None:
    async def superseded(*args: object) -> Any:
        raise Superseded("another attempt is open")

    with pytest.raises(Superseded):
        await play(Model(calls(A), says("never")), Hooks(**{hook: superseded}))


async def stubborn(begun: asyncio.Event) -> None:
    """Keeps a cancellation to itself."""
    begun.set()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return


def hanging(hook: str, begun: asyncio.Event, answers: Any) -> Callable[..., Awaitable[Any]]:
    async def hang(given: object = None) -> Any:
        await stubborn(begun)
        return given if answers == "given" else answers

    return hang


@pytest.mark.feature("A63")
@pytest.mark.feature("A65")
@pytest.mark.feature("A66")
@pytest.mark.parametrize(
    ("hook", "answers", "tail"),
    [
        ("transform_context", "given", ["message_start assistant", "message_end assistant", "turn_end", "agent_end"]),
        ("before_tool_call", Block("Operation aborted"), ["message_end B", "turn_end", "agent_end"]),
        ("after_tool_call", None, ["message_end B", "turn_end", "agent_end"]),
        ("prepare_next_turn", None, ["turn_end", "agent_end"]),
        ("should_stop_after_turn", False, ["turn_end", "agent_end"]),
    ],
)
async def test_a_hook_cannot_keep_the_abort_to_itself(hook: str, answers: Any, tail: list[str]) -> None:
    begun, tool, model = asyncio.Event(), ATool(execution_mode="sequential"), Model(calls(A, B), says("never"))
    hooks = replace(Hooks(), **{hook: hanging(hook, begun, answers)})
    events = Events()
    loop = run_loop(Context("", (), registry(tool)), LoopConfig(model, Notes(), hooks), events, prompts=[HELLO])
    task = asyncio.create_task(loop)
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert events.names[-len(tail) :] == tail
    assert events.names.count("turn_start") == events.names.count("turn_end")
    assert model.calls == (0 if hook == "transform_context" else 1)
    assert "B" not in tool.calls or hook in ("prepare_next_turn", "should_stop_after_turn")


@pytest.mark.feature("A64")
async def test_a_prepared_call_does_not_start_after_the_abort() -> None:
    """The abort comes while the second call is checked; the first one is prepared by then."""
    begun, tool = asyncio.Event(), ATool()

    async def before(call: GatedCall) -> Block | None:
        if call.call.id == "B":
            await stubborn(begun)
        return None

    events = Events()
    config = LoopConfig(Model(calls(A, B), says("never")), Notes(), Hooks(before_tool_call=before))
    task = asyncio.create_task(run_loop(Context("", (), registry(tool)), config, events, prompts=[HELLO]))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tool.calls == []
    assert [result.text for result in events.results] == ["Operation aborted"] * 2


@pytest.mark.feature("A13")
async def test_an_update_that_is_being_heard_is_heard_before_the_end() -> None:
    heard: list[str] = []
    tasks: list[asyncio.Future[None]] = []

    async def listen(event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionUpdate):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        heard.append(event.type)

    async def work(call: ToolInvocation) -> ToolResult:
        tasks.append(asyncio.ensure_future(call.on_update(ToolResult.of("half"))))
        await asyncio.sleep(0)
        return ToolResult.of("whole")

    config = LoopConfig(Model(calls(A), says("hi")), Notes())
    await run_loop(Context("", (), registry(ATool(work=work))), config, listen, prompts=[HELLO])
    await asyncio.gather(*tasks)
    tools = [kind for kind in heard if kind.startswith("tool_")]
    assert tools == ["tool_execution_start", "tool_execution_update", "tool_execution_end"]


async def test_a_loop_that_has_nothing_to_answer_is_refused() -> None:
    config = LoopConfig(Model(says("hi")), Notes())
    with pytest.raises(ValueError, match="no message to answer"):
        await run_loop(Context("", (), registry()), config, Events())
    _, answered = await play(Model(says("hi")), Hooks())
    with pytest.raises(ValueError, match="ends with an answer"):
        await run_loop(Context("", answered, registry()), config, Events())
