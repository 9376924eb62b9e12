"""Messages to fill sessions with, and a summariser that keeps what it was asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pilothouse.agents.messages import (
    AssistantMessage,
    Message,
    StopReason,
    TextContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from pilothouse.agents.session import SessionTree, Summary, SummaryRequest, build_context

USED = Usage(input=7, output=3, total_tokens=10)


def user(text: str) -> UserMessage:
    return UserMessage.of(text, 1)


def answer(
    text: str,
    *calls: str,
    tool: str = "say",
    usage: Usage | None = None,
    stop: StopReason | None = None,
    **arguments: Any,
) -> AssistantMessage:
    """An answer with a call for each of the ids."""
    made = [ToolCall(id=call, name=tool, arguments=arguments) for call in calls]
    return AssistantMessage(
        content=(TextContent(text=text), *made),
        api="scripted",
        provider="acme",
        model="large",
        usage=usage or Usage(),
        stop_reason=stop or ("toolUse" if calls else "stop"),
        timestamp=2,
    )


def result(call: str, text: str = "done") -> ToolResultMessage:
    content = (TextContent(text=text),)
    return ToolResultMessage(tool_call_id=call, tool_name="say", content=content, is_error=False, timestamp=3)


@dataclass
class Teller:
    """A Summariser. `says` makes the text of each request; an exception in its place is raised."""

    says: Callable[[SummaryRequest], str | BaseException] = lambda _: "what was said"
    requests: list[SummaryRequest] = field(default_factory=list)

    async def __call__(self, request: SummaryRequest) -> Summary:
        self.requests.append(request)
        said = self.says(request)
        if isinstance(said, BaseException):
            raise said
        return Summary(said, USED)

    @property
    def messages(self) -> list[Message]:
        return [message for request in self.requests for message in request.messages]


def text_of(message: Message) -> str:
    if isinstance(message, UserMessage | AssistantMessage | ToolResultMessage):
        return "".join(block.text for block in message.content if isinstance(block, TextContent))
    extra = message.model_extra or {}
    return str(extra.get("summary", extra.get("content")))


def context(tree: SessionTree) -> list[tuple[str, str]]:
    """Who says what in the context of the current branch."""
    return [(message.role, text_of(message)) for message in build_context(tree.branch()).messages]


def told(messages: Sequence[Message]) -> list[str]:
    return [text_of(message) for message in messages]
