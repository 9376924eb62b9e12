"""What a model is to see."""

from collections.abc import Sequence
from dataclasses import dataclass

from pilothouse.agents.messages import Message
from pilothouse.tools.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class Context:
    """The conversation so far, in `messages`, the system prompt and the tools."""

    system: str
    messages: Sequence[Message]
    tools: ToolRegistry
