"""The API models as the spec pages show them: each once, with the page and the section that describe it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from pilothouse.api.agent import Agent
from pilothouse.api.base import ApiModel
from pilothouse.api.pack import Pack
from pilothouse.api.toolapproval import ToolApproval
from pilothouse.api.workflow import Workflow

KINDS: tuple[type[ApiModel], ...] = (Workflow, Agent, Pack, ToolApproval)

_SHARED = frozenset({"pilothouse.api.conditions", "pilothouse.api.meta", "pilothouse.api.params", "pilothouse.api.pod"})


@dataclass(frozen=True, slots=True)
class Described:
    """A model, the page that describes it, and the section there: its path in a manifest, as `spec.steps[].retry`,
    or the model's name if several kinds share it or it is a kind."""

    model: type[ApiModel]
    page: str
    section: str


def described() -> Iterator[Described]:
    """Every model that a manifest may hold, at the first place where it may stand."""
    found: dict[tuple[str, type[ApiModel]], Described] = {}
    for kind in KINDS:
        todo = [Described(kind, f"{kind.__name__.lower()}.md", kind.__name__)]
        while todo:
            one = todo.pop(0)
            if (one.page, one.model) not in found:
                found[one.page, one.model] = one
                todo += _inside(one, f"{kind.__name__.lower()}.md")
    yield from found.values()


def _inside(one: Described, page: str) -> Iterator[Described]:
    for name, field in one.model.model_fields.items():
        for model, listed in _models(field.annotation):
            if model.__module__ in _SHARED:
                yield Described(model, "shared.md", model.__name__)
            else:
                above = "" if one.model in KINDS else f"{one.section}."
                yield Described(model, page, f"{above}{field.alias or name}{'[]' if listed else ''}")


def _models(annotation: Any) -> Iterator[tuple[type[ApiModel], bool]]:
    """The models in a field's type, and whether it holds several of them."""
    if isinstance(annotation, type) and issubclass(annotation, ApiModel):
        yield annotation, False
        return
    several = get_origin(annotation) in {tuple, dict}
    for argument in get_args(annotation):
        for model, listed in _models(argument):
            yield model, listed or several
