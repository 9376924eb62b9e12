"""The three formats against a small real language model in llama.cpp's server.

What the model says is of no account here: only that streaming, usage, stop reasons and constrained output work.
"""

import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest

from pilothouse.agents.context import Context
from pilothouse.agents.events import AgentEvent
from pilothouse.agents.loop import LoopConfig, run_loop
from pilothouse.agents.messages import ToolCall, ToolResultMessage, UserMessage
from pilothouse.models.http_provider import HttpProvider
from pilothouse.models.provider import Done, ModelEvent, ModelOptions, ModelRequest
from pilothouse.tools.registry import ToolRegistry
from pilothouse.tools.tool import ToolInvocation, ToolResult
from tests.agents.doubles import ATool, Notes
from tests.models.dialects import CHAT_DIALECT, RESPONSES_DIALECT, Dialect
from tests.models.wire import collect, done, request, types

pytestmark = pytest.mark.peer("smollm")

CALL: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"const": "file_write"},
        "arguments": {
            "type": "object",
            "properties": {"path": {"type": "string", "maxLength": 12}, "lines": {"enum": [1, 2, 3]}},
            "required": ["path", "lines"],
            "additionalProperties": False,
        },
    },
    "required": ["name", "arguments"],
    "additionalProperties": False,
}


@pytest.fixture
def provider(smollm: str) -> HttpProvider:
    return CHAT_DIALECT.provider(smollm, "smollm2")


class CallByText:
    """Makes a tool call of the text of the first answer, whose form the schema forces: the model is too small to call
    tools by itself. What the loop sees is a call like any other."""

    def __init__(self, provider: HttpProvider) -> None:
        self.api, self.provider, self.model = provider.api, provider.provider, provider.model
        self._real = provider

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        first = request.turn == 0
        schema = CALL if first else None
        async for event in self._real.stream(replace(request, tools=(), response_schema=schema)):
            if first and isinstance(event, Done):
                written = json.loads(event.message.text)
                call = ToolCall.from_text("call_0_0", written["name"], json.dumps(written["arguments"]))
                update = {"content": (call,), "stop_reason": "toolUse"}
                yield Done(event.message.model_copy(update=update))
            else:
                yield event


async def test_the_loop_runs_the_call_of_a_real_model_and_asks_it_again(provider: HttpProvider) -> None:
    tool = ATool("file_write", parameters=CALL["properties"]["arguments"], work=written)
    options = ModelOptions(temperature=0, max_output_tokens=60)
    context = Context("You write files.", [], ToolRegistry([tool]))
    config = LoopConfig(CallByText(provider), Notes(), options=options)
    added = await run_loop(context, config, ignore, prompts=[UserMessage.of("Write the file a.md.", timestamp=1)])
    assert [message.role for message in added] == ["user", "assistant", "toolResult", "assistant"]
    assert tool.calls == ["call_0_0"]
    assert isinstance(added[2], ToolResultMessage)
    assert not added[2].is_error


async def written(call: ToolInvocation) -> ToolResult:
    return ToolResult.of(f"wrote {call.arguments['lines']} lines")


async def ignore(event: AgentEvent) -> None:
    pass


async def test_a_real_model_streams_an_answer(smollm: str, dialect: Dialect) -> None:
    provider = dialect.provider(smollm, "smollm2")
    options = ModelOptions(temperature=0, max_output_tokens=40)
    events = await collect(provider, request("What is the capital of France?", options=options))
    message = done(events).message
    assert types(events).count("text_delta") > 2
    assert message.text.strip()
    assert message.usage.output > 2
    assert message.usage.input + message.usage.cache_read > 5
    assert message.usage.total_tokens == message.usage.input + message.usage.output + message.usage.cache_read


async def test_the_output_limit_is_kept_and_reported(smollm: str, dialect: Dialect) -> None:
    options = ModelOptions(temperature=0, max_output_tokens=5)
    provider = dialect.provider(smollm, "smollm2")
    message = done(await collect(provider, request("Write a long story about a fox.", options=options))).message
    assert message.usage.output == 5
    if dialect is not RESPONSES_DIALECT:  # there, llama.cpp calls every answer completed
        assert message.stop_reason == "length"
