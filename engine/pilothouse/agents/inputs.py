"""What a person says to an agent, as messages."""

from collections.abc import Sequence
from typing import TypeAlias

from pilothouse.agents.messages import ImageContent, Message, TextContent, UserMessage, now_ms

PromptInput: TypeAlias = str | Message | Sequence[Message]


def prompts_of(said: PromptInput, images: Sequence[ImageContent] = ()) -> Sequence[Message]:
    """A text becomes one message of the user, with the images after it; messages stay as they are."""
    if isinstance(said, str):
        return [UserMessage(content=(TextContent(text=said), *images), timestamp=now_ms())]
    return [said] if isinstance(said, Message) else said
