"""The order of the loop's events and hooks, as tables: one row a situation, one word an event."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from pilothouse.agents.context import Context
from pilothouse.agents.events import AgentEvent, MessageUpdate
from pilothouse.agents.hooks import Block, EndedCall, EndedTurn, GatedCall, Hooks, NextTurn, ResultPatch
from pilothouse.agents.loop import LoopConfig, run_loop
from pilothouse.agents.messages import Message, UserMessage
from pilothouse.tools.tool import ToolInvocation, ToolResult
from tests.agents.doubles import ATool, Events, Model, Notes, calls, registry, says

A = ("A", "say", {"text": "a"})
B = ("B", "say", {"text": "b"})
X: tuple[str, str, dict[str, Any]] = ("X", "nope", {})

WORDS = {"message_start": "ms", "message_end": "me", "tool_execution_start": "start", "tool_execution_end": "end"}


def said(text: str) -> UserMessage:
    return UserMessage.of(text, 1)


@dataclass
class Line:
    """Events and hooks in one list, as they come. Each hook notes itself, and does what the row says."""

    steering: list[list[str]] = field(default_factory=list)
    follow_ups: list[list[str]] = field(default_factory=list)
    block: str = ""
    stop: bool = False
    seen: list[str] = field(default_factory=list)

    async def hear(self, event: AgentEvent) -> None:
        if not isinstance(event, MessageUpdate):
            kind, *who = _events_name(event).split()
            self.seen.append(" ".join([WORDS.get(kind, kind), *who]))

    async def transform(self, messages: Sequence[Message]) -> Sequence[Message]:
        self.seen.append("transform")
        return messages

    async def before(self, call: GatedCall) -> Block | None:
        self.seen.append(f"before {call.call.id}")
        return Block() if call.call.id in self.block.split() else None

    async def after(self, call: EndedCall) -> ResultPatch | None:
        self.seen.append(f"after {call.call.id}")
        return None

    async def prepare(self, turn: EndedTurn) -> NextTurn | None:
        self.seen.append("prepare")
        return None

    async def should_stop(self, turn: EndedTurn) -> bool:
        self.seen.append("stop?")
        return self.stop

    async def steer(self) -> Sequence[Message]:
        self.seen.append("steer?")
        return [said(text) for text in self.steering.pop(0)] if self.steering else []

    async def follow_up(self) -> Sequence[Message]:
        self.seen.append("follow-up?")
        return [said(text) for text in self.follow_ups.pop(0)] if self.follow_ups else []

    @property
    def hooks(self) -> Hooks:
        return Hooks(
            transform_context=self.transform,
            before_tool_call=self.before,
            after_tool_call=self.after,
            prepare_next_turn=self.prepare,
            should_stop_after_turn=self.should_stop,
            get_steering_messages=self.steer,
            get_follow_up_messages=self.follow_up,
        )


def _events_name(event: AgentEvent) -> str:
    [name] = Events([event]).names
    return name


USER = "ms user | me user"
ASKED = "transform | ms assistant | me assistant"
OPENING = f"agent_start | turn_start | {USER} | steer? | {ASKED}"
AGAIN = f"turn_start | {ASKED} | turn_end"
ENDING = "prepare | stop? | steer? | follow-up? | agent_end"
RAN_A = "start A | before A | after A | end A | ms A | me A | turn_end"
TWO = "start A | before A | start B | before B"


@pytest.mark.parametrize(
    ("row", "turns", "line", "expected"),
    [
        pytest.param(
            "a text answer",
            [says("hi")],
            Line(),
            f"{OPENING} | turn_end | {ENDING}",
            marks=[pytest.mark.feature(row) for row in ("A8", "A9", "A10", "A21", "A29", "A30")],
        ),
        pytest.param(
            "one tool, and a stop after its turn: no queue is asked",
            [calls(A)],
            Line(stop=True, steering=[[], ["never"]], follow_ups=[["never"]]),
            f"{OPENING} | {RAN_A} | prepare | stop? | agent_end",
            marks=[pytest.mark.feature("A27"), pytest.mark.feature("A28")],
        ),
        pytest.param(
            "a tool, then an answer: follow-ups are asked at the end only",
            [calls(A), says("hi")],
            Line(),
            f"{OPENING} | {RAN_A} | prepare | stop? | steer? | {AGAIN} | {ENDING}",
            marks=[pytest.mark.feature("A30"), pytest.mark.feature("A41")],
        ),
        pytest.param(
            "a blocked call ends before its sibling runs, and answers in its place",
            [calls(A, B), says("hi")],
            Line(block="B"),
            f"{OPENING} | {TWO} | end B | after A | end A | ms A | me A | ms B | me B | turn_end"
            f" | prepare | stop? | steer? | {AGAIN} | {ENDING}",
            marks=[pytest.mark.feature("A12"), pytest.mark.feature("A25"), pytest.mark.feature("A26")],
        ),
        pytest.param(
            "an unknown tool passes no hook",
            [calls(X), says("hi")],
            Line(),
            f"{OPENING} | start X | end X | ms X | me X | turn_end | prepare | stop? | steer? | {AGAIN} | {ENDING}",
            marks=[pytest.mark.feature("A36")],
        ),
        pytest.param(
            "steering before the first request joins the first turn",
            [says("hi")],
            Line(steering=[["s"]]),
            f"agent_start | turn_start | {USER} | steer? | {USER} | {ASKED} | turn_end | {ENDING}",
            marks=[pytest.mark.feature("A29")],
        ),
        pytest.param(
            "steering goes before a follow-up, after all tools of the turn",
            [calls(A), says("hi"), says("bye")],
            Line(steering=[[], ["s", "t"]], follow_ups=[["f"]]),
            f"{OPENING} | {RAN_A} | prepare | stop? | steer? | turn_start | {USER} | {USER} | {ASKED} | turn_end"
            f" | prepare | stop? | steer? | follow-up? | turn_start | {USER} | {ASKED} | turn_end | {ENDING}",
            marks=[pytest.mark.feature("A31"), pytest.mark.feature("A32")],
        ),
        pytest.param(
            "a failed answer ends the run: no hook and no queue is asked",
            [{"text": "I th", "error": {"message": "overloaded"}}],
            Line(steering=[[], ["never"]], follow_ups=[["never"]]),
            f"{OPENING} | turn_end | agent_end",
            marks=[pytest.mark.feature("A68")],
        ),
    ],
)
async def test_events_and_hooks_come_in_this_order(
    row: str, turns: Sequence[Mapping[str, Any]], line: Line, expected: str
) -> None:
    config = LoopConfig(Model(*turns), Notes(), line.hooks)
    await run_loop(Context("", (), registry()), config, line.hear, prompts=[said("go")])
    assert line.seen == expected.split(" | "), row


@pytest.mark.feature("A29")
@pytest.mark.feature("A40")
async def test_steering_goes_on_where_a_whole_batch_wants_to_end() -> None:
    async def work(call: ToolInvocation) -> ToolResult:
        return ToolResult(ToolResult.of("ok").content, terminate=True)

    model, line = Model(calls(A), says("hi")), Line(steering=[[], ["wait"]])
    config = LoopConfig(model, Notes(), line.hooks)
    await run_loop(Context("", (), registry(ATool(work=work))), config, line.hear, prompts=[said("go")])
    assert model.calls == 2


@pytest.mark.feature("A11")
@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        (says("short"), ["text_start 0", "text_delta 0", "text_end 0"]),
        (
            {"thinking": "hm", "text": "so", "toolCalls": [{"id": "A", "name": "say", "argumentsText": "{"}]},
            [f"thinking_{part} 0" for part in ("start", "delta", "end")]
            + [f"text_{part} 1" for part in ("start", "delta", "end")]
            + [f"toolcall_{part} 2" for part in ("start", "delta", "end")],
        ),
    ],
)
async def test_each_block_of_an_answer_starts_grows_and_ends(turn: dict[str, Any], expected: list[str]) -> None:
    events = Events()
    await run_loop(
        Context("", (), registry()), LoopConfig(Model(turn, says("hi")), Notes()), events, prompts=[said("")]
    )
    updates = [event for event in events.seen if isinstance(event, MessageUpdate)]
    seen = [f"{update.delta.type} {update.delta.content_index}" for update in updates]
    assert seen[: len(expected)] == expected
