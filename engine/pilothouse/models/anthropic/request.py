"""A model request in the form of Anthropic's messages."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from pilothouse.agents.messages import (
    AssistantMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
)
from pilothouse.models.anthropic.thinking import depth
from pilothouse.models.builder import Origin
from pilothouse.models.history import SILENT, Legal, blocks_for, call_id, legal, present
from pilothouse.models.provider import ModelRequest, ToolSpec
from pilothouse.models.wire import Json, Target

ANSWER = "answer"
"""The tool that a model is made to call where its answer must satisfy a schema; its arguments are the answer."""

_CACHED = {"cache_control": {"type": "ephemeral"}}
"""What comes up to here is the same in the next turn."""


def encode(request: ModelRequest, target: Target) -> Json:
    """The request body."""
    options = request.options
    system = [{"type": "text", "text": request.system, **_CACHED}] if request.system else None
    return present(
        {
            "model": target.origin.model,
            "system": system,
            "messages": _marked(_turns(request, target.origin)),
            "stream": True,
            "temperature": options.temperature,
            "top_p": options.top_p,
            "stop_sequences": list(options.stop) or None,
            **depth(target.origin.model, options.thinking, options.max_output_tokens),
            **_tools(request),
        }
    )


def forces_answer(request: ModelRequest) -> bool:
    """Whether the answer is the arguments of a call that the model must make. Forcing it excludes thinking and
    every other tool; there, the system prompt alone asks for the schema. Arguments are always an object."""
    schema = request.response_schema
    free = not request.tools and request.options.thinking == "off"
    return free and schema is not None and schema.get("type") == "object"


def _tools(request: ModelRequest) -> Json:
    if request.response_schema is not None and forces_answer(request):
        tool = ToolSpec(ANSWER, "Gives the final answer.", request.response_schema)
        return {"tools": [_tool(tool)], "tool_choice": {"type": "tool", "name": ANSWER}}
    tools = [_tool(tool) for tool in request.tools]
    return {"tools": [*tools[:-1], {**tools[-1], **_CACHED}]} if tools else {}


def _tool(tool: ToolSpec) -> Json:
    return {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}


def _turns(request: ModelRequest, origin: Origin) -> list[Json]:
    """Users and assistants by turns, as the format demands it: all results of an answer's calls stand in one turn
    of the user, before what the user says."""
    turns: list[Json] = []
    for role, messages in groupby(legal(request.messages), _role):
        content = [block for message in messages for block in _content(message, origin)]
        if content:
            turns.append({"role": role, "content": content})
    return turns


def _role(message: Legal) -> str:
    return "assistant" if isinstance(message, AssistantMessage) else "user"


def _content(message: Legal, origin: Origin) -> Sequence[Json]:
    if isinstance(message, AssistantMessage):
        return [_said(block) for block in blocks_for(message, origin)]
    shown = [_shown(block) for block in message.content if not isinstance(block, TextContent) or block.text.strip()]
    return [_result(message, shown)] if isinstance(message, ToolResultMessage) else shown


def _said(block: TextContent | ThinkingContent | ToolCall) -> Json:
    if isinstance(block, TextContent):
        return {"type": "text", "text": block.text}
    if isinstance(block, ToolCall):
        return {"type": "tool_use", "id": call_id(block.id), "name": block.name, "input": block.arguments}
    if block.redacted:
        return {"type": "redacted_thinking", "data": block.thinking_signature}
    return {"type": "thinking", "thinking": block.thinking, "signature": block.thinking_signature}


def _shown(block: TextContent | ImageContent) -> Json:
    if isinstance(block, TextContent):
        return {"type": "text", "text": block.text}
    source = {"type": "base64", "media_type": block.media_type, "data": block.data}
    return {"type": "image", "source": source}


def _result(message: ToolResultMessage, shown: Sequence[Json]) -> Json:
    content = shown or [{"type": "text", "text": SILENT}]
    body = {"type": "tool_result", "tool_use_id": call_id(message.tool_call_id), "content": content}
    return {**body, "is_error": True} if message.is_error else body


def _marked(turns: list[Json]) -> list[Json]:
    """The turns; the end of the user's last is marked for the cache."""
    if not turns or turns[-1]["role"] != "user":
        return turns
    *before, last = turns
    *blocks, final = last["content"]
    return [*before, {**last, "content": [*blocks, {**final, **_CACHED}]}]


def headers(key: str | None) -> Mapping[str, str]:
    version = {"anthropic-version": "2023-06-01"}
    return {**version, "x-api-key": key} if key else version
