"""Parameters of Workflows, blocks and Agents, and the values given for them."""

from __future__ import annotations

from typing import Annotated, Literal

from pilothouse.api.base import ApiModel
from pilothouse.api.fields import Items, JsonValue, Line, Variable

ParamType = Literal["string", "integer", "number", "boolean", "array", "object"]


class Param(ApiModel):
    """A typed parameter."""

    name: Variable
    type: ParamType = "string"
    required: bool = False
    """Whether a run without a value is refused."""
    default: JsonValue = None
    enum: Annotated[tuple[JsonValue, ...], Items(64, 1)] | None = None
    """The values allowed."""
    description: Line | None = None


class NamedValue(ApiModel):
    """A value by name; in each string of it `${{ }}` is evaluated, and a lone `${{ }}` keeps its type."""

    name: Variable
    value: JsonValue


Params = Annotated[tuple[Param, ...], Items(64, key="name")]
NamedValues = Annotated[tuple[NamedValue, ...], Items(64, key="name")]
