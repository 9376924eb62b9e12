"""The texts that a task begins with. The same parts give the same text, byte for byte."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue


def system_prompt(instructions: str, description: str = "", output_schema: Mapping[str, Any] | None = None) -> str:
    """The system prompt: who the agent is, what it is told, and how its answer must look."""
    parts = [description, instructions]
    if output_schema is not None:
        parts.append(
            "Your final answer must be one JSON value and nothing else. It must satisfy this JSON schema:\n"
            + _block(output_schema)
        )
    return "\n\n".join(part.strip() for part in parts if part.strip())


def user_prompt(message: str, arguments: Mapping[str, JsonValue]) -> str:
    """The first message: what is asked, then the arguments as JSON under a heading of their own."""
    parts = [message.strip()]
    if arguments:
        parts.append("## Arguments\n\n" + _block(arguments))
    return "\n\n".join(part for part in parts if part)


def _block(value: Mapping[str, Any]) -> str:
    """Keys keep the order in which they were declared."""
    return "```json\n" + json.dumps(value, indent=2, ensure_ascii=False) + "\n```"
