"""The JSON form of the loop's events."""

import json

from pilothouse.agents.context import Context
from pilothouse.agents.loop import LoopConfig, run_loop
from pilothouse.agents.messages import UserMessage
from pilothouse.tools.tool import ToolInvocation, ToolResult
from tests.agents.doubles import ATool, Events, Model, Notes, calls, registry, says


async def test_every_event_has_the_documented_fields() -> None:
    async def work(call: ToolInvocation) -> ToolResult:
        await call.on_update(ToolResult.of("half"))
        return ToolResult.of("whole", {"k": 1})

    events = Events()
    config = LoopConfig(provider=Model(calls(("A", "say", {"text": "a"})), says("done")), recorder=Notes())
    context = Context("", (), registry(ATool(work=work)))
    await run_loop(context, config, events, prompts=(UserMessage.of("go", 1),))
    wires = [json.loads(json.dumps(event.to_wire())) for event in events.seen]
    fields = {wire["type"]: set(wire) - {"type"} for wire in wires}
    assert fields == {
        "agent_start": set(),
        "turn_start": set(),
        "message_start": {"message"},
        "message_update": {"message", "assistantMessageEvent"},
        "message_end": {"message"},
        "tool_execution_start": {"toolCallId", "toolName", "args"},
        "tool_execution_update": {"toolCallId", "toolName", "args", "partialResult"},
        "tool_execution_end": {"toolCallId", "toolName", "result", "isError"},
        "turn_end": {"message", "toolResults"},
        "agent_end": {"messages"},
    }
    [end] = [wire for wire in wires if wire["type"] == "tool_execution_end"]
    assert end["result"] == {"content": [{"type": "text", "text": "whole"}], "details": {"k": 1}}
    [result] = next(wire["toolResults"] for wire in wires if wire["type"] == "turn_end")
    assert result["toolCallId"] == "A"
    kinds = {wire["assistantMessageEvent"]["type"] for wire in wires if wire["type"] == "message_update"}
    assert kinds == {"toolcall_start", "toolcall_delta", "toolcall_end", "text_start", "text_delta", "text_end"}
