"""What a run will read of definitions is taken when it is created, and no more than that."""

from typing import Any

import pytest

from pilothouse.api.agent import AgentSpec
from pilothouse.api.workflow import WorkflowSpec
from pilothouse.records.failures import Failed, FailureCode
from pilothouse.workflows.closure import Closure
from pilothouse.workflows.freeze import freeze


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
    closure = freeze(WORKFLOW, {"writer": AGENT, "idle": AGENT}, CONFIG_MAPS, ["a.yaml"])
    assert list(closure.agents) == ["writer"]
    assert closure.config_maps == {"scripts": {"run.py": "pass"}, "prompts": {"writer": "Be brief."}}
    assert closure.origin == ("a.yaml",)
    assert Closure.from_json(closure.to_json()) == closure


@pytest.mark.parametrize(
    ("agents", "config_maps", "message"),
    [
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
