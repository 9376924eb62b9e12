"""Rules over several fields, said once and enforced twice: by CEL in the API server, by Python in a local file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticCustomError

Check = Callable[[Any], str | None]


@dataclass(frozen=True)
class Rule:
    """A CEL rule of a CRD (`self`, `oldSelf`) with its message.

    `check` is the same rule over the model: it returns what is wrong, or None. Rules about a change (`oldSelf`)
    and rules that a field type already enforces have none.
    """

    rule: str
    message: str
    check: Check | None = None


def present(model: BaseModel, alias: str) -> bool:
    """What CEL's `has(self.<alias>)` says: the field was set, to something."""
    for name, field in type(model).model_fields.items():
        if alias in (field.alias, name):
            return name in model.model_fields_set and getattr(model, name) is not None
    raise LookupError(f"{type(model).__name__} has no field {alias}")


def exactly_one(*aliases: str) -> Rule:
    """Of these fields one is set, and no other."""
    names = ", ".join(aliases)

    def check(model: BaseModel) -> str | None:
        found = [alias for alias in aliases if present(model, alias)]
        if len(found) == 1:
            return None
        return f"exactly one of {names} must be set; found {' and '.join(found) or 'none'}"

    count = " + ".join(f"(has(self.{alias}) ? 1 : 0)" for alias in aliases)
    return Rule(f"{count} == 1", f"exactly one of {names} must be set", check)


def at_least_one(*aliases: str) -> Rule:
    """Of these fields one or more are set."""
    message = f"at least one of {', '.join(aliases)} must be set"

    def check(model: BaseModel) -> str | None:
        return None if any(present(model, alias) for alias in aliases) else message

    return Rule(" || ".join(f"has(self.{alias})" for alias in aliases), message, check)


def only_with(alias: str, *others: str) -> Rule:
    """The `others` make sense only beside `alias`."""
    message = f"{', '.join(others)} may be set only together with {alias}"

    def check(model: BaseModel) -> str | None:
        lonely = not present(model, alias) and any(present(model, other) for other in others)
        return message if lonely else None

    any_other = " || ".join(f"has(self.{other})" for other in others)
    return Rule(f"has(self.{alias}) || !({any_other})", message, check)


def not_with(alias: str, *others: str) -> Rule:
    """None of the `others` may stand beside `alias`."""
    message = f"{', '.join(others)} may not be set together with {alias}"

    def check(model: BaseModel) -> str | None:
        clash = present(model, alias) and any(present(model, other) for other in others)
        return message if clash else None

    any_other = " || ".join(f"has(self.{other})" for other in others)
    return Rule(f"!has(self.{alias}) || !({any_other})", message, check)


def needed_when(field: str, value: str, *needed: str) -> Rule:
    """`field` being `value`, which is not its default, needs each of the `needed` fields."""
    message = f"{', '.join(needed)} must be set when {field} is {value}"

    def check(model: Any) -> str | None:
        applies = getattr(model, field) == value
        return message if applies and not all(present(model, name) for name in needed) else None

    all_needed = " && ".join(f"has(self.{name})" for name in needed)
    return Rule(f"!has(self.{field}) || self.{field} != '{value}' || ({all_needed})", message, check)


def enforce(model: BaseModel, rules: Sequence[Rule]) -> None:
    """Raise the first broken rule as a pydantic error on the model itself."""
    for rule in rules:
        problem = rule.check(model) if rule.check else None
        if problem:
            raise PydanticCustomError("rule", "{problem}", {"problem": problem})


def _name_fits(model: Any) -> str | None:
    fits = len(model.metadata.name or "") <= 63
    return None if fits else NAME_FITS_LABEL.message


NAME_FITS_LABEL = Rule(
    "self.metadata.name.size() <= 63", "metadata.name may have at most 63 characters: it is used as a label", _name_fits
)
