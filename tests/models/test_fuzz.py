"""Whatever a server sends, an answer or a typed failure comes of it, never an exception."""

import copy
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.agents.messages import from_wire, to_wire
from pilothouse.models.builder import MessageBuilder, Origin
from pilothouse.models.failures import CallError
from tests.models import dialects as d
from tests.models.wire import call_delta, delta, request

REASONING: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "cipher"}
CALL: dict[str, Any] = {"type": "function_call", "call_id": "c", "name": "t"}

STREAMS: Mapping[d.Dialect, Sequence[Mapping[str, Any]]] = {
    d.CHAT_DIALECT: [
        delta(role="assistant", content=""),
        delta(reasoning_content="hm"),
        delta(content="Grüße"),
        call_delta(0, '{"a": 1', id="c", name="t"),
        call_delta(0, "}"),
        delta("tool_calls"),
        {"choices": [], "usage": {"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": 1}}},
    ],
    d.RESPONSES_DIALECT: [
        d.item(0, type="reasoning", id="rs_1"),
        d.piece(0, "reasoning_summary_text", "hm"),
        d.item(0, done=True, **REASONING),
        d.item(1, type="message", role="assistant", content=[]),
        d.piece(1, "output_text", "Grüße"),
        d.item(1, done=True, type="message", content=[{"type": "output_text", "text": "Grüße"}]),
        d.item(2, **CALL, arguments=""),
        d.piece(2, "function_call_arguments", '{"a": 1}'),
        d.item(2, done=True, **CALL, arguments='{"a": 1}'),
        d.response(usage={"input_tokens": 3, "input_tokens_details": {"cached_tokens": 1}}),
    ],
    d.MESSAGES_DIALECT: [
        d.message_start(input_tokens=3),
        d.block(0, type="thinking", thinking="", signature=""),
        d.grow(0, "thinking_delta", thinking="hm"),
        d.grow(0, "signature_delta", signature="sig"),
        d.close(0),
        d.block(1, type="redacted_thinking", data="cipher"),
        d.block(2, type="text", text=""),
        d.grow(2, "text_delta", text="Grüße"),
        d.block(3, type="tool_use", id="c", name="t", input={}),
        d.grow(3, "input_json_delta", partial_json='{"a": 1}'),
        *d.message_end("tool_use", output_tokens=5),
    ],
}
VALUES = st.sampled_from([None, True, -1, 2**70, 1.5, float("inf"), "", "x", "\ud800", "\udc00", [], [1], {}, {"a": 1}])


@st.composite
def streams(draw: st.DrawFn, spoken: d.Dialect) -> list[Any]:
    """A good stream with some events left out, repeated or elsewhere, and some values replaced or taken out."""
    good = STREAMS[spoken]
    order = [*range(len(good)), *draw(st.lists(st.integers(0, len(good) - 1), max_size=3))]
    for _ in range(draw(st.integers(0, 2))):
        order.pop(draw(st.integers(0, len(order) - 1)))
    if draw(st.booleans()):
        order = draw(st.permutations(order))
    stream = [copy.deepcopy(good[at]) for at in order]
    for _ in range(draw(st.integers(0, 3))):
        spoil(draw, draw(st.sampled_from(stream)))
    return stream


def spoil(draw: st.DrawFn, event: Any) -> None:
    """Replaces or takes out one value, at any depth."""
    container = event
    while container:
        keys = list(container) if isinstance(container, dict) else list(range(len(container)))
        key = draw(st.sampled_from(keys))
        if isinstance(container[key], dict | list) and container[key] and draw(st.booleans()):
            container = container[key]
        elif isinstance(container, dict) and draw(st.booleans()):
            del container[key]
            return
        else:
            container[key] = copy.deepcopy(draw(VALUES))
            return


@pytest.mark.parametrize("spoken", d.DIALECTS, ids=lambda spoken: spoken.wire.api)
@settings(max_examples=300)
@given(data=st.data())
def test_any_stream_is_read_or_refused(data: st.DataObject, spoken: d.Dialect) -> None:
    builder = MessageBuilder(Origin(spoken.wire.api, "p", "m"), request())
    reader = spoken.wire.reader(builder, request())
    with suppress(CallError):
        for event in data.draw(streams(spoken)):
            reader.read(json.dumps(event))
        reader.finish()
    check_storable(to_wire(builder.done("stop").message))


def test_the_streams_are_good_before_they_are_spoiled() -> None:
    for spoken, stream in STREAMS.items():
        builder = MessageBuilder(Origin(spoken.wire.api, "p", "m"), request())
        reader = spoken.wire.reader(builder, request())
        for event in stream:
            reader.read(json.dumps(event))
        reader.finish()
        message = builder.done("toolUse").message
        kinds = [block.type for block in message.content]
        assert kinds[0] == "thinking", spoken.wire.api
        assert kinds[-2:] == ["text", "toolCall"], spoken.wire.api
        assert message.tool_calls[0].arguments == {"a": 1}


def check_storable(wire: dict[str, Any]) -> None:
    """What a session must be able to do with every message: write it as UTF-8, and read it again."""
    text = json.dumps(wire, ensure_ascii=False).encode()
    assert to_wire(from_wire(json.loads(text))) == wire
