"""What an MCP server says, as the agent takes it: its tools' descriptions and its results. All of it is untrusted."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from pilothouse.agents.messages import ImageContent, TextContent
from pilothouse.tools.tool import ToolResult

if TYPE_CHECKING:
    import mcp_types as types

MAX_DESCRIPTION = 4_096
"""Characters of a tool's description that a model is shown."""
MAX_SCHEMA = 64 * 1024
"""Bytes of a tool's input schema, as JSON; a tool with a larger one is left out."""

_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool as a server offers it. The hints are the server's own word: `idempotent` lets a call whose outcome was
    lost be made again, which harms that server alone."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False


def offer_of(tool: "types.Tool") -> Offer:
    """Raises ValueError for a tool that cannot be offered to a model."""
    if (size := len(json.dumps(tool.input_schema))) > MAX_SCHEMA:
        raise ValueError(f"its input schema takes {size:,} bytes; at most {MAX_SCHEMA:,} are taken")
    hints = tool.annotations
    read_only = bool(hints and hints.read_only_hint)
    return Offer(
        tool.name,
        _described(tool.description or tool.title or ""),
        tool.input_schema,
        read_only,
        destructive=not read_only and (hints is None or hints.destructive_hint is not False),
        idempotent=read_only or bool(hints and hints.idempotent_hint),
    )


def result_of(result: "types.CallToolResult") -> ToolResult:
    """The result as a tool's. What no model can be shown is named in its place."""
    content = tuple(_shown(block) for block in result.content)
    structured = result.structured_content
    if structured is not None and not any(isinstance(block, TextContent) for block in content):
        content = (*content, TextContent(text=json.dumps(structured, ensure_ascii=False)))
    details: JsonValue = None if structured is None else {"structuredContent": structured}
    return ToolResult(content, details, is_error=bool(result.is_error))


def _described(text: str) -> str:
    """Without the signs that people do not see, and cut: a model reads it in every turn."""
    clean = _INVISIBLE.sub("", text).strip()
    return clean if len(clean) <= MAX_DESCRIPTION else f"{clean[:MAX_DESCRIPTION]} […]"


def _shown(block: "types.ContentBlock") -> TextContent | ImageContent:
    if block.type == "image" and block.mime_type in _IMAGES:
        return ImageContent(media_type=block.mime_type, data=block.data)
    return TextContent(text="\n".join(_told(block)))


def _told(block: "types.ContentBlock") -> Iterator[str]:
    if block.type == "text":
        yield block.text
    elif block.type == "resource":
        resource = block.resource
        kind = resource.mime_type or "of no known type"
        text = getattr(resource, "text", None)
        size = f", {len(getattr(resource, 'blob', '')):,} bytes in Base64: not shown" if text is None else ""
        yield f"[resource {resource.uri}, {kind}{size}]"
        if text is not None:
            yield text
    elif block.type == "resource_link":
        yield f"[link to the resource {block.uri}: {block.description or block.name}]"
    else:
        yield f"[{block.type}, {block.mime_type}, {len(block.data):,} bytes in Base64: not shown]"
