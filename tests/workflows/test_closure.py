"""What a run will read of definitions is taken when it is created, and no more than that."""

from typing import Any

import pytest

from pilothouse.api.agent import AgentSpec
from pilothouse.api.workflow import WorkflowSpec
from pilothouse.records.failures import Failed, FailureCode
from pilothouse.store.errors import StoreUnusable
from pilothouse.workflows.closure import Closure, freeze


def _ref(kind: str, name: str, key: str) -> dict[str, Any]:
    return {f"{kind}KeyRef": {"name": name, "key": key}}


AGENT = AgentSpec.model_validate(
    {
        "model": {"provider": "OpenAI", "name": "m", "apiKeyFrom": _ref("secret", "keys", "token")},
        "prompt": {"systemFrom": _ref("configMap", "prompts", "writer")},
    }
)
WORKFLOW = WorkflowSpec.model_validate(
    {
        "steps": [
            {"name": "a", "invokeAgent": {"agentRef": {"name": "writer"}}},
            {
                "name": "b",
                "runCommand": {
                    "command": ["x"],
                    "env": [{"name": "T", "valueFrom": _ref("secret", "keys", "token")}],
                    "files": [{"path": "f", "valueFrom": _ref("configMap", "scripts", "run.py")}],
                },
            },
        ]
    }
)
CONFIG_MAPS = {
    "prompts": {"writer": "Be brief.", "reader": "Be long."},
    "scripts": {"run.py": "pass"},
    "other": {"a": "b"},
}


def test_only_what_is_referred_to_is_frozen() -> None:
    closure = freeze(WORKFLOW, {"writer": AGENT, "idle": AGENT}, CONFIG_MAPS)
    assert list(closure.agents) == ["writer"]
    assert closure.config_maps == {"scripts": {"run.py": "pass"}, "prompts": {"writer": "Be brief."}}
    assert closure.reads_secrets
    assert Closure.from_json(closure.to_json()) == closure


def _asking(*names: str) -> AgentSpec:
    tools = [{"agentRef": {"name": name}} for name in names]
    return AgentSpec.model_validate({"model": {"provider": "OpenAI", "name": "m"}, "tools": tools})


def test_agents_that_can_be_asked_are_frozen_with_what_they_read_however_they_ask_one_another() -> None:
    agents = {"writer": _asking("a", "b"), "a": _asking("writer", "a"), "b": _asking("c"), "c": AGENT, "idle": AGENT}
    closure = freeze(WORKFLOW, agents, CONFIG_MAPS)
    assert sorted(closure.agents) == ["a", "b", "c", "writer"]
    assert closure.config_maps["prompts"] == {"writer": "Be brief."}


@pytest.mark.parametrize(
    ("agents", "config_maps", "message"),
    [
        ({"writer": _asking("gone")}, CONFIG_MAPS, "there is no Agent `gone`, which Agent `writer` has as a tool"),
        ({}, CONFIG_MAPS, "there is no Agent `writer`"),
        ({"writer": AGENT}, {"scripts": {"run.py": ""}}, "there is no ConfigMap `prompts`"),
        ({"writer": AGENT}, CONFIG_MAPS | {"scripts": {}}, "ConfigMap `scripts` has no text under the key `run.py`"),
    ],
)
def test_what_is_missing_is_named(agents: Any, config_maps: Any, message: str) -> None:
    with pytest.raises(Failed) as raised:
        freeze(WORKFLOW, agents, config_maps)
    assert raised.value.failure.code is FailureCode.ENV
    assert raised.value.failure.message == message


def test_a_closure_of_a_newer_release_is_refused_with_a_remedy() -> None:
    body = freeze(WORKFLOW, {"writer": AGENT}, CONFIG_MAPS).to_json() | {"version": 99}
    with pytest.raises(StoreUnusable, match="a newer release froze this run, in version 99"):
        Closure.from_json(body)


def test_a_closure_without_references_to_secrets_says_so() -> None:
    plain = WorkflowSpec.model_validate({"steps": [{"name": "a", "transform": {"value": 1}}]})
    assert not freeze(plain, {}, {}).reads_secrets
