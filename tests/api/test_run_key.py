"""The run key: a new one means a new run, so only what runs may change it, and only if the user changed it."""

from __future__ import annotations

import copy
import json
from typing import Annotated, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import Field

from pilothouse.api.fields import Items
from pilothouse.api.manifest import load
from pilothouse.api.workflow import WHAT_FIELDS, Step, Workflow, WorkflowSpec, run_key
from tests.api.samples import full, workflow
from tests.api.strategies import objects


def key(spec: dict[str, Any]) -> str:
    loaded = load(workflow() | {"spec": spec})
    assert isinstance(loaded, Workflow)
    return run_key(loaded.spec)


def spec() -> dict[str, Any]:
    return dict(full("Workflow")["spec"])


CONTROL: dict[str, Any] = {
    "description": "Other words.",
    "runPolicy": "OnDemand",
    "failurePolicy": "FinishAll",
    "parallelism": 1,
    "deadline": "2h",
    "suspend": True,
    "shutdown": "Stop",
    "schedule": {"cron": "* * * * *"},
    "ttlAfterFinished": "1h",
    "submittedBy": "bob",
}
WHAT: dict[str, Any] = {
    "params": [],
    "steps": [{"name": "a", "transform": {"value": 1}}],
    "blocks": [],
    "outputs": [],
    "onExit": [],
}


def test_each_field_of_a_spec_is_either_what_runs_or_how_it_is_controlled() -> None:
    names = {field.alias for field in WorkflowSpec.model_fields.values()}
    assert WHAT_FIELDS | CONTROL.keys() == names
    assert not WHAT_FIELDS & CONTROL.keys()


@pytest.mark.parametrize("field", sorted(CONTROL))
def test_a_control_field_starts_no_run(field: str) -> None:
    without = {name: value for name, value in spec().items() if name != field}
    assert key(spec() | {field: CONTROL[field]}) == key(spec()) == key(without)


@pytest.mark.parametrize("field", sorted(WHAT))
def test_a_field_that_says_what_runs_starts_one(field: str) -> None:
    without = {name: value for name, value in spec().items() if name != field}
    assert key(spec() | {field: WHAT[field]}) != key(spec())
    if field != "steps":
        assert key(without) != key(spec())


def test_the_definition_and_its_arguments_start_a_run() -> None:
    base = {"workflowRef": {"name": "a"}, "arguments": [{"name": "n", "value": 1}]}
    keys = {
        key(base),
        key(base | {"workflowRef": {"name": "b"}}),
        key(base | {"arguments": [{"name": "n", "value": 2}]}),
        key(base | {"arguments": [{"name": "n", "value": "1"}]}),
    }
    assert len(keys) == 4


def test_the_order_of_keys_does_not_matter_but_that_of_steps_does() -> None:
    def backwards(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: backwards(value[name]) for name in reversed(value)}
        return [backwards(item) for item in value] if isinstance(value, list) else value

    assert key(backwards(spec())) == key(spec())
    assert key(spec() | {"steps": spec()["steps"][::-1]}) != key(spec())


def test_a_default_that_a_later_release_adds_changes_no_key() -> None:
    class NextStep(Step):
        weight: Annotated[int, Field(ge=1)] = 5

    class NextSpec(WorkflowSpec):
        steps: Annotated[tuple[NextStep, ...], Items(256)] | None = None

    now, then = WorkflowSpec.model_validate(spec()), NextSpec.model_validate(spec())
    assert then.steps
    assert then.steps[0].weight == 5
    assert run_key(then) == run_key(now)


def test_writing_a_default_out_is_something_that_the_user_set() -> None:
    short = workflow()["spec"]
    long = copy.deepcopy(short)
    long["steps"][0]["idempotent"] = False
    assert key(short) != key(long)


def test_numbers_that_the_server_rewrites_keep_the_key() -> None:
    def steps(value: object) -> dict[str, Any]:
        return {"steps": [{"name": "a", "transform": {"value": value}}]}

    assert key(steps(1.0)) == key(steps(1))
    assert key(steps(1.5)) != key(steps(1))
    assert key(steps(2**60)) != key(steps(2**60 + 1))
    assert key(steps(True)) != key(steps(1))


def test_a_key_stays_the_same_from_release_to_release() -> None:
    assert key(workflow()["spec"]) == "sha256:443c239713cebc89f64dc8826353d4d925f87035f95680540460e141ea96e5f9"


@given(model=objects(WorkflowSpec))
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_a_trip_through_the_server_keeps_the_key(model: WorkflowSpec) -> None:
    assert key(json.loads(json.dumps(model.manifest(), sort_keys=True))) == run_key(model)


@given(value=st.integers(-(2**63) + 1, 2**63 - 1), other=st.integers(-(2**63) + 1, 2**63 - 1))
def test_different_integers_have_different_keys(value: int, other: int) -> None:
    def steps(number: int) -> dict[str, Any]:
        return {"steps": [{"name": "a", "transform": {"value": number}}]}

    assert (key(steps(value)) == key(steps(other))) == (value == other)
