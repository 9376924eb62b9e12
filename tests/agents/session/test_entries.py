"""Entries read like the agent harness documents them, and keep what this version does not know."""

from typing import Any

import pytest

from pilothouse.agents.session import (
    ActiveToolsChangeBody,
    Body,
    BranchSummaryBody,
    CompactionBody,
    CustomBody,
    CustomMessageBody,
    LabelBody,
    LeafBody,
    MessageBody,
    ModelChangeBody,
    SessionError,
    SessionInfoBody,
    ThinkingLevelChangeBody,
    read_body,
)
from pilothouse.agents.session.entries import BODIES
from tests.agents.session.making import USED, user

USAGE = USED.model_dump(mode="json", by_alias=True)
SAID = {"role": "user", "content": [{"type": "text", "text": "hi"}], "timestamp": 1}
DETAILS = {"readFiles": ["a"], "modifiedFiles": []}

EACH = {
    "A44": (MessageBody(message=user("hi")), {"message": SAID}),
    "A45": (ModelChangeBody(provider="acme", model_id="large"), {"provider": "acme", "modelId": "large"}),
    "A46": (ThinkingLevelChangeBody(thinking_level="high"), {"thinkingLevel": "high"}),
    "A47": (ActiveToolsChangeBody(active_tool_names=("say",)), {"activeToolNames": ["say"]}),
    "A48": (
        CompactionBody(summary="s", tokens_before=9, first_kept_entry_id="e", details=DETAILS, usage=USED),
        {"summary": "s", "tokensBefore": 9, "firstKeptEntryId": "e", "details": DETAILS, "usage": USAGE},
    ),
    "A48 tail": (
        CompactionBody(summary="s", tokens_before=9, retained_tail=(user("hi"),), from_hook=True),
        {"summary": "s", "tokensBefore": 9, "retainedTail": [SAID], "fromHook": True},
    ),
    "A49": (BranchSummaryBody(summary="s", from_id="root"), {"summary": "s", "fromId": "root"}),
    "A50": (CustomBody(custom_type="t", data={"x": 1}), {"customType": "t", "data": {"x": 1}}),
    "A51": (
        CustomMessageBody(custom_type="t", content="hi", display=False),
        {"customType": "t", "content": "hi", "display": False},
    ),
    "A52": (LabelBody(target_id="e", label="l"), {"targetId": "e", "label": "l"}),
    "A53": (LeafBody(target_id=None), {"targetId": None}),
    "A54": (SessionInfoBody(name="n"), {"name": "n"}),
}

each_type = pytest.mark.parametrize(
    ("body", "wire"), [pytest.param(*case, id=row, marks=pytest.mark.feature(row[:3])) for row, case in EACH.items()]
)


def test_every_type_has_a_case() -> None:
    assert {body.type for body, _ in EACH.values()} == set(BODIES)


@each_type
def test_the_json_form_is_that_of_the_harness(body: Body, wire: dict[str, Any]) -> None:
    assert body.to_wire() == wire
    assert read_body(body.type, wire) == body


@each_type
def test_fields_of_later_versions_are_written_back(body: Body, wire: dict[str, Any]) -> None:
    read = read_body(body.type, {**wire, "x-new": {"y": [1]}})
    assert read is not None
    assert read.to_wire() == {**wire, "x-new": {"y": [1]}}


@each_type
def test_python_names_are_not_read_from_json(body: Body, wire: dict[str, Any]) -> None:
    names = {"modelId": "model_id", "thinkingLevel": "thinking_level", "customType": "custom_type", "fromId": "from_id"}
    spelled = {names.get(name, name): value for name, value in wire.items()}
    if spelled != wire:
        with pytest.raises(SessionError, match="Field required"):
            read_body(body.type, spelled)


def test_an_unknown_type_has_no_body() -> None:
    assert read_body("hologram", {"message": 1}) is None


@pytest.mark.parametrize(
    ("kind", "fields", "complaint"),
    [
        ("message", {}, "message: Field required"),
        ("message", {"message": 3}, "message: Value error, a message must be an object"),
        ("message", {"message": {"role": "user"}}, "message: Value error, content: Field required"),
        ("leaf", {}, "targetId: Field required"),
        ("compaction", {"summary": "s"}, "tokensBefore: Field required"),
        ("compaction", {"summary": "s", "tokensBefore": 1, "retainedTail": [{}]}, "retainedTail.0: "),
        ("active_tools_change", {"activeToolNames": "say"}, "activeToolNames: "),
    ],
)
def test_what_is_no_body_is_refused_by_field(kind: str, fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SessionError) as caught:
        read_body(kind, fields)
    assert caught.value.code == "invalid_entry"
    assert str(caught.value).startswith(complaint)
