"""Field types and the models as objects of Python."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from pilothouse.api.actions import RunCommand, Wait
from pilothouse.api.agent import Agent
from pilothouse.api.fields import seconds
from pilothouse.api.manifest import load
from pilothouse.api.problem import path_of
from pilothouse.api.workflow import ACTIONS, Step, Workflow
from tests.api.samples import full


@pytest.mark.parametrize(
    ("duration", "length"),
    [("90s", 90), ("5m", 300), ("1h30m", 5400), ("500ms", 0.5), ("1h1m1s1ms", 3661.001), ("0s", 0), ("1m5ms", 60.005)],
)
def test_a_duration_has_a_length(duration: str, length: float) -> None:
    assert seconds(duration) == pytest.approx(length)
    assert Wait(duration=duration).duration == duration


@pytest.mark.parametrize("text", ["", "5", "m", "5 m", "-5m", "1.5h", "5m1h", "1d", "5M", "5m\n", "٥m"])
def test_other_texts_are_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        seconds(text)
    with pytest.raises(ValidationError):
        Wait(duration=text)


def test_a_step_tells_its_action() -> None:
    workflow = load(full("Workflow"))
    assert isinstance(workflow, Workflow)
    assert workflow.spec.steps
    actions = [step.action for step in workflow.spec.steps]
    assert {name for name, _ in actions} == set(ACTIONS)
    assert all(type(action).__name__.lower() == name.lower() for name, action in actions)


def test_a_model_cannot_be_changed() -> None:
    step = Step(name="a", run_command=RunCommand(command=("true",)))
    with pytest.raises(ValidationError, match="frozen"):
        step.name = "b"  # type: ignore[misc]  # that is what is tried


def test_a_manifest_has_only_what_was_set_and_the_names_that_users_write() -> None:
    step = Step(name="a", pending_timeout="1m", run_command=RunCommand(command=("true",)))
    assert step.manifest() == {"name": "a", "pendingTimeout": "1m", "runCommand": {"command": ["true"]}}
    assert step.idempotent is False


def test_an_empty_allow_list_differs_from_none() -> None:
    document = full("Agent")
    document["spec"]["governance"] = {"commands": {"allow": []}, "domains": {}}
    agent = load(document)
    assert isinstance(agent, Agent)
    assert agent.spec.governance
    assert agent.spec.governance.commands
    assert agent.spec.governance.commands.allow == ()
    assert agent.spec.governance.domains
    assert agent.spec.governance.domains.allow is None


def test_a_path_can_be_read_back() -> None:
    assert path_of(["spec", "steps", 2, "runCommand", "env", 0]) == "spec.steps[2].runCommand.env[0]"
    assert path_of(["metadata", "labels", "a.b/c"]) == "metadata.labels['a.b/c']"
    assert path_of([0, "a"]) == "[0].a"
    assert path_of([]) == ""
