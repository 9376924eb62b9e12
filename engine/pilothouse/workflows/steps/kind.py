"""What a kind of step is: which of its fields hold expressions, what it gives out, and how it begins."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeAlias, TypeVar

from pydantic import BaseModel

from pilothouse.api.workflow import Step
from pilothouse.records.failures import Failed, FailureCode
from pilothouse.records.values import JSON, BlobRef
from pilothouse.workflows.scope import Scope
from pilothouse.workflows.work import Work

A = TypeVar("A", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Done:
    """A light step's outputs: it is over as soon as it is evaluated."""

    outputs: Mapping[str, JSON | BlobRef]


Beginning: TypeAlias = Done | Work


class StepKind(Generic[A]):
    """One kind of step. A new kind is a new file beside this one and a line in `KINDS`."""

    key: ClassVar[str]
    """The field of a step that holds the action, as `runCommand`."""
    bare: ClassVar[frozenset[str]] = frozenset()
    """Fields of the action that hold a bare CEL expression."""
    conditions: ClassVar[frozenset[str]] = frozenset()
    """Those of them that must be true or false."""
    opaque: ClassVar[frozenset[str]] = frozenset()
    """Fields of the action that are taken as they are: no expression is evaluated in them."""
    outputs: ClassVar[frozenset[str] | None] = None
    """The names of its outputs; None where the step itself decides them."""
    light: ClassVar[bool] = False
    """Whether it is over as soon as it is evaluated, without an attempt."""
    durable: ClassVar[bool] = False
    """Whether its work has rows of its own and goes on from them after a loss."""

    async def begin(self, step: Step, action: A, scope: Scope) -> Beginning:
        """Evaluates the action's expressions. Raises Failed where an evaluated value does not fit."""
        raise NotImplementedError

    async def rendered(self, action: A, scope: Scope) -> dict[str, JSON]:
        """The action as a manifest with every `${{ }}` outside of bare and opaque fields evaluated."""
        manifest = action.model_dump(mode="json", by_alias=True, exclude_unset=True)
        kept = self.bare | self.opaque
        return {name: await scope.render(value) for name, value in manifest.items() if name not in kept}


def require_bool(value: JSON, source: str) -> bool:
    """The value, if it is true or false."""
    if isinstance(value, bool):
        return value
    raise Failed(FailureCode.INP, f"`{source}` must give true or false, and gave {_kind_of(value)}")


def _kind_of(value: JSON) -> str:
    names: dict[type, str] = {str: "a string", list: "a list", dict: "a map", type(None): "null"}
    return names.get(type(value), "a number")
