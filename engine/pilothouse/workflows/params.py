"""Params and inputs: values checked against what was declared of them."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pilothouse.api.params import Param
from pilothouse.api.suggestion import suggestion
from pilothouse.records.values import JSON


class ParamError(ValueError):
    """A value does not fit its param. `name` is the param; the message says what would fit."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


def bind(params: Iterable[Param], given: Mapping[str, JSON]) -> dict[str, JSON]:
    """The value of each param: given, else its default, else absent. Raises ParamError for an unknown
    name, a missing required value, and a value of another type or outside of the enum."""
    declared = {param.name: param for param in params}
    for name in given:
        if name not in declared:
            raise ParamError(name, f"there is no param `{name}`{suggestion(name, declared)}")
    values: dict[str, JSON] = {}
    for param in declared.values():
        if param.name in given:
            values[param.name] = check(param, given[param.name])
        elif "default" in param.model_fields_set:
            values[param.name] = param.default
        elif param.required:
            raise ParamError(param.name, f"param `{param.name}` ({param.type}) needs a value")
    return values


def check(param: Param, value: JSON) -> JSON:
    """The value, if it fits the param."""
    if not _fits(param.type, value):
        raise ParamError(param.name, f"param `{param.name}` must be {_article(param.type)}, not {_shown(value)}")
    if param.enum is not None and not any(_same(value, allowed) for allowed in param.enum):
        allowed = ", ".join(_shown(item) for item in param.enum)
        raise ParamError(param.name, f"param `{param.name}` must be one of {allowed}, not {_shown(value)}")
    return value


def parse(param: Param, text: str) -> JSON:
    """A value typed at a terminal: text as it is for a string param, else JSON."""
    if param.type == "string":
        return text
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        article = _article(param.type)
        raise ParamError(param.name, f"param `{param.name}` must be {article} in JSON, not {text[:80]!r}") from None
    return check(param, value)


def _fits(type_: str, value: JSON) -> bool:
    match type_:
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case _:
            return isinstance(value, str)


def _same(left: JSON, right: JSON) -> bool:
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def _article(type_: str) -> str:
    return f"an {type_}" if type_[0] in "aio" else f"a {type_}"


def _shown(value: JSON) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:79] + "…"
