"""Messages survive the way to JSON and back, and what is no message is refused by the name of its field."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.agents.arguments import ArgumentsError, parse_arguments
from pilothouse.agents.messages import (
    AssistantMessage,
    Cost,
    CustomMessage,
    ImageContent,
    Message,
    MessageError,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
    from_wire,
    to_wire,
)

texts = st.text(st.characters(exclude_categories=["Cs"]))
stamps = st.integers(0, 2**53)
numbers = st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, values, max_size=4)
text_blocks = st.builds(TextContent, text=texts)
images = st.builds(ImageContent, media_type=texts, data=texts)
counts = st.integers(0, 2**40)
costs = st.builds(Cost, input=st.floats(0, 9), output=st.floats(0, 9), total=st.floats(0, 9))
usages = st.builds(Usage, input=counts, output=counts, cache_read=counts, total_tokens=counts, cost=costs)
thoughts = st.builds(ThinkingContent, thinking=texts, thinking_signature=st.none() | texts, redacted=st.booleans())
calls = st.builds(ToolCall, id=texts, name=texts, arguments=objects, arguments_text=st.none() | texts)
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(UserMessage, content=st.tuples(text_blocks | images), timestamp=stamps),
    st.builds(
        AssistantMessage,
        content=st.lists(text_blocks | calls | thoughts, max_size=4).map(tuple),
        api=texts,
        provider=texts,
        model=texts,
        usage=usages,
        stop_reason=st.sampled_from(["stop", "length", "toolUse", "error", "aborted"]),
        error_message=st.none() | texts,
        error_code=st.sampled_from([None, "F-DEP"]),
        timestamp=stamps,
    ),
    st.builds(
        ToolResultMessage,
        tool_call_id=texts,
        tool_name=texts,
        content=st.lists(text_blocks | images, max_size=3).map(tuple),
        details=values,
        is_error=st.booleans(),
        usage=st.none() | usages,
        added_tool_names=st.none() | st.tuples(texts),
        timestamp=stamps,
    ),
)
custom = objects.map(lambda fields: {**fields, "role": "bashExecution"})

USER = {"role": "user", "content": [{"type": "text", "text": "Build a web app"}], "timestamp": 1700000000000}
USAGE = {
    "input": 10,
    "output": 5,
    "cacheRead": 2,
    "cacheWrite": 1,
    "totalTokens": 18,
    "cost": {"input": 0.1, "output": 0.2, "cacheRead": 0.0, "cacheWrite": 0.0, "total": 0.3},
}
ASSISTANT = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "hm", "thinkingSignature": "abc"},
        {"type": "thinking", "thinking": "", "thinkingSignature": "xyz", "redacted": True},
        {"type": "text", "text": "I will look."},
        {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a", "deep": {"x": [1, None]}}},
    ],
    "api": "openai-completions",
    "provider": "openai",
    "model": "m",
    "usage": USAGE,
    "stopReason": "toolUse",
    "timestamp": 1700000000001,
}
RESULT = {
    "role": "toolResult",
    "toolCallId": "c1",
    "toolName": "read",
    "content": [{"type": "text", "text": "ok"}, {"type": "image", "mediaType": "image/png", "data": "AAAA"}],
    "details": {"bytes": 2, "cut": None},
    "isError": False,
    "usage": USAGE,
    "addedToolNames": ["write"],
    "timestamp": 1700000000002,
}


@pytest.mark.feature("A3")
@given(messages)
def test_a_message_survives_the_way_to_json_and_back(message: Message) -> None:
    assert from_wire(json.loads(json.dumps(to_wire(message)))) == message


@pytest.mark.feature("A3")
@given(custom)
def test_a_custom_message_is_kept_to_the_last_field(wire: dict[str, Any]) -> None:
    message = from_wire(wire)
    assert isinstance(message, CustomMessage)
    assert to_wire(message) == wire


@given(st.sampled_from([USER, ASSISTANT, RESULT]), texts, values)
def test_fields_of_later_versions_are_written_back(wire: dict[str, Any], name: str, value: Any) -> None:
    grown = {f"x-{name}": value, **wire}
    assert to_wire(from_wire(grown)) == grown


@pytest.mark.parametrize("wire", [USER, ASSISTANT, RESULT], ids=["user", "assistant", "toolResult"])
def test_the_json_form_is_that_of_the_harness(wire: dict[str, Any]) -> None:
    assert to_wire(from_wire(wire)) == wire


def test_an_image_is_read_under_both_names_and_written_under_one() -> None:
    old = {**USER, "content": [{"type": "image", "mimeType": "image/png", "data": "AAAA"}]}
    assert to_wire(from_wire(old))["content"] == [{"type": "image", "mediaType": "image/png", "data": "AAAA"}]


def test_python_names_are_not_read_from_json() -> None:
    with pytest.raises(MessageError, match=r"^stopReason: Field required"):
        from_wire({k: v for k, v in ASSISTANT.items() if k != "stopReason"} | {"stop_reason": "stop"})


@pytest.mark.parametrize(
    ("wire", "complaint"),
    [
        ({}, "role: "),
        ({"role": ["user"]}, "role: "),
        ({"role": ""}, "role: "),
        ({**USER, "content": "text"}, "content: "),
        ({**USER, "content": [{"type": "zip"}]}, "content.0: "),
        ({**USER, "content": [{"type": "text"}]}, "content.0.text.text: "),
        ({**USER, "timestamp": "soon"}, "timestamp: "),
        ({**ASSISTANT, "stopReason": "tired"}, "stopReason: "),
        ({**ASSISTANT, "usage": {**USAGE, "input": -1}}, "usage.input: "),
        ({**RESULT, "isError": None}, "isError: "),
    ],
)
def test_what_is_no_message_is_refused_by_field(wire: dict[str, Any], complaint: str) -> None:
    with pytest.raises(MessageError) as caught:
        from_wire(wire)
    assert str(caught.value).startswith(complaint)


def test_a_standard_role_is_no_custom_one() -> None:
    with pytest.raises(ValueError, match="'user' is a standard role"):
        CustomMessage(role="user")


@given(objects)
def test_arguments_that_a_model_wrote_are_read(arguments: dict[str, Any]) -> None:
    call = ToolCall.from_text("c", "t", json.dumps(arguments))
    assert (call.arguments, call.arguments_text, call.arguments_error) == (arguments, None, None)


def test_no_arguments_are_an_empty_object() -> None:
    assert ToolCall.from_text("c", "t", " \n").arguments == {}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"a": ', "not valid JSON: Expecting value at character 6"),
        ("[1]", "must be a JSON object, not an array"),
        ("null", "must be a JSON object, not null"),
        ('"{}"', "must be a JSON object, not a string"),
        ("true", "must be a JSON object, not a boolean"),
        ("7", "must be a JSON object, not a number"),
        ('{"a": 1, "a": 2}', "name the same key twice"),
        ('{"a": NaN}', "hold NaN"),
        ('{"a": -Infinity}', "hold -Infinity"),
        (r'{"a": "\ud800"}', "half of a surrogate pair"),
        ('{"a": ' * 101 + "1" + "}" * 101, "deeper than 100 levels"),
        ("[" * 100_000, "deeper than 100 levels"),
        ('{"a": ' + "9" * 5000 + "}", "a number that is too long"),
    ],
)
def test_unusable_arguments_are_kept_with_the_reason(text: str, complaint: str) -> None:
    call = ToolCall.from_text("c", "t", text)
    assert (call.arguments, call.arguments_text) == ({}, text)
    assert complaint in str(call.arguments_error)
    with pytest.raises(ArgumentsError):
        parse_arguments(text)


def test_a_hundred_levels_are_still_read() -> None:
    text = '{"a": ' * 100 + "1" + "}" * 100
    assert ToolCall.from_text("c", "t", text).arguments_error is None
