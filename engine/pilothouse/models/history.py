"""What of a conversation goes to a model: the parts of a request that all formats share."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pilothouse.agents.messages import (
    AssistantMessage,
    CustomMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from pilothouse.models.builder import Origin

SILENT = "(no text)"
"""Stands for a tool result without any text or image: some servers refuse an empty one."""

_PORTABLE = re.compile(r"[A-Za-z0-9_-]{1,40}")

Legal = UserMessage | AssistantMessage | ToolResultMessage


def legal(messages: Sequence[Message]) -> Iterator[Legal]:
    """The messages that a model may see: neither custom roles, nor answers that failed or say nothing."""
    for message in messages:
        if isinstance(message, CustomMessage) or _silent(message):
            continue
        yield message


def _silent(message: Legal) -> bool:
    if not isinstance(message, AssistantMessage):
        return False
    return message.stop_reason in ("error", "aborted") or not (message.text.strip() or message.tool_calls)


def blocks_for(message: AssistantMessage, origin: Origin) -> Iterator[TextContent | ThinkingContent | ToolCall]:
    """The blocks of an answer, without blank texts, which some servers refuse. Thinking goes back to the model whose
    it is and to no other: another one cannot read its signature, and what it holds is not what was said."""
    own = (message.api, message.provider, message.model) == (origin.api, origin.provider, origin.model)
    for block in message.content:
        if isinstance(block, ThinkingContent):
            if own and block.thinking_signature:
                yield block
        elif not isinstance(block, TextContent) or block.text.strip():
            yield block


def call_id(written: str) -> str:
    """The id of a tool call as every server takes it. Some servers write ids that others refuse, and a conversation
    may go from one to another; those get a name that follows from them."""
    if _PORTABLE.fullmatch(written):
        return written
    return f"call_{hashlib.sha256(written.encode()).hexdigest()[:32]}"


def data_url(image: ImageContent) -> str:
    return f"data:{image.media_type};base64,{image.data}"


def present(body: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that have a value."""
    return {name: value for name, value in body.items() if value is not None}
