"""What becomes of roles that no model knows."""

from typing import Any

import pytest

from pilothouse.agents.convert import convert_to_llm
from pilothouse.agents.messages import CustomMessage, Message, UserMessage, from_wire
from tests.agents.session.making import answer, result, text_of, user


def custom(role: str, **fields: Any) -> Message:
    return from_wire({"role": role, "timestamp": 5, **fields})


def test_the_roles_of_models_stay_as_they_are() -> None:
    messages: list[Message] = [user("one"), answer("two", "A"), result("A")]
    assert convert_to_llm(messages) == messages


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (custom("custom", customType="t", content="hi", display=False), "hi"),
        (custom("custom", customType="t", content=[{"type": "text", "text": "hi"}]), "hi"),
        (custom("branchSummary", summary="tried x", fromId="root"), "tried x"),
        (custom("compactionSummary", summary="did y", tokensBefore=3), "did y"),
        (custom("bashExecution", command="make", output="ok", exitCode=0), "ok"),
        (custom("bashExecution", command="make", output="", exitCode=2), "ended with exit code 2"),
        (custom("bashExecution", command="make", output="ok", cancelled=True, exitCode=2), "cancelled"),
        (custom("bashExecution", command="make", output="o", truncated=True, fullOutputPath="/out/x"), "/out/x"),
    ],
)
@pytest.mark.feature("A57")
def test_the_roles_of_the_harness_become_the_users(message: Message, text: str) -> None:
    [converted] = convert_to_llm([message])
    assert isinstance(converted, UserMessage)
    assert converted.timestamp == 5
    assert text in text_of(converted)


def test_a_command_is_shown_with_what_it_printed() -> None:
    [converted] = convert_to_llm([custom("bashExecution", command="make all", output="built", exitCode=1)])
    assert text_of(converted) == "I ran `make all`.\n```\nbuilt\n```\nIt ended with exit code 1."


@pytest.mark.parametrize(
    "message",
    [
        custom("bashExecution", command="make", output="ok", excludeFromContext=True),
        custom("note", content="hi"),
        custom("branchSummary"),
        CustomMessage(role="custom"),
    ],
)
def test_what_is_not_meant_for_models_or_cannot_be_read_is_left_out(message: Message) -> None:
    assert convert_to_llm([user("one"), message, user("two")]) == [user("one"), user("two")]
