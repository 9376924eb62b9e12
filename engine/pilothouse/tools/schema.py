"""JSON schemas, compiled once, that say in words what is wrong with a value."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import jsonschema_rs

PROBLEMS_SHOWN = 5
_PROBLEM_LENGTH = 200


class SchemaRefused(ValueError):  # noqa: N818 - the outcome, as the caller reports it
    """A JSON schema is not valid, or refers to another document; the text says why."""


class Schema:
    """A compiled JSON schema (draft 2020-12 unless `$schema` names another). Never fetches a reference.

    Raises SchemaRefused.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        try:
            self._validator = jsonschema_rs.validator_for(dict(schema), offline=True)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            raise SchemaRefused(str(error).split("\n", 1)[0][:_PROBLEM_LENGTH]) from None

    def problems(self, value: object, root: str) -> str:
        """What is wrong with the value, each with its place below `root`, as in `arguments.lines[0]: …`;
        empty if nothing is."""
        if self._validator.is_valid(value):
            return ""
        return "; ".join(islice(self._each(value, root), PROBLEMS_SHOWN))

    def _each(self, value: object, root: str) -> Iterator[str]:
        for error in self._validator.iter_errors(value):
            yield f"{_place(root, error.instance_path)}: {_shorten(error.message)}"


def _place(root: str, path: list[str | int]) -> str:
    return root + "".join(f"[{step}]" if isinstance(step, int) else f".{step[:40]}" for step in path)


def _shorten(text: str) -> str:
    """The middle goes: a message begins with the value and ends with the rule."""
    if len(text) <= _PROBLEM_LENGTH:
        return text
    half = _PROBLEM_LENGTH // 2
    return f"{text[:half]} … {text[-half:]}"
