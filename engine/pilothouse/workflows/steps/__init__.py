"""The kinds of steps that run. A new kind is a file here and a line below."""

from collections.abc import Mapping
from typing import Any

from pilothouse.workflows.steps.commands import ExecuteCodeKind, RunCommandKind
from pilothouse.workflows.steps.conditional import ConditionalKind
from pilothouse.workflows.steps.invoke_agent import InvokeAgentKind
from pilothouse.workflows.steps.kind import StepKind
from pilothouse.workflows.steps.transform import TransformKind

KINDS: Mapping[str, StepKind[Any]] = {
    kind.key: kind
    for kind in (
        InvokeAgentKind(),
        RunCommandKind(),
        ExecuteCodeKind(),
        ConditionalKind(),
        TransformKind(),
    )
}
"""Kinds by the field of a step that holds the action."""
