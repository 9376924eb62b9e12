"""What a person says to an agent, as messages."""

from collections.abc import Sequence
from typing import TypeAlias

from pilothouse.agents.errors import AgentError
from pilothouse.agents.messages import ImageContent, Message, TextContent, UserMessage, now_ms

PromptInput: TypeAlias = str | Message | Sequence[Message]


def prompts_of(said: PromptInput, images: Sequence[ImageContent] = ()) -> Sequence[Message]:
    """A text becomes one message of the user, with the images after it; messages stay as they are. Raises AgentError
    `invalid_argument` for no message."""
    if isinstance(said, str):
        return [UserMessage(content=(TextContent(text=said), *images), timestamp=now_ms())]
    if isinstance(said, Message):
        return [said]
    if not said:
        raise AgentError("invalid_argument", "there is no message to send")
    return said
