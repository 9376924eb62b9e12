"""The check of whole objects: what is not known is not judged, and what is wrong is told with its place."""

from collections.abc import AsyncIterator
from typing import Any, get_args

import pytest

from pilothouse.api.agent import AgentSpec
from pilothouse.api.workflow import Workflow, WorkflowSpec
from pilothouse.models import provider
from pilothouse.workflows.checks.check import check
from pilothouse.workflows.checks.fields import MODEL_FAILURES
from pilothouse.workflows.checks.references import Known
from pilothouse.workflows.expressions.evaluator import Evaluator
from pilothouse.workflows.planner import plan_problems


@pytest.fixture
async def evaluator() -> AsyncIterator[Evaluator]:
    async with Evaluator() as evaluator:
        yield evaluator


def _workflow(*steps: dict[str, Any]) -> Workflow:
    return Workflow.model_validate({"metadata": {"name": "w"}, "spec": {"steps": list(steps)}})


CALLS = {
    "name": "a",
    "runCommand": {
        "command": ["x"],
        "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
        "files": [{"path": "f", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}],
    },
}
INVOKES = {"name": "b", "invokeAgent": {"agentRef": {"name": "agent"}, "arguments": [{"name": "x", "value": 1}]}}


async def test_references_to_what_is_not_known_are_not_judged(evaluator: Evaluator) -> None:
    assert await check(_workflow(CALLS, INVOKES), Known(), evaluator) == []


async def test_references_to_what_is_known_to_be_missing_are(evaluator: Evaluator) -> None:
    problems = await check(_workflow(CALLS, INVOKES), Known({}, {}, {"s": ["other"]}), evaluator)
    assert [str(problem) for problem in problems] == [
        "spec.steps[0].runCommand.env[0].valueFrom.secretKeyRef.key: "
        "Secret `s` has no key `k`; there are: other",
        "spec.steps[0].runCommand.files[0].valueFrom.configMapKeyRef.name: there is no ConfigMap `c`; there are: none",
        "spec.steps[1].invokeAgent.agentRef.name: there is no Agent `agent`; there are: none",
    ]  # fmt: skip


async def test_an_argument_with_an_expression_is_not_judged_before_it_is_evaluated(evaluator: Evaluator) -> None:
    spec = AgentSpec.model_validate({"model": {"provider": "OpenAI", "name": "m"}, "inputs": [{"name": "x"}]})
    late = {**INVOKES, "invokeAgent": {**INVOKES["invokeAgent"], "arguments": [{"name": "x", "value": "${{ 1 }}"}]}}  # type: ignore[dict-item]
    assert await check(_workflow(late), Known(agents={"agent": spec}), evaluator) == []
    [problem] = await check(_workflow(INVOKES), Known(agents={"agent": spec}), evaluator)
    assert str(problem) == "spec.steps[0].invokeAgent.arguments[0].value: param `x` must be a string, not 1"


async def test_what_nothing_carries_out_does_not_keep_the_rest_from_being_told(evaluator: Evaluator) -> None:
    steps = [
        {"name": "a", "wait": {"duration": "1m"}},
        {"name": "b", "transform": {"value": {"deep": ["${{ run.nmae }}", "${{"]}}},
    ]
    problems = await plan_problems(WorkflowSpec.model_validate({"steps": steps}), evaluator)
    assert [str(problem) for problem in problems] == [
        "spec.steps[1].transform.value.deep[0]: a run has no `nmae`; it has: id, name, namespace, number",
        "spec.steps[1].transform.value.deep[1]: `${{` without the `}}` that ends it (column 1)",
    ]


def test_names_that_are_written_twice_agree() -> None:
    assert {code.value for code in MODEL_FAILURES} == set(get_args(provider.FailureCode))
