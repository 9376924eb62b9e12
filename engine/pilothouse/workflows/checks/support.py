"""What the models describe and nothing carries out yet. Each is refused by its name, never silently accepted.

Whoever makes a field work takes it off the table. A field that is set to a default that turns nothing on (false, or an
empty list) asks for nothing, so it passes.
"""

from collections.abc import Iterator, Mapping, Sequence

from pydantic.fields import FieldInfo

from pilothouse.api.agent import Agent, AgentSpec, Sandbox, Tool
from pilothouse.api.base import GROUP, ApiModel
from pilothouse.api.governance import Governance
from pilothouse.api.meta import ObjectMeta
from pilothouse.api.pack import Pack
from pilothouse.api.problem import Problem, path_of
from pilothouse.api.toolapproval import ToolApproval
from pilothouse.api.workflow import (
    ACTIONS,
    REQUESTED_BY,
    RERUN_REQUESTED_AT,
    RETRY_REQUESTED_AT,
    Step,
    Workflow,
    WorkflowSpec,
)
from pilothouse.workflows.steps import KINDS

NOT_YET: Mapping[type[ApiModel], Sequence[str]] = {
    WorkflowSpec: (
        "arguments",
        "blocks",
        "onExit",
        "runPolicy: OnDemand",
        "schedule",
        "submittedBy",
        "ttlAfterFinished",
        "workflowRef",
    ),
    Step: tuple(action for action in ACTIONS if action not in KINDS),
    AgentSpec: ("memory", "skills"),
    Sandbox: ("image", "isolation: Isolated", "isolation: Networked", "network", "runtimeClassName"),
    Tool: ("approval",),
    Governance: (
        "approvalTTL",
        "autonomy",
        "commands",
        "paths",
        "policies",
        "preapproved",
        "rateLimit",
    ),
}
"""By model, each field as users write it, or one value of it as `field: value`."""

VERBS = (RETRY_REQUESTED_AT, RERUN_REQUESTED_AT, REQUESTED_BY)
"""Annotations that ask for something, and that are heard."""

KINDS_NOT_YET = (Pack, ToolApproval)


def unsupported(manifest: Workflow | Agent | Pack | ToolApproval) -> list[Problem]:
    """A problem for each thing that the object asks for and that nothing carries out yet."""
    if isinstance(manifest, KINDS_NOT_YET):
        return [Problem("kind", f"{manifest.kind} is not supported yet")]
    problems = [problem for path, model in supported(manifest.spec, "spec") for problem in _refused(model, path)]
    return [*_verbs(manifest.metadata), *problems]


def _verbs(metadata: ObjectMeta) -> Iterator[Problem]:
    for annotation in metadata.annotations or {}:
        if annotation.startswith(f"{GROUP}/") and annotation not in VERBS:
            yield Problem(path_of(("metadata", "annotations", annotation)), "is not supported yet")


def supported(model: ApiModel, path: str) -> Iterator[tuple[str, ApiModel]]:
    """The model and all models in those of its fields that are supported and set, each with its path."""
    yield path, model
    for alias, value in _set_fields(model):
        if alias in NOT_YET.get(type(model), ()):
            continue
        if isinstance(value, ApiModel):
            yield from supported(value, f"{path}.{alias}")
        elif isinstance(value, tuple):
            for index, item in enumerate(value):
                if isinstance(item, ApiModel):
                    yield from supported(item, f"{path}.{alias}[{index}]")


def _refused(model: ApiModel, path: str) -> Iterator[Problem]:
    refused = NOT_YET.get(type(model), ())
    for alias, value in _set_fields(model):
        if alias in refused:
            yield Problem(f"{path}.{alias}", "is not supported yet")
        elif f"{alias}: {value}" in refused:
            yield Problem(f"{path}.{alias}", f"{value} is not supported yet")


def _set_fields(model: ApiModel) -> Iterator[tuple[str, object]]:
    """The fields that ask for something, by their names in a manifest."""
    for name, field in type(model).model_fields.items():
        value: object = getattr(model, name)
        if name in model.model_fields_set and (value or value != _default(field)):
            yield field.alias or name, value


def _default(field: FieldInfo) -> object:
    return field.get_default(call_default_factory=True, validated_data={})
