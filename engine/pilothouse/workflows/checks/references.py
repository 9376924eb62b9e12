"""What is known of the objects that a manifest refers to, and the references that lead nowhere."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from pilothouse.api.actions import InvokeAgent
from pilothouse.api.agent import Agent, AgentSpec, Tool
from pilothouse.api.base import ApiModel
from pilothouse.api.meta import ConfigMapSource, KeyRef, SecretSource, ValueFrom
from pilothouse.api.problem import Problem
from pilothouse.api.suggestion import suggestion
from pilothouse.api.workflow import Workflow
from pilothouse.workflows.checks.support import supported

Keys = Mapping[str, Collection[str]]
"""The keys of each object, by the object's name."""


@dataclass(frozen=True, slots=True)
class Known:
    """The other objects of the namespace. None is not known: references to that kind are then not checked."""

    agents: Mapping[str, AgentSpec] | None = None
    config_maps: Keys | None = None
    secrets: Keys | None = None


def missing_references(manifest: Workflow | Agent, known: Known) -> Iterator[Problem]:
    """The references to Agents, ConfigMaps and Secrets that are known not to exist, or not to have that key."""
    for path, model in supported(manifest.spec, "spec"):
        if isinstance(model, InvokeAgent | Tool) and model.agent_ref is not None and known.agents is not None:
            yield from _missing("Agent", model.agent_ref.name, known.agents, f"{path}.agentRef.name")
        for kind, keys, ref, where in _key_refs(model, path, known):
            yield from _missing_key(kind, keys, ref, where)


def _key_refs(model: ApiModel, path: str, known: Known) -> Iterator[tuple[str, Keys, KeyRef, str]]:
    if isinstance(model, ConfigMapSource | ValueFrom) and model.config_map_key_ref and known.config_maps is not None:
        yield "ConfigMap", known.config_maps, model.config_map_key_ref, f"{path}.configMapKeyRef"
    if isinstance(model, SecretSource | ValueFrom) and model.secret_key_ref and known.secrets is not None:
        yield "Secret", known.secrets, model.secret_key_ref, f"{path}.secretKeyRef"


def _missing_key(kind: str, keys: Keys, ref: KeyRef, where: str) -> Iterator[Problem]:
    if ref.name not in keys:
        yield from _missing(kind, ref.name, keys, f"{where}.name")
    elif ref.key not in keys[ref.name]:
        hint = suggestion(ref.key, keys[ref.name])
        yield Problem(f"{where}.key", f"{kind} `{ref.name}` has no key `{ref.key}`{hint}")


def _missing(kind: str, name: str, known: Iterable[str], where: str) -> Iterator[Problem]:
    names = list(known)
    if name not in names:
        yield Problem(where, f"there is no {kind} `{name}`{suggestion(name, names)}")
