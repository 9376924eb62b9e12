"""The OpenAI-compatible provider against a small real language model in llama.cpp's server.

What the model says is of no account here: only that streaming, usage, stop reasons and constrained output work.
"""

import json

import pytest

from pilothouse.agents.messages import ToolCall
from pilothouse.models.http_provider import HttpProvider
from pilothouse.models.provider import ModelOptions
from tests.models.dialects import CHAT_DIALECT
from tests.models.wire import collect, done, request, types

pytestmark = pytest.mark.peer("smollm")

CALL = {
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


async def test_a_real_model_streams_an_answer(provider: HttpProvider) -> None:
    options = ModelOptions(temperature=0, max_output_tokens=40)
    events = await collect(provider, request("What is the capital of France?", options=options))
    message = done(events).message
    assert types(events).count("text_delta") > 2
    assert message.text.strip()
    assert message.usage.output > 2
    assert message.usage.input > 5
    assert message.usage.total_tokens == message.usage.input + message.usage.output + message.usage.cache_read


async def test_the_output_limit_is_kept_and_reported(provider: HttpProvider) -> None:
    options = ModelOptions(temperature=0, max_output_tokens=5)
    message = done(await collect(provider, request("Write a long story about a fox.", options=options))).message
    assert message.stop_reason == "length"
    assert message.usage.output == 5


async def test_a_schema_constrained_answer_is_a_usable_tool_call(provider: HttpProvider) -> None:
    options = ModelOptions(temperature=0, max_output_tokens=60)
    asked = request("Write the file a.md.", options=options, response_schema=CALL)
    answer = json.loads(done(await collect(provider, asked)).message.text)
    call = ToolCall.from_text("call_0_0", answer["name"], json.dumps(answer["arguments"]))
    assert call.name == "file_write"
    assert call.arguments["lines"] in (1, 2, 3)
