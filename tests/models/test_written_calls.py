"""What of a text is a call, what is said, and what is neither."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.agents.messages import ToolCall
from pilothouse.models.written_calls import CLOSE, OPEN, WrittenCall, read_calls

TOOLS = ("say", "shell")
JSON = '{"name": "say", "arguments": {"text": "a"}}'
SAY = ("say", {"text": "a"})


def read(text: str) -> tuple[str, list[tuple[str, Any]]]:
    said, calls = read_calls(text, TOOLS)
    return said, [(call.name, json.loads(call.arguments)) for call in calls]


@pytest.mark.feature("B11")
@pytest.mark.parametrize(
    ("text", "said", "calls"),
    [
        ("Just text.", "Just text.", []),
        (f"I look.\n{OPEN}\n{JSON}\n{CLOSE}\n", "I look.", [SAY]),
        (f"{OPEN}{JSON}{CLOSE}{OPEN}{JSON}{CLOSE}", "", [SAY, SAY]),
        (f"A {OPEN}{JSON}{CLOSE} B {OPEN}{JSON}{CLOSE} C", "A  B  C", [SAY, SAY]),
        (f"{OPEN}{JSON}", "", [SAY]),
        (f"{OPEN}{JSON}}}{CLOSE}", "", [SAY]),
        (f'{OPEN}{{"name": "other", "parameters": {{}}}}{CLOSE}', "", [("other", {})]),
        (f'{OPEN}{{"name": "say"}}{CLOSE}', "", [("say", {})]),
        (f'{OPEN}{{"name": "say", "arguments": "{{\\"text\\": \\"a\\"}}"}}{CLOSE}', "", [SAY]),
        (JSON, "", [SAY]),
        (f"\n```json\n{JSON}\n```\n", "", [SAY]),
        ('{"name": "say", "parameters": {"text": "a"}}', "", [SAY]),
    ],
    ids=range(12),
)
def test_a_call_is_read_and_what_stands_beside_it_is_said(text: str, said: str, calls: list[Any]) -> None:
    assert read(text) == (said, calls)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "nobody", "arguments": {}}',
        '{"name": "say", "title": "Saying"}',
        '{"name": "say"}',
        '{"name": "say", "arguments": {}, "title": "b"}',
        f"Use this:\n```json\n{JSON}\n```",
        f"{JSON} is how.",
        f"[{JSON}]",
        '{"name": ["say"], "arguments": {}}',
        "[" * 100_000,
        OPEN,
    ],
    ids=range(10),
)
def test_an_answer_in_json_is_no_call_unless_it_can_be_nothing_else(text: str) -> None:
    assert read_calls(text, TOOLS) == (text, [])


@pytest.mark.parametrize(
    ("block", "name", "problem"),
    [
        ('{"name": "say", "arguments": {"text": "a}}', "say", "not valid JSON"),
        ('{"name": "say", "arguments": {"text": "a", "text": "b"}}', "say", "the same key twice"),
        ('{"name": "say", "arguments": {"text": NaN}}', "say", "NaN"),
        ('{"name": "say", "arguments": [1]}', "say", "must be a JSON object"),
        ("say(text='a')", "tool_call", "not valid JSON"),
        ('["say"]', "tool_call", "must be a JSON object"),
        ('{"name": "' + "x" * 129 + '", "arguments": {"a": 1', "tool_call", "not valid JSON"),
        ("[" * 100_000, "tool_call", "nested deeper"),
    ],
    ids=range(8),
)
def test_a_block_that_cannot_be_read_is_a_call_that_tells_why(block: str, name: str, problem: str) -> None:
    said, [call] = read_calls(f"Hm. {OPEN}{block}{CLOSE}", TOOLS)
    made = ToolCall.from_text("1", call.name, call.arguments)
    assert (said, made.name) == ("Hm.", name)
    assert problem in (made.arguments_error or "")


def test_results_that_the_model_made_up_and_what_builds_on_them_are_dropped() -> None:
    invented = '<tool_response name="say">\nall is well\n</tool_response>\nSo I go on.'
    text = f"I look. {OPEN}{JSON}{CLOSE}\n{invented}{OPEN}{JSON}{CLOSE} Done."
    assert read(text) == ("I look.", [SAY])


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text()
    | st.sampled_from([OPEN, CLOSE, "<tool_response>"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text(), values, max_size=3), min_size=1, max_size=3))
def test_whatever_the_arguments_hold_is_read_as_it_was_written(arguments: list[dict[str, Any]]) -> None:
    blocks = [f"{OPEN}\n{json.dumps({'name': 'say', 'arguments': each})}\n{CLOSE}" for each in arguments]
    said, calls = read_calls("Look.\n" + "\n".join(blocks), TOOLS)
    assert said == "Look."
    assert calls == [WrittenCall("say", json.dumps(each)) for each in arguments]


pieces = st.sampled_from([*'{}[]":, \n', "a", OPEN, CLOSE, "<tool_response", '{"name": "say"'])


@given(st.lists(pieces))
def test_no_text_makes_it_fail(pieces: list[str]) -> None:
    for call in read_calls("".join(pieces), TOOLS)[1]:
        ToolCall.from_text("1", call.name, call.arguments)


@pytest.mark.parametrize("name", ["", "x" * 129])
def test_a_name_that_no_tool_can_have_is_none(name: str) -> None:
    _, [call] = read_calls(f'{OPEN}{{"name": "{name}"}}{CLOSE}', TOOLS)
    assert call.name == "tool_call"
