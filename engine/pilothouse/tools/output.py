"""What of a tool's answer goes to the model, and where the whole of it stays."""

import base64
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pydantic import JsonValue

from pilothouse.agents.messages import ImageContent, TextContent
from pilothouse.records.failures import Failed
from pilothouse.records.values import BlobRef
from pilothouse.store.errors import StoreError
from pilothouse.tools.redaction import Redactor
from pilothouse.tools.sandbox.output import HeadAndTail
from pilothouse.tools.tool import ExecutionMode, Tool, ToolInvocation, ToolResult

DEFAULT_OUTPUT_BYTES = 15_000
"""Bytes of a tool's output that go to the model; of longer output the beginning and the end."""
WHOLE_LIMIT = 16 * 1024 * 1024
"""Bytes of an output that are kept as its whole; of a longer one the beginning and the end."""
IMAGE_LIMIT = 5 * 1024 * 1024
"""Bytes of an image, in Base64, that the model is shown."""
DETAILS_LIMIT = 64 * 1024
"""Bytes of `details`, as JSON."""

Block: TypeAlias = TextContent | ImageContent
PutBlob: TypeAlias = Callable[[bytes], Awaitable[BlobRef]]


@dataclass(frozen=True, slots=True)
class Outputs:
    """Bounds results. Text over `shown_bytes` is cut in the middle, its whole goes to `put_blob`, and `details.output`
    (digest, size) names it; so does `details.images` with images that are too large. Secrets are taken out of all."""

    put_blob: PutBlob
    redactor: Redactor
    shown_bytes: int = DEFAULT_OUTPUT_BYTES

    async def bound(self, result: ToolResult) -> ToolResult:
        """The result as it may be recorded and shown. Raises what `put_blob` raises."""
        kept: dict[str, JsonValue] = {}
        content = tuple([await self._block(block, kept) for block in result.content])
        data = _text(content).encode(errors="replace")
        if len(data) > self.shown_bytes:
            kept["output"] = _named(await self.put_blob(_cut(data, WHOLE_LIMIT)))
            images = (block for block in content if isinstance(block, ImageContent))
            content = (self._shown(data), *images)
        return replace(result, content=content, details=self._details(result.details, kept))

    def partial(self, result: ToolResult) -> ToolResult:
        """An update on the way as it may be shown: its text, cut, and not kept anywhere."""
        text = self._shown(self.redactor.text(_text(result.content)).encode(errors="replace"))
        return replace(result, content=(text,), details=self._details(result.details, {}))

    async def _block(self, block: Block, kept: dict[str, JsonValue]) -> Block:
        """The block without secrets; of an image that is too large, a text that says so."""
        if isinstance(block, TextContent):
            return TextContent(text=self.redactor.text(block.text))
        if len(block.data) <= IMAGE_LIMIT:
            return block
        images = kept.setdefault("images", [])
        assert isinstance(images, list)  # noqa: S101 - for the type checker
        images.append(_named(await self.put_blob(base64.b64decode(block.data)[:WHOLE_LIMIT])))
        size = f"{len(block.data):,} bytes in Base64"
        return TextContent(text=f"[an image of {size} is not shown; at most {IMAGE_LIMIT:,} are]")

    def _shown(self, data: bytes) -> TextContent:
        return TextContent(text=_cut(data, self.shown_bytes).decode(errors="replace"))

    def _details(self, details: JsonValue, kept: Mapping[str, JsonValue]) -> JsonValue:
        clean = self.redactor.json(details)
        if (size := len(json.dumps(clean))) > DETAILS_LIMIT:
            clean = {"omitted": f"{size:,} bytes of details; at most {DETAILS_LIMIT:,} are kept"}
        if not kept:
            return clean
        return {**(clean if isinstance(clean, dict) else {} if clean is None else {"value": clean}), **kept}


class BoundedTool:
    """A tool, `tool`, whose every answer is bounded. An exception of it is an error result with its text."""

    def __init__(self, tool: Tool, outputs: Outputs) -> None:
        self.tool = tool
        self._outputs = outputs

    @property
    def name(self) -> str:
        return self.tool.name

    @property
    def description(self) -> str:
        return self.tool.description

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self.tool.parameters

    @property
    def idempotent(self) -> bool:
        return self.tool.idempotent

    @property
    def execution_mode(self) -> ExecutionMode:
        return self.tool.execution_mode

    async def execute(self, call: ToolInvocation) -> ToolResult:
        async def on_update(partial: ToolResult) -> None:
            await call.on_update(self._outputs.partial(partial))

        try:
            result = await self.tool.execute(replace(call, on_update=on_update))
        except (Failed, StoreError):
            raise
        except Exception as error:
            result = ToolResult.of(str(error) or type(error).__name__, {"error": "ToolRaised"}, is_error=True)
        return await self._outputs.bound(result)


def _text(content: Sequence[Block]) -> str:
    return "\n".join(block.text for block in content if isinstance(block, TextContent))


def _cut(data: bytes, limit: int) -> bytes:
    kept = HeadAndTail(limit)
    kept.add(data)
    return kept.content()


def _named(blob: BlobRef) -> dict[str, JsonValue]:
    return {"digest": blob.digest, "size": blob.size}
