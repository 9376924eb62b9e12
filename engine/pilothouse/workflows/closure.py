"""The closure of a run: everything that it will ever read of definitions, frozen when it is created.

Secrets are never part of it; they stay references until a process that needs one starts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from pilothouse.api.agent import AgentSpec
from pilothouse.api.workflow import WorkflowSpec

VERSION = 1


@dataclass(frozen=True)
class Closure:
    """A Workflow's spec with the Agents that it invokes and the data of the ConfigMaps that it reads."""

    workflow: WorkflowSpec
    agents: Mapping[str, AgentSpec] = field(default_factory=dict)
    config_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    origin: tuple[str, ...] = ()
    """The files of a local run, from which its Secrets are read again when it is resumed."""

    def to_json(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "workflow": self.workflow.manifest(),
            "agents": {name: spec.manifest() for name, spec in self.agents.items()},
            "configMaps": {name: dict(data) for name, data in self.config_maps.items()},
            "origin": list(self.origin),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Raises ValueError for a closure that a newer release froze."""
        if body["version"] > VERSION:
            raise ValueError(f"the run was frozen in version {body['version']}; this release reads {VERSION}")
        return cls(
            WorkflowSpec.model_validate(body["workflow"]),
            {name: AgentSpec.model_validate(spec) for name, spec in body["agents"].items()},
            body["configMaps"],
            tuple(body["origin"]),
        )
