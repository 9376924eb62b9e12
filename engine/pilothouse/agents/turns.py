"""A turn: one response of the model, and what is known of its tool calls."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from pilothouse.agents.messages import AssistantMessage, ToolResultMessage


@dataclass(frozen=True, slots=True)
class Turn:
    """`id` is the entry of the assistant message. `appended` are the results that are in the session: the
    first ones, in the order of the calls. `recorded` are further results, by the ordinal of their call."""

    id: UUID
    message: AssistantMessage
    appended: tuple[ToolResultMessage, ...] = ()
    recorded: Mapping[int, ToolResultMessage] = field(default_factory=dict)

    @property
    def closed(self) -> bool:
        """Whether every call has its result in the session. A response that failed has no calls to answer."""
        return self.failed or len(self.appended) == len(self.message.tool_calls)

    @property
    def failed(self) -> bool:
        return failed(self.message)


def failed(message: AssistantMessage) -> bool:
    """Whether the response did not come to its end; such a message is kept, but no model sees it again."""
    return message.stop_reason in ("error", "aborted")


def terminates(result: ToolResultMessage) -> bool:
    """Whether the tool asked the loop to end after this batch. The hint travels with the message, so that
    a process that resumes the conversation heeds it too."""
    return bool((result.model_extra or {}).get("terminate"))
