"""Pydantic's errors as problems: one for each defect, saying what would be right."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pilothouse.api.problem import Problem, path_of
from pilothouse.api.suggestion import closest

_MESSAGES = {
    "string_type": "must be a string",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must have at least {min_length} characters",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
    "string_unicode": "must be text without lone surrogates",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
}
_SHOWN_LENGTH = 40
_EXPLAINED = 100  # a suggestion takes a third of a millisecond, and a spec has room for 40,000 unknown fields


def explain(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """The defects of a manifest that should have been a `model`, in the order in which they stand in it, and of
    very many only the first."""
    details = error.errors(include_url=False)[:_EXPLAINED]
    meant = {_meant(detail, model) for detail in details if detail["type"] == "extra_forbidden"}
    return [_problem(detail, model) for detail in details if detail["type"] != "missing" or detail["loc"] not in meant]


def _meant(detail: ErrorDetails, model: type[BaseModel]) -> tuple[str | int | None, ...]:
    *parent, name = detail["loc"]
    return (*parent, closest(str(name), list(_fields_at(model, parent))))


def _problem(detail: ErrorDetails, model: type[BaseModel]) -> Problem:
    location = detail["loc"]
    if detail["type"] == "invalid_key" or location[-1:] == ("[key]",):
        keys = location[:-1] if location[-1] == "[key]" else location
        return Problem(path_of(keys[:-1]), f"has the key {shown(detail['input'])}, which is not a string: quote it")
    return Problem(path_of(location), _message(detail, model))


def _message(detail: ErrorDetails, model: type[BaseModel]) -> str:
    kind = detail["type"]
    if kind == "extra_forbidden":
        return _unknown_field(detail, model)
    if kind == "missing":
        return "is required"
    if kind == "literal_error":
        return _literal(detail)
    if kind == "rule":
        return detail["msg"]
    context = _plain_limits(detail.get("ctx", {}))
    message = _MESSAGES[kind].format_map(context) if kind in _MESSAGES else detail["msg"]
    return f"{message}; found {shown(detail['input'])}{_hint(detail)}"


def _plain_limits(context: dict[str, Any]) -> dict[str, Any]:
    whole = {name: int(limit) for name, limit in context.items() if isinstance(limit, float) and limit.is_integer()}
    return context | whole


def _unknown_field(detail: ErrorDetails, model: type[BaseModel]) -> str:
    *parent, last = detail["loc"]
    name, known = str(last), _fields_at(model, parent)
    close = closest(name, list(known))
    if close:
        return f"unknown field; did you mean `{close}`?"
    homes = [f"`{field}`" for field, inner in known.items() if inner and name in _aliases(inner)]
    if homes:
        return f"unknown field; it belongs into {' or '.join(homes)}"
    return f"unknown field; known here: {', '.join(known)}"


def _literal(detail: ErrorDetails) -> str:
    # Pydantic tells the choices only inside a sentence: 'OpenAI', 'Anthropic' or 'Local'.
    expected = detail.get("ctx", {}).get("expected", "")
    choices = [part.strip(" '") for part in expected.replace(" or ", ", ").split(",")]
    close = closest(detail["input"], choices) if isinstance(detail["input"], str) else None
    wanted = f"must be {choices[0]}" if len(choices) == 1 else f"must be one of {', '.join(choices)}"
    guess = f"; did you mean `{close}`?" if close else ""
    return f"{wanted}; found {shown(detail['input'])}{guess}"


def _hint(detail: ErrorDetails) -> str:
    textual = detail["type"] in ("string_type", "text")
    return " (quote it)" if textual and isinstance(detail["input"], bool | int | float) else ""


def shown(value: object) -> str:
    """A value as an error message shows it: short, on one line, without control characters."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = json.dumps(value) if isinstance(value, str | bool | int | float | None) else type(value).__name__
    return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}…"


def _fields_at(model: type[BaseModel], path: Sequence[str | int]) -> dict[str, type[BaseModel] | None]:
    """The fields known at a place, by the names that users write, each with the model that it holds."""
    fields = _aliases(model)
    for part in path:
        if isinstance(part, str):
            fields = _aliases(fields[part])
    return fields


def _aliases(model: type[BaseModel] | None) -> dict[str, type[BaseModel] | None]:
    fields = model.model_fields if model else {}
    return {field.alias or name: _model_in(field.annotation) for name, field in fields.items()}


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (_model_in(argument) for argument in get_args(annotation))
    return next((model for model in inner if model), None)
