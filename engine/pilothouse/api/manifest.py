"""A document of a manifest file as one of the four kinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from pilothouse.api.agent import Agent
from pilothouse.api.base import API_VERSION
from pilothouse.api.explain import explain, shown
from pilothouse.api.pack import Pack
from pilothouse.api.problem import Problem, path_of
from pilothouse.api.suggestion import closest
from pilothouse.api.toolapproval import ToolApproval
from pilothouse.api.workflow import Workflow

Manifest = Agent | Workflow | Pack | ToolApproval

MAX_SPEC = 256 * 1024
"""Bytes of a spec, as JSON; more is refused."""

_MODELS: dict[str, type[Manifest]] = {
    "Agent": Agent,
    "Workflow": Workflow,
    "Pack": Pack,
    "ToolApproval": ToolApproval,
}


class ManifestError(ValueError):
    """A document that is none of our objects. `problems` holds every defect that was found."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


def load(document: object) -> Manifest:
    """The object that a parsed YAML or JSON document describes.

    Checked: apiVersion and kind, the size, every field by name, type and bound, and the rules over several fields.
    Not checked: whether references, expressions and the graph make sense. Raises ManifestError.
    """
    model = _model_of(document)
    assert isinstance(document, dict)  # noqa: S101  # _model_of has seen to it
    for part in ("spec", "status"):
        if _larger(document.get(part), MAX_SPEC):
            raise ManifestError(Problem(part, f"is larger than {MAX_SPEC // 1024} KiB"))
    try:
        loaded = model.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        raise ManifestError(*explain(error, model)) from None
    nulls = [Problem(path_of(path), "must not be null: give a value or leave it out") for path in _nulls(loaded, ())]
    if nulls:
        raise ManifestError(*nulls)
    return loaded


def _model_of(document: object) -> type[Manifest]:
    if not isinstance(document, dict):
        raise ManifestError(Problem("", f"must be a mapping with apiVersion, kind and spec; found {shown(document)}"))
    version, kind = document.get("apiVersion"), document.get("kind")
    if version != API_VERSION:
        raise ManifestError(Problem("apiVersion", f"must be {API_VERSION}; found {shown(version)}"))
    if isinstance(kind, str) and kind in _MODELS:
        return _MODELS[kind]
    close = closest(kind, list(_MODELS)) if isinstance(kind, str) else None
    guess = f"; did you mean `{close}`?" if close else ""
    raise ManifestError(Problem("kind", f"must be one of {', '.join(_MODELS)}; found {shown(kind)}{guess}"))


def _larger(value: object, limit: int) -> bool:
    """Whether a value has more than about `limit` bytes as JSON. Stops there: aliases can make a few lines huge."""
    pending, size = [value], 0
    while pending and size <= limit:
        item = pending.pop()
        size += 1
        if isinstance(item, dict):
            pending += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            pending += item
        else:
            size += len(str(item).encode("utf-8", "surrogatepass")) + 1
    return size > limit


def _nulls(model: BaseModel, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    # The API server refuses null where a field is merely optional; where any JSON goes, null is a value.
    for name in model.model_fields_set:
        field = type(model).model_fields[name]
        here = (*path, field.alias or name)
        value: Any = getattr(model, name)
        if value is None and type(None) in get_args(field.annotation):
            yield here
        elif isinstance(value, BaseModel):
            yield from _nulls(value, here)
        elif isinstance(value, tuple):
            for index, item in enumerate(value):
                if isinstance(item, BaseModel):
                    yield from _nulls(item, (*here, index))
