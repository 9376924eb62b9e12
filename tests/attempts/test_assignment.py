"""An assignment's JSON text: what the operator writes is what the agent's container reads."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.attempts.assignment import Assignment, AssignmentRefused
from pilothouse.records.values import ValueRefused
from pilothouse.workflows.work import AgentWork

numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
objects = st.dictionaries(st.text(), values, max_size=3)
specs = st.dictionaries(st.text(), objects, max_size=2)
works = st.builds(
    AgentWork,
    st.text(),
    objects,
    st.text(),
    objects,
    st.none() | st.floats(0.1, 1e6),
    st.none() | st.text(),
    specs,
)
prompts = st.dictionaries(st.text(), st.text(), max_size=2)


@given(st.builds(Assignment, works, st.text(), prompts))
def test_an_assignment_is_read_as_it_was_written(assignment: Assignment) -> None:
    assert Assignment.decode(assignment.encode()) == assignment


def test_a_value_that_json_cannot_hold_is_refused_by_name() -> None:
    with pytest.raises(ValueRefused, match=r"arguments\.n"):
        Assignment(AgentWork("worker", {}, "Go.", {"n": float("nan")})).encode()


def _spec(**prompt: Any) -> dict[str, Any]:
    return {"model": {"provider": "OpenAI", "name": "m"}, **({"prompt": prompt} if prompt else {})}


def test_an_assignment_holds_the_prompts_of_all_agents_wherever_they_stand() -> None:
    from_map = {"configMapKeyRef": {"name": "prompts", "key": "p"}}
    work = AgentWork("a", _spec(systemFrom=from_map), "", {}, agents={"b": _spec(system="Be b."), "c": _spec()})
    assignment = Assignment.of(work, lambda ref: f"{ref.name}/{ref.key}")
    assert (assignment.instructions, assignment.prompts) == ("prompts/p", {"b": "Be b.", "c": ""})


GOOD: dict[str, Any] = {
    "agent": "worker",
    "spec": {},
    "message": "Go.",
    "arguments": {},
    "timeout": 5,
    "session": None,
    "agents": {},
    "instructions": "",
    "prompts": {},
}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"agent": None}, "agent"),
        ({"spec": []}, "spec"),
        ({"message": 1}, "message"),
        ({"arguments": "{}"}, "arguments"),
        ({"timeout": True}, "timeout"),
        ({"timeout": "5"}, "timeout"),
        ({"session": 1}, "session"),
        ({"instructions": None}, "instructions"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(changes: dict[str, Any], named: str) -> None:
    assert Assignment.decode(json.dumps(GOOD).encode()).work.timeout == 5.0
    with pytest.raises(AssignmentRefused, match=f"`{named}` is missing or of the wrong type"):
        Assignment.decode(json.dumps(GOOD | changes).encode())


@pytest.mark.parametrize("name", GOOD)
def test_every_field_is_needed(name: str) -> None:
    body = {key: value for key, value in GOOD.items() if key != name}
    with pytest.raises(AssignmentRefused, match=f"`{name}` is missing"):
        Assignment.decode(json.dumps(body).encode())


@pytest.mark.parametrize("text", [b"", b"nonsense", b"[]", b"\xff", b"[" * 100_000])
def test_what_is_no_object_is_refused(text: bytes) -> None:
    with pytest.raises(AssignmentRefused, match="not"):
        Assignment.decode(text)
