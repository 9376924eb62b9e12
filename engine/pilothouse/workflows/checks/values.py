"""Declared params and inputs, and the values that a manifest gives for them."""

from collections.abc import Iterator, Sequence

from pilothouse.api.params import NamedValue, Param
from pilothouse.api.problem import Problem
from pilothouse.api.suggestion import suggestion
from pilothouse.records.values import JSON
from pilothouse.workflows.params import ParamError, check


def misfits(params: Sequence[Param], where: str) -> Iterator[Problem]:
    """Defaults and enums that do not fit their own param. `where` is like `spec.params`."""
    for index, param in enumerate(params):
        plain = param.model_copy(update={"enum": None})
        for number, allowed in enumerate(param.enum or ()):
            yield from _misfit(plain, allowed, f"{where}[{index}].enum[{number}]")
        if "default" in param.model_fields_set:
            yield from _misfit(param, param.default, f"{where}[{index}].default")


def bad_arguments(inputs: Sequence[Param], given: Sequence[NamedValue], agent: str, where: str) -> Iterator[Problem]:
    """Arguments that an Agent does not know, lacks, or cannot take. A value with an expression is known only when it
    is evaluated. `where` is like `spec.steps[0].invokeAgent.arguments`."""
    declared = {param.name: param for param in inputs}
    for index, argument in enumerate(given):
        param = declared.pop(argument.name, None)
        if param is None:
            names = [param.name for param in inputs]
            hint = suggestion(argument.name, names)
            yield Problem(f"{where}[{index}].name", f"Agent `{agent}` has no input `{argument.name}`{hint}")
        elif not _evaluated(argument.value):
            yield from _misfit(param, argument.value, f"{where}[{index}].value")
    for param in declared.values():
        if param.required and "default" not in param.model_fields_set:
            yield Problem(where, f"Agent `{agent}` needs a value for its input `{param.name}` ({param.type})")


def _misfit(param: Param, value: JSON, where: str) -> Iterator[Problem]:
    try:
        check(param, value)
    except ParamError as error:
        yield Problem(where, str(error))


def _evaluated(value: JSON) -> bool:
    """Whether an expression stands somewhere in the value."""
    if isinstance(value, str):
        return "${{" in value
    if isinstance(value, dict):
        return any(map(_evaluated, value.values()))
    return isinstance(value, list) and any(map(_evaluated, value))
