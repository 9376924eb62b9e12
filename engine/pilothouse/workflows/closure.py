"""The closure of a run: everything that it will ever read of definitions, frozen when it is created.

Secrets are never part of it; they stay references until a process that needs one starts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from pilothouse.api.agent import AgentSpec
from pilothouse.api.base import ApiModel
from pilothouse.api.meta import ConfigMapSource, KeyRef, SecretSource, ValueFrom
from pilothouse.api.workflow import WorkflowSpec
from pilothouse.records.failures import Failed, FailureCode
from pilothouse.store.errors import StoreUnusable
from pilothouse.workflows.checks.support import supported
from pilothouse.workflows.reach import reachable

VERSION = 1


@dataclass(frozen=True)
class Closure:
    """A Workflow's spec with the Agents that take part in it and the data of the ConfigMaps that it reads."""

    workflow: WorkflowSpec
    agents: Mapping[str, AgentSpec] = field(default_factory=dict)
    config_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "workflow": self.workflow.manifest(),
            "agents": {name: spec.manifest() for name, spec in self.agents.items()},
            "configMaps": {name: dict(data) for name, data in self.config_maps.items()},
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Raises StoreUnusable for a closure that a newer release froze."""
        if body["version"] > VERSION:
            text = f"a newer release froze this run, in version {body['version']}; this one reads up to {VERSION}"
            raise StoreUnusable(f"{text}: use that release")
        return cls(
            WorkflowSpec.model_validate(body["workflow"]),
            {name: AgentSpec.model_validate(spec) for name, spec in body["agents"].items()},
            body["configMaps"],
        )

    @property
    def reads_secrets(self) -> bool:
        """Whether anything in it refers to a Secret."""
        models = (model for spec in (self.workflow, *self.agents.values()) for _, model in supported(spec, "spec"))
        return any(_refers_to_secret(model) for model in models)


def freeze(
    workflow: WorkflowSpec,
    agents: Mapping[str, AgentSpec],
    config_maps: Mapping[str, Mapping[str, str]],
) -> Closure:
    """The closure: the Agents that the workflow invokes and those that they can ask, and of ConfigMaps the texts that
    it or they refer to.

    `agents` and `config_maps` are those of its namespace. Raises Failed(F-ENV) naming what is missing.
    """
    frozen = reachable(invoked(workflow), agents)
    data: dict[str, dict[str, str]] = {}
    for spec in (workflow, *frozen.values()):
        for ref in config_refs(spec):
            data.setdefault(ref.name, {})[ref.key] = _text(ref, config_maps)
    return Closure(workflow, frozen, data)


def invoked(workflow: WorkflowSpec) -> list[str]:
    """The names of the Agents that it invokes, each once."""
    names = (step.invoke_agent.agent_ref.name for step in workflow.steps or () if step.invoke_agent is not None)
    return list(dict.fromkeys(names))


def config_refs(spec: ApiModel) -> Iterator[KeyRef]:
    """The keys of ConfigMaps that it refers to."""
    for _, model in supported(spec, "spec"):
        if isinstance(model, ConfigMapSource | ValueFrom) and model.config_map_key_ref is not None:
            yield model.config_map_key_ref


def _text(ref: KeyRef, config_maps: Mapping[str, Mapping[str, str]]) -> str:
    if ref.name not in config_maps:
        raise Failed(FailureCode.ENV, f"there is no ConfigMap `{ref.name}`")
    if ref.key not in config_maps[ref.name]:
        raise Failed(FailureCode.ENV, f"ConfigMap `{ref.name}` has no text under the key `{ref.key}`")
    return config_maps[ref.name][ref.key]


def _refers_to_secret(model: ApiModel) -> bool:
    return isinstance(model, SecretSource) or (isinstance(model, ValueFrom) and model.secret_key_ref is not None)
