"""Freezing: everything that a run will ever read of definitions, taken from the objects that are there now."""

from collections.abc import Iterator, Mapping, Sequence

from pilothouse.api.agent import AgentSpec
from pilothouse.api.base import ApiModel
from pilothouse.api.meta import ConfigMapSource, KeyRef, ValueFrom
from pilothouse.api.workflow import WorkflowSpec
from pilothouse.records.failures import Failed, FailureCode
from pilothouse.workflows.closure import Closure
from pilothouse.workflows.support import supported


def freeze(
    workflow: WorkflowSpec,
    agents: Mapping[str, AgentSpec],
    config_maps: Mapping[str, Mapping[str, str]],
    origin: Sequence[str] = (),
) -> Closure:
    """The closure: the Agents that the workflow invokes, and of ConfigMaps the texts that it or they refer to.

    `agents` and `config_maps` are those of its namespace. Raises Failed(F-ENV) naming what is missing.
    """
    invoked = {name: _agent(name, agents) for name in _invoked(workflow)}
    data: dict[str, dict[str, str]] = {}
    for spec in (workflow, *invoked.values()):
        for ref in _config_refs(spec):
            data.setdefault(ref.name, {})[ref.key] = _text(ref, config_maps)
    return Closure(workflow, invoked, data, tuple(origin))


def _invoked(workflow: WorkflowSpec) -> list[str]:
    names = (step.invoke_agent.agent_ref.name for step in workflow.steps or () if step.invoke_agent is not None)
    return list(dict.fromkeys(names))


def _agent(name: str, agents: Mapping[str, AgentSpec]) -> AgentSpec:
    if name not in agents:
        raise Failed(FailureCode.ENV, f"there is no Agent `{name}`")
    return agents[name]


def _config_refs(spec: ApiModel) -> Iterator[KeyRef]:
    for _, model in supported(spec, "spec"):
        if isinstance(model, ConfigMapSource | ValueFrom) and model.config_map_key_ref is not None:
            yield model.config_map_key_ref


def _text(ref: KeyRef, config_maps: Mapping[str, Mapping[str, str]]) -> str:
    if ref.name not in config_maps:
        raise Failed(FailureCode.ENV, f"there is no ConfigMap `{ref.name}`")
    if ref.key not in config_maps[ref.name]:
        raise Failed(FailureCode.ENV, f"ConfigMap `{ref.name}` has no text under the key `{ref.key}`")
    return config_maps[ref.name][ref.key]
