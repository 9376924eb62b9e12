"""What an Agent's spec says about its limits is what ends its task."""

from decimal import Decimal
from typing import Any

import pytest

from pilothouse.agents.bounds import Limits
from pilothouse.agents.definition import make_provider, make_task
from pilothouse.agents.task import AgentResult, AgentTask, run_agent
from pilothouse.api.agent import Agent
from pilothouse.models.provider import ModelProvider
from tests.agents.desk import STEP, Desk
from tests.agents.doubles import ATool, registry

PRICES = {"input": "1000", "output": "2000"}
CALL = {"toolCalls": [{"name": "say", "arguments": {"text": "a"}}], "usage": {"input": 500, "output": 250}}


def made(desk: Desk, *script: dict[str, Any], **spec: Any) -> tuple[AgentTask, ModelProvider]:
    model = {"provider": "Scripted", "script": [*script], "prices": PRICES}
    agent = Agent.model_validate({"metadata": {"name": "a"}, "spec": {"model": model, **spec}}).spec
    given: dict[str, Any] = {"attempt": 1, "message": "Go.", "arguments": {}, "instructions": ""}
    return make_task(agent, session=desk.session, step=STEP, **given), make_provider(agent, None)


async def run(desk: Desk, *script: dict[str, Any], **spec: Any) -> AgentResult:
    task, provider = made(desk, *script, **spec)
    return await run_agent(task, await desk.attempt(), provider, registry(ATool()))


@pytest.mark.feature("B86")
async def test_the_budget_of_cost_is_counted_by_the_prices(desk: Desk) -> None:
    """Each turn takes 500 tokens at a thousandth of a dollar, and 250 at two."""
    budget = {"budget": {"cost": "1.50"}}
    result = await run(desk, CALL, CALL, {"text": "never"}, governance=budget)
    assert str(result.failure) == (
        "F-RES CostLimit: the budget of 1.50 US dollars is used up, and the task is not done"
    )
    usage = result.outputs["usage"]
    assert isinstance(usage, dict)
    assert usage["cost"] == {"input": 1.0, "output": 1.0, "cacheRead": 0.0, "cacheWrite": 0.0, "total": 2.0}
    assert result.outputs["turns"] == 2


def test_every_limit_is_that_of_the_spec(desk: Desk) -> None:
    limits = {"toolCallsPerTurn": 1, "consecutiveErrors": 2, "repeatedCalls": 3, "emptyResponses": 4}
    budget = {"turns": 5, "toolCalls": 6, "tokens": 7, "cost": "8.5", "duration": "9s"}
    task, _ = made(desk, {"text": "x"}, limits=limits | {"doubleConfirmation": True}, governance={"budget": budget})
    assert task.limits == Limits(5, 6, 7, Decimal("8.5"), 9.0, 1, 2, 3, 4, double_confirmation=True)


def test_a_spec_without_limits_has_the_same_as_a_task_without(desk: Desk) -> None:
    task, _ = made(desk, {"text": "x"})
    assert task.limits == Limits()
