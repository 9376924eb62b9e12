"""Sites: every place of a step that holds an expression, with its path as an error names it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pilothouse.api.problem import Problem, path_of
from pilothouse.api.workflow import Step
from pilothouse.workflows.expressions.errors import ExpressionError
from pilothouse.workflows.expressions.template import Template
from pilothouse.workflows.steps import KINDS
from pilothouse.workflows.steps.kind import StepKind


@dataclass(frozen=True, slots=True)
class Site:
    """An expression and where it stands. `condition`: it must give true or false."""

    path: str
    source: str
    condition: bool = False


def step_sites(step: Step, where: str) -> Iterator[Site | Problem]:
    """The expressions of a step at `where` (as `spec.steps[2]`); a Problem for each that cannot be read."""
    if step.when is not None:
        yield Site(f"{where}.when", step.when, condition=True)
    key, action = step.action
    kind = KINDS.get(key)
    if kind is not None:
        manifest = action.model_dump(mode="json", by_alias=True, exclude_unset=True)
        for name, value in manifest.items():
            yield from _field_sites(kind, name, value, f"{where}.{key}.{name}")


def template_sites(value: Any, where: str) -> Iterator[Site | Problem]:
    """The `${{ }}` of a value, in its order; a Problem for each text that cannot be taken apart."""
    for path, text in _texts(value, where):
        try:
            for part in Template.parse(text).expressions:
                yield Site(path, part.source)
        except ExpressionError as error:
            yield Problem(path, str(error))


def _texts(value: Any, where: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, where + _joined(path_of([key])))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, f"{where}[{index}]")


def _field_sites(kind: StepKind[Any], name: str, value: Any, where: str) -> Iterator[Site | Problem]:
    if name in kind.bare:
        yield Site(where, value, condition=name in kind.conditions)
    elif name not in kind.opaque:
        yield from template_sites(value, where)
    elif "${{" in value:
        yield Problem(where, "`${{ }}` is not evaluated here; pass the value by `args` or `env`")


def _joined(path: str) -> str:
    return path if not path or path.startswith("[") else f".{path}"
