"""A model request in the form of OpenAI's chat completions."""

import json
from collections.abc import Sequence

from pilothouse.agents.messages import (
    AssistantMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from pilothouse.models.builder import Origin
from pilothouse.models.history import SILENT, Legal, blocks_for, call_id, data_url, legal, present
from pilothouse.models.provider import ModelRequest, ToolSpec
from pilothouse.models.wire import Json, Target

REASONING_FIELDS = ("reasoning_content", "reasoning")
"""What compatible servers call a model's thinking. OpenAI's own address shows none in this format."""


def encode(request: ModelRequest, target: Target) -> Json:
    """The request body."""
    options = request.options
    # OpenAI's reasoning models refuse the older name; most other servers know only that one.
    limit = "max_completion_tokens" if target.base.host == "api.openai.com" else "max_tokens"
    return present(
        {
            "model": target.origin.model,
            "messages": _messages(request, target.origin),
            "stream": True,
            "stream_options": {"include_usage": True},
            "tools": [_tool(tool) for tool in request.tools] or None,
            "temperature": options.temperature,
            "top_p": options.top_p,
            limit: options.max_output_tokens,
            "seed": options.seed,
            "stop": list(options.stop) or None,
            "reasoning_effort": None if options.thinking == "off" else options.thinking,
            "response_format": _response_format(request),
        }
    )


def _messages(request: ModelRequest, origin: Origin) -> list[Json]:
    encoded: list[Json] = [{"role": "system", "content": request.system}] if request.system else []
    images: list[ImageContent] = []
    for message in legal(request.messages):
        if not isinstance(message, ToolResultMessage):
            encoded += _attached(images)
            images = []
        else:
            images += [block for block in message.content if isinstance(block, ImageContent)]
        encoded.append(_message(message, origin))
    return encoded + _attached(images)


def _message(message: Legal, origin: Origin) -> Json:
    if isinstance(message, UserMessage):
        return {"role": "user", "content": _parts(message.content)}
    if isinstance(message, AssistantMessage):
        return _assistant(message, origin)
    # Nothing marks an error: the text of the result says it.
    return {"role": "tool", "tool_call_id": call_id(message.tool_call_id), "content": message.text or SILENT}


def _assistant(message: AssistantMessage, origin: Origin) -> Json:
    calls = [_call(call) for call in message.tool_calls]
    encoded: Json = {"role": "assistant", "content": message.text or None, **_reasoning(message, origin)}
    return {**encoded, "tool_calls": calls} if calls else encoded


def _reasoning(message: AssistantMessage, origin: Origin) -> Json:
    """The thinking, under the name by which the server sent it: some ask for it while tools are called."""
    fields: dict[str, str] = {}
    for block in blocks_for(message, origin):
        if isinstance(block, ThinkingContent) and block.thinking_signature in REASONING_FIELDS:
            name = block.thinking_signature
            fields[name] = fields.get(name, "") + block.thinking
    return fields


def _call(call: ToolCall) -> Json:
    # Servers that parse the history refuse malformed text; the error result tells the model of it.
    function = {"name": call.name, "arguments": json.dumps(call.arguments)}
    return {"id": call_id(call.id), "type": "function", "function": function}


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
    return {"type": "image_url", "image_url": {"url": data_url(block)}}


def _tool(tool: ToolSpec) -> Json:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def _response_format(request: ModelRequest) -> Json | None:
    if request.response_schema is None:
        return None
    schema = {"name": "answer", "schema": dict(request.response_schema)}
    return {"type": "json_schema", "json_schema": schema}
