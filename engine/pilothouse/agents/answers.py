"""The final answer of a task whose outputs have a schema."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from pilothouse.tools.schema import Schema

_FENCED = re.compile(r"^```[ \t]*(?:json)?[ \t]*\n(.*?)\n?```[ \t]*$", re.DOTALL | re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Answer:
    """A final answer that satisfies the schema."""

    data: JsonValue


@dataclass(frozen=True, slots=True)
class Mismatch:
    """What is wrong with a final answer, in words for the model."""

    problems: str


class AnswerSchema:
    """Reads final answers: the text is JSON, or holds exactly one fenced block that is. Raises SchemaRefused."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = Schema(schema)

    def read(self, text: str) -> Answer | Mismatch:
        blocks = _FENCED.findall(text)
        source = blocks[0] if len(blocks) == 1 else text
        try:
            data = json.loads(source, parse_constant=_refuse)
        except RecursionError:
            return Mismatch("the answer is nested too deeply")
        except ValueError as error:
            return Mismatch(f"the answer is not JSON: {error}")
        problems = self._schema.problems(data, "answer")
        return Mismatch(problems) if problems else Answer(data)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")
