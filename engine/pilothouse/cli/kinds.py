"""The kinds of objects that manifest files may hold, and a document as one of them."""

from typing import Any

from pydantic import ValidationError

from pilothouse.api.agent import Agent
from pilothouse.api.explain import explain, shown
from pilothouse.api.manifest import ManifestError, load
from pilothouse.api.pack import Pack
from pilothouse.api.problem import Problem
from pilothouse.api.suggestion import closest
from pilothouse.api.toolapproval import ToolApproval
from pilothouse.api.workflow import Workflow
from pilothouse.cli.configdata import ConfigMap, Secret

Object = Workflow | Agent | Pack | ToolApproval | ConfigMap | Secret

_KUBERNETES: dict[str, type[ConfigMap | Secret]] = {"ConfigMap": ConfigMap, "Secret": Secret}
_KINDS = ("Workflow", "Agent", "Pack", "ToolApproval", *_KUBERNETES)


def load_object(document: object) -> Object:
    """The object that a document describes. Raises ManifestError with every defect."""
    if not isinstance(document, dict):
        raise ManifestError(
            Problem("", f"must be a mapping with apiVersion, kind and metadata; found {shown(document)}")
        )
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ManifestError(Problem("kind", _unknown(kind)))
    return _load_kubernetes(document, _KUBERNETES[kind]) if kind in _KUBERNETES else load(document)


def _unknown(kind: object) -> str:
    if kind is None:
        return f"is required: one of {', '.join(_KINDS)}"
    close = closest(kind, _KINDS) if isinstance(kind, str) else None
    guess = f"; did you mean `{close}`?" if close else ""
    return f"must be one of {', '.join(_KINDS)}; found {shown(kind)}{guess}"


def _load_kubernetes(document: dict[str, Any], model: type[ConfigMap | Secret]) -> ConfigMap | Secret:
    try:
        return model.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        raise ManifestError(*explain(error, model)) from None
