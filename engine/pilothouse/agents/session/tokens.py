"""How many tokens messages take, as well as can be told without the model's tokenizer."""

import json
from collections.abc import Iterable, Sequence

from pilothouse.agents.convert import convert_to_llm
from pilothouse.agents.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    Usage,
)
from pilothouse.agents.turns import failed

IMAGE_CHARACTERS = 4_800
"""What an image counts for."""

_CHARACTERS_A_TOKEN = 4


def estimate(messages: Iterable[Message]) -> int:
    """The tokens of messages as a model sees them, each rounded up."""
    return sum(-(-_characters(message) // _CHARACTERS_A_TOKEN) for message in messages)


def context_tokens(messages: Sequence[Message], compacted: int = 0) -> int:
    """The tokens of a context: what the last answer reports that its model read and wrote, and an estimate of all
    after it. The first `compacted` messages report on a context that is gone, so theirs are estimated."""
    for at in reversed(range(compacted, len(messages))):
        message = messages[at]
        if isinstance(message, AssistantMessage) and not failed(message) and (used := tokens_used(message.usage)):
            return used + estimate(messages[at + 1 :])
    return estimate(messages)


def tokens_used(usage: Usage) -> int:
    """The total that the provider reports, else the sum of its parts."""
    return usage.total_tokens or usage.input + usage.output + usage.cache_read + usage.cache_write


def _characters(message: Message) -> int:
    return sum(_block(block) for seen in convert_to_llm((message,)) for block in seen.content)


def _block(block: TextContent | ImageContent | ThinkingContent | ToolCall) -> int:
    match block:
        case TextContent(text=text):
            return len(text)
        case ThinkingContent(thinking=thinking):
            return len(thinking)
        case ToolCall(name=name, arguments=arguments, arguments_text=text):
            return len(name) + len(json.dumps(arguments) if text is None else text)
        case _:
            return IMAGE_CHARACTERS
