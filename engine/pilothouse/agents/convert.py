"""What a model sees of a conversation (`convertToLlm`).

A session also holds messages of roles that no model knows. Those of the harness become the user's; all others stay in
the session.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from pilothouse.agents.messages import (
    AssistantMessage,
    CustomMessage,
    Message,
    TextContent,
    Timestamp,
    ToolResultMessage,
    UserContent,
    UserMessage,
    to_wire,
)

ModelMessage: TypeAlias = UserMessage | AssistantMessage | ToolResultMessage

_COMPACTED = "The earlier part of this conversation was replaced by this summary of it:"
_LEFT = "The conversation had gone another way and came back to this point. A summary of that other way:"


class _Role(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel)

    timestamp: Timestamp


class _Custom(_Role):
    content: str | tuple[UserContent, ...]

    def blocks(self) -> tuple[UserContent, ...]:
        return (TextContent(text=self.content),) if isinstance(self.content, str) else self.content


class _Summary(_Role):
    summary: str

    def text(self, intro: str) -> tuple[UserContent, ...]:
        return (TextContent(text=f"{intro}\n\n<summary>\n{self.summary}\n</summary>"),)


class _BashExecution(_Role):
    """A command that a person ran beside the agent."""

    command: str
    output: str = ""
    exit_code: Annotated[int | None, Field(default=None)]
    cancelled: bool = False
    truncated: bool = False
    full_output_path: str | None = None
    exclude_from_context: bool = False

    def text(self) -> tuple[UserContent, ...]:
        parts = [f"I ran `{self.command}`.", f"```\n{self.output}\n```" if self.output else "It printed nothing."]
        if self.cancelled:
            parts.append("It was cancelled.")
        elif self.exit_code:
            parts.append(f"It ended with exit code {self.exit_code}.")
        if self.truncated:
            parts.append(f"The output is cut; all of it is in {self.full_output_path or 'no file'}.")
        return (TextContent(text="\n".join(parts)),)


def convert_to_llm(messages: Iterable[Message]) -> list[ModelMessage]:
    """The messages in roles that models know, in their order; those of unknown roles are left out, and so are those
    of the harness's roles that lack what the role needs."""
    converted = (_converted(message) for message in messages)
    return [message for message in converted if message is not None]


def _converted(message: Message) -> ModelMessage | None:
    if not isinstance(message, CustomMessage):
        return message
    read = _ROLES.get(message.role)
    try:
        return read(message) if read else None
    except ValidationError:
        return None


def _custom(message: CustomMessage) -> UserMessage:
    custom = _Custom.model_validate(to_wire(message))
    return UserMessage(content=custom.blocks(), timestamp=custom.timestamp)


def _branch_summary(message: CustomMessage) -> UserMessage:
    summary = _Summary.model_validate(to_wire(message))
    return UserMessage(content=summary.text(_LEFT), timestamp=summary.timestamp)


def _compaction_summary(message: CustomMessage) -> UserMessage:
    summary = _Summary.model_validate(to_wire(message))
    return UserMessage(content=summary.text(_COMPACTED), timestamp=summary.timestamp)


def _bash_execution(message: CustomMessage) -> UserMessage | None:
    run = _BashExecution.model_validate(to_wire(message))
    return None if run.exclude_from_context else UserMessage(content=run.text(), timestamp=run.timestamp)


_ROLES: Mapping[str, Callable[[CustomMessage], UserMessage | None]] = {
    "custom": _custom,
    "branchSummary": _branch_summary,
    "compactionSummary": _compaction_summary,
    "bashExecution": _bash_execution,
}
