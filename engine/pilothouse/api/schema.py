"""A model as a structural schema, the dialect of JSON schema that CRDs are written in."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]

_ORDER = (
    "description",
    "type",
    "format",
    "enum",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "nullable",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-validations",
    "required",
    "properties",
    "additionalProperties",
    "items",
)
_DROPPED = frozenset({"title", "$defs", "default"})
_CLOSED = ("additionalProperties", False)


class SchemaError(Exception):
    """A model that the API server would not take; the message names the place and the reason."""


def structural(model: type[BaseModel]) -> Schema:
    """The structural schema of a model.

    References are inlined, null unions folded, and closed objects left open (the API server prunes what it does not
    know). Defaults stay in the model and are only told in the description: a default that the server fills in would
    look like something that the user wrote.

    Raises SchemaError for recursion, unions, unbounded strings, lists and maps, and anything else that structural
    schemas lack.
    """
    raw = model.model_json_schema(by_alias=True)
    return _Converter(raw.get("$defs", {})).convert(raw, (model.__name__,))


class _Converter:
    def __init__(self, definitions: dict[str, Schema]) -> None:
        self._definitions = definitions
        self._open: list[str] = []

    def convert(self, node: Schema, path: tuple[str, ...]) -> Schema:
        if "$ref" in node:
            return self._inline(node, path)
        if "anyOf" in node:
            return self.convert(_fold_null(node, path), path)
        result: Schema = {}
        for keyword, value in node.items():
            result |= self._keyword(keyword, value, path)
        result |= _description(node)
        _require_bounds(result, path)
        return {keyword: result[keyword] for keyword in _ORDER if keyword in result}

    def _inline(self, node: Schema, path: tuple[str, ...]) -> Schema:
        name = node["$ref"].removeprefix("#/$defs/")
        if name in self._open:
            raise SchemaError(f"{'.'.join(path)}: {name} contains itself")
        self._open.append(name)
        beside = {keyword: value for keyword, value in node.items() if keyword != "$ref"}
        result = self.convert(self._definitions[name] | beside, path)
        self._open.pop()
        return result

    def _keyword(self, keyword: str, value: Any, path: tuple[str, ...]) -> Schema:
        if keyword == "properties":
            return {keyword: {name: self.convert(item, (*path, name)) for name, item in value.items()}}
        if keyword in ("items", "additionalProperties") and isinstance(value, dict):
            return {keyword: self.convert(value, (*path, "*"))}
        if keyword == "x-kubernetes-validations":
            return {keyword: [{"rule": rule["rule"], "message": rule["message"]} for rule in value]}
        if keyword == "const":
            return {"enum": [value]}
        if keyword in _DROPPED or (keyword, value) == _CLOSED:
            return {}
        if keyword in _ORDER:
            return {keyword: value}
        raise SchemaError(f"{'.'.join(path)}: structural schemas have no {keyword}: {value!r}")


def _fold_null(node: Schema, path: tuple[str, ...]) -> Schema:
    options: list[Schema] = [option for option in node["anyOf"] if option != {"type": "null"}]
    if len(options) != 1:
        raise SchemaError(f"{'.'.join(path)}: structural schemas have no unions")
    return options[0] | {keyword: value for keyword, value in node.items() if keyword != "anyOf"}


def _description(node: Schema) -> Schema:
    sentences = [node["description"].strip()] if "description" in node else []
    default = node.get("default")
    if isinstance(default, str | int | float):  # bool too; lists and objects default to empty
        sentences.append(f"Default: {str(default).lower() if isinstance(default, bool) else default}.")
    return {"description": " ".join(sentences)} if sentences else {}


def _require_bounds(node: Schema, path: tuple[str, ...]) -> None:
    needed = {
        "string": "maxLength",
        "array": "maxItems",
        "object": "maxProperties" if "additionalProperties" in node else None,
    }.get(node.get("type", ""))
    if needed and needed not in node and "enum" not in node:
        raise SchemaError(f"{'.'.join(path)}: {needed} is missing")


def prune(schema: Schema, value: Any) -> Any:
    """The value without the fields that the schema does not know, as the API server stores it."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return value
    if isinstance(value, list):
        return [prune(schema.get("items", {}), item) for item in value]
    if not isinstance(value, dict):
        return value
    if "additionalProperties" in schema:
        return {name: prune(schema["additionalProperties"], item) for name, item in value.items()}
    known = schema.get("properties", {})
    return {name: prune(known[name], item) for name, item in value.items() if name in known}
