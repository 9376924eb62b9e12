"""A model request in the form of OpenAI's Responses. The server keeps nothing: each request holds the conversation."""

import json
from collections.abc import Iterator, Sequence

from pilothouse.agents.messages import (
    AssistantMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
)
from pilothouse.models.builder import Origin
from pilothouse.models.history import SILENT, blocks_for, call_id, data_url, legal, present
from pilothouse.models.provider import ModelRequest, ToolSpec
from pilothouse.models.wire import Json, Target


def encode(request: ModelRequest, target: Target) -> Json:
    """The request body."""
    options = request.options
    return present(
        {
            "model": target.origin.model,
            "instructions": request.system or None,
            "input": list(_items(request, target.origin)),
            "stream": True,
            "store": False,
            "tools": [_tool(tool) for tool in request.tools] or None,
            "temperature": options.temperature,
            "top_p": options.top_p,
            "max_output_tokens": options.max_output_tokens,
            "text": _format(request),
            **_reasoning(request),
        }
    )


def _reasoning(request: ModelRequest) -> Json:
    """Models that do not reason refuse these fields, so they are sent only where thinking is asked for."""
    level = request.options.thinking
    if level == "off":
        return {}
    return {"reasoning": {"effort": level, "summary": "auto"}, "include": ["reasoning.encrypted_content"]}


def _items(request: ModelRequest, origin: Origin) -> Iterator[Json]:
    for message in legal(request.messages):
        if isinstance(message, AssistantMessage):
            yield from (_said(block) for block in blocks_for(message, origin))
        elif isinstance(message, ToolResultMessage):
            output = _shown(message.content) or SILENT
            yield {"type": "function_call_output", "call_id": call_id(message.tool_call_id), "output": output}
        else:
            yield {"role": "user", "content": _shown(message.content)}


def _said(block: TextContent | ThinkingContent | ToolCall) -> Json:
    if isinstance(block, TextContent):
        return {"role": "assistant", "content": block.text}
    if isinstance(block, ThinkingContent):
        item: Json = json.loads(block.thinking_signature or "{}")
        return item
    arguments = json.dumps(block.arguments)
    return {"type": "function_call", "call_id": call_id(block.id), "name": block.name, "arguments": arguments}


def _shown(content: Sequence[TextContent | ImageContent]) -> str | list[Json]:
    if all(isinstance(block, TextContent) for block in content):
        return "".join(block.text for block in content if isinstance(block, TextContent))
    return [_part(block) for block in content]


def _part(block: TextContent | ImageContent) -> Json:
    if isinstance(block, TextContent):
        return {"type": "input_text", "text": block.text}
    return {"type": "input_image", "image_url": data_url(block)}


def _tool(tool: ToolSpec) -> Json:
    """Strict is this format's default, and would refuse most schemas that say what is optional."""
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", **function, "strict": False}


def _format(request: ModelRequest) -> Json | None:
    if request.response_schema is None:
        return None
    return {"format": {"type": "json_schema", "name": "answer", "schema": dict(request.response_schema)}}
