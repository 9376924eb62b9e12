"""Field types shared by the four kinds. Each knows its limits, its JSON schema and how to say what would be right."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, cast

import pydantic
from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from pilothouse.api.jsonvalue import check_json, check_object


@dataclass(frozen=True)
class Text:
    """A string of at most `max` characters. `says` tells what would be right when it is not.

    The API server compiles `pattern` with RE2 and pydantic with Rust's regex: no look-around, no back-references.
    """

    max: int
    min: int = 0
    pattern: str | None = None
    format: str | None = None
    says: str | None = None

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema: CoreSchema = core_schema.str_schema(
            strict=True, min_length=self.min or None, max_length=self.max, pattern=self.pattern
        )
        if self.says is None:
            return schema
        return core_schema.custom_error_schema(schema, "text", custom_error_message=self.says)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        result = handler(schema)
        return result | {"format": self.format} if self.format else result


@dataclass(frozen=True)
class Items:
    """A list, held as a tuple, of at most `max` entries.

    `key`: entries are told apart by this field, as in a Kubernetes list of type `map`. `unique`: entries are scalars
    and differ, list type `set`. Otherwise two writers replace the list as a whole, list type `atomic`.
    """

    max: int
    min: int = 0
    key: str | None = None
    unique: bool = False

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        lax = cast(CoreSchema, {**handler(source), "strict": False})  # a strict tuple takes no list
        inner = core_schema.no_info_after_validator_function(self._distinct, lax)
        return core_schema.no_info_before_validator_function(self._bounded, inner)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        result = handler(schema) | {"maxItems": self.max}
        if self.min:
            result["minItems"] = self.min
        if self.key:
            return result | {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [self.key]}
        return result | {"x-kubernetes-list-type": "set" if self.unique else "atomic"}

    def _bounded(self, value: object) -> object:
        # Pydantic would count only the valid entries, and would take sets and generators for lists.
        if not isinstance(value, list | tuple):
            raise PydanticCustomError("list_type", "must be a list")
        if not self.min <= len(value) <= self.max:
            bound = f"at least {self.min}" if len(value) < self.min else f"at most {self.max}"
            problem = f"must have {bound} {'entry' if bound.endswith(' 1') else 'entries'}; found {len(value)}"
            raise PydanticCustomError("rule", "{problem}", {"problem": problem})
        return value

    def _distinct(self, items: tuple[object, ...]) -> tuple[object, ...]:
        seen: dict[object, int] = {}
        for index, item in enumerate(items if self.key or self.unique else ()):
            name = getattr(item, self.key) if self.key else item
            if name in seen:
                raise PydanticCustomError("rule", "{problem}", {"problem": self._twice(name, seen[name], index)})
            seen[name] = index
        return items

    def _twice(self, name: object, first: int, second: int) -> str:
        what = f"each {self.key}" if self.key else "each entry"
        return f"{what} must differ; `{name}` stands at [{first}] and [{second}]"


@dataclass(frozen=True)
class Json:
    """Any JSON value (or object): the only place where the API server keeps fields that we do not name."""

    only_object: bool = False

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        check = check_object if self.only_object else check_json
        return core_schema.no_info_plain_validator_function(check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        kept = {"x-kubernetes-preserve-unknown-fields": True}
        return {"type": "object", **kept} if self.only_object else {"nullable": True, **kept}


@dataclass(frozen=True)
class IntOrString:
    """An integer or a string matching `pattern`; `says` tells what would be right."""

    max: int
    pattern: str
    says: str

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        text = core_schema.str_schema(strict=True, min_length=1, max_length=self.max, pattern=self.pattern)
        number = core_schema.int_schema(strict=True, ge=0)
        either = core_schema.union_schema([number, text])
        return core_schema.custom_error_schema(either, "text", custom_error_message=self.says)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"x-kubernetes-int-or-string": True, "maxLength": self.max, "pattern": self.pattern}


_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_QUANTITY = r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$"
_DURATION = "^([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$"
_TIMESTAMP = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$"

Name = Annotated[
    str, Text(63, 1, f"^{_LABEL}$", says="must be lower-case letters, digits and -, at most 63 characters")
]
"""A DNS-1123 label."""

ObjectName = Annotated[
    str,
    Text(
        253,
        1,
        rf"^{_LABEL}(\.{_LABEL})*$",
        says="must be an object's name: lower-case letters, digits, - and .",
    ),
]
"""A DNS-1123 subdomain: the name of a Kubernetes object."""

StepName = Annotated[
    str,
    Text(63, 1, "^[a-z]([-a-z0-9]*[a-z0-9])?$", says="must start with a lower-case letter, then letters, digits and -"),
]
"""Names a step or a block; `steps.a` or, with a dash, `steps['a-b']` in an expression."""

Variable = Annotated[
    str, Text(63, 1, "^[A-Za-z_][A-Za-z0-9_]*$", says="must be letters, digits and _, not starting with a digit")
]
"""Names a parameter, an output or an environment variable; a CEL identifier."""

Key = Annotated[str, Text(253, 1, "^[-._a-zA-Z0-9]+$", says="must be a key: letters, digits, -, _ and .")]
"""A key in the data of a Secret or ConfigMap."""

Duration = Annotated[str, Text(32, 2, _DURATION, says="must be a string like 90s, 5m, 1h30m or 500ms")]
"""Hours, minutes, seconds and milliseconds in this order, each optional; see `seconds`."""

Timestamp = Annotated[
    str, Text(40, 20, _TIMESTAMP, "date-time", says="must be a time like 2027-01-31T12:00:00Z (quoted)")
]
"""An RFC 3339 time, kept as written."""

Digest = Annotated[
    str, Text(71, 71, "^sha256:[0-9a-f]{64}$", says="must be sha256: and 64 lower-case hexadecimal digits")
]

FailureCode = Annotated[str, Text(5, 5, "^F-[A-Z]{3}$", says="must be a failure code like F-TMO")]

Quantity = Annotated[int | str, IntOrString(32, _QUANTITY, says="must be a quantity like 100m, 2 or 512Mi")]
"""A Kubernetes resource quantity."""

Image = Annotated[str, Text(512, 1, "^[!-~]+$", says="must be an image reference like registry.example.com/app:1.2")]

Url = Annotated[str, Text(2048, 1, "^https?://[!-~]+$", says="must be a URL that starts with http:// or https://")]

Line = Annotated[str, Text(500)]
"""A short text for people."""

User = Annotated[str, Text(1024, 1)]
"""A user name as the API server authenticated it."""

Template = Annotated[str, Text(65536)]
"""A text in which each `${{ }}` holds a CEL expression."""

JsonValue = Annotated[pydantic.JsonValue, Json()]
JsonObject = Annotated[dict[str, pydantic.JsonValue], Json(only_object=True)]

Labels = Annotated[dict[str, Annotated[str, Text(253)]], Field(max_length=64, strict=True)]


def _bare(expression: str) -> str:
    if "${{" in expression:
        raise PydanticCustomError("rule", "{problem}", {"problem": "must be bare CEL: write it without ${{ }}"})
    return expression


Cel = Annotated[str, Text(4096, 1), pydantic.AfterValidator(_bare)]
"""A bare CEL expression, never wrapped in `${{ }}`."""

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def seconds(duration: str) -> float:
    """The length of a `Duration` in seconds: `seconds("1m30s") == 90`.

    Raises ValueError for anything that is not a duration.
    """
    if len(duration) < 2 or not re.fullmatch(_DURATION[1:-1], duration):
        raise ValueError(f"not a duration like 90s or 5m: {duration!r}")
    return sum(int(count) * _UNITS[unit] for count, unit in re.findall(r"(\d+)(ms|h|m|s)", duration))
