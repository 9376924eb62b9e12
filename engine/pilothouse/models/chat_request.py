"""A model request in the form of OpenAI's chat completions."""

import json
from collections.abc import Sequence
from typing import Any

from pilothouse.agents.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ToolResultMessage,
    UserMessage,
)
from pilothouse.models.provider import ModelRequest, ToolSpec

Json = dict[str, Any]


def encode(request: ModelRequest, model: str, *, max_tokens_field: str) -> Json:
    """The request body. Servers differ in what they call the output limit, hence `max_tokens_field`."""
    options = request.options
    body: Json = {
        "model": model,
        "messages": _messages(request),
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [_tool(tool) for tool in request.tools] or None,
        "temperature": options.temperature,
        max_tokens_field: options.max_output_tokens,
        "reasoning_effort": None if options.thinking == "off" else options.thinking,
        "response_format": _response_format(request),
    }
    return {name: value for name, value in body.items() if value is not None}


def _messages(request: ModelRequest) -> list[Json]:
    encoded: list[Json] = [{"role": "system", "content": request.system}] if request.system else []
    images: list[ImageContent] = []
    for message in request.messages:
        if isinstance(message, ToolResultMessage):
            encoded.append(_tool_result(message))
            images += [block for block in message.content if isinstance(block, ImageContent)]
            continue
        encoded += _attached(images)
        images = []
        encoded += _message(message)
    return encoded + _attached(images)


def _message(message: Message) -> list[Json]:
    if isinstance(message, UserMessage):
        return [{"role": "user", "content": _parts(message.content)}]
    if isinstance(message, AssistantMessage) and message.stop_reason not in ("error", "aborted"):
        return [_assistant(message)] if message.text or message.tool_calls else []
    return []


def _assistant(message: AssistantMessage) -> Json:
    encoded: Json = {"role": "assistant", "content": message.text or None}
    calls = [
        {
            "id": call.id,
            "type": "function",
            # Servers that parse the history refuse malformed text; the error result tells the model of it.
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for call in message.tool_calls
    ]
    return {**encoded, "tool_calls": calls} if calls else encoded


def _tool_result(message: ToolResultMessage) -> Json:
    return {
        "role": "tool",
        "tool_call_id": message.tool_call_id,
        "content": message.text or "(no text)",
    }


def _attached(images: Sequence[ImageContent]) -> list[Json]:
    """Tool messages hold text only, so their images follow in a user message, after the last of them."""
    if not images:
        return []
    intro = TextContent(text="Images from the tool results above:")
    return [{"role": "user", "content": _parts((intro, *images))}]


def _parts(content: Sequence[TextContent | ImageContent]) -> str | list[Json]:
    if len(content) == 1 and isinstance(content[0], TextContent):
        return content[0].text
    return [_part(block) for block in content]


def _part(block: TextContent | ImageContent) -> Json:
    if isinstance(block, TextContent):
        return {"type": "text", "text": block.text}
    return {"type": "image_url", "image_url": {"url": f"data:{block.media_type};base64,{block.data}"}}


def _tool(tool: ToolSpec) -> Json:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def _response_format(request: ModelRequest) -> Json | None:
    if request.response_schema is None:
        return None
    schema = {"name": "answer", "schema": dict(request.response_schema)}
    return {"type": "json_schema", "json_schema": schema}
