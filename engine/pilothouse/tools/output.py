"""What of a tool's answer goes to the model, and where the whole of it stays."""

import base64
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

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

PutBlob = Callable[[bytes], Awaitable[BlobRef]]


@dataclass(frozen=True, slots=True)
class Outputs:
    """Bounds results. Text over `shown_bytes` is cut in the middle, its whole goes to `put_blob`, and `details.output`
    (digest, size) names it; so does `details.images` with images that are too large. Secrets are taken out of all."""

    put_blob: PutBlob
    redactor: Redactor
    shown_bytes: int = DEFAULT_OUTPUT_BYTES

    async def bound(self, result: ToolResult) -> ToolResult:
        """The result as it may be recorded and shown. Raises what `put_blob` raises."""
        texts, images, kept = await self._sort(result)
        text = self.redactor.text("\n".join(texts))
        data = text.encode(errors="replace")
        if len(data) > self.shown_bytes:
            kept["output"] = _named(await self.put_blob(_cut(data, WHOLE_LIMIT)))
            text = _cut(data, self.shown_bytes).decode(errors="replace")
        shown: list[TextContent | ImageContent] = [TextContent(text=text)] if texts else []
        return replace(result, content=(*shown, *images), details=self._details(result.details, kept))

    def partial(self, result: ToolResult) -> ToolResult:
        """An update on the way as it may be shown: cut, and not kept anywhere."""
        text = self.redactor.text("\n".join(block.text for block in result.content if isinstance(block, TextContent)))
        shown = _cut(text.encode(errors="replace"), self.shown_bytes).decode(errors="replace")
        return replace(result, content=(TextContent(text=shown),), details=self._details(result.details, {}))

    async def _sort(self, result: ToolResult) -> tuple[list[str], list[ImageContent], dict[str, JsonValue]]:
        """The texts, the images that can be shown, and what is kept of the others."""
        texts = [block.text for block in result.content if isinstance(block, TextContent)]
        images = [block for block in result.content if isinstance(block, ImageContent)]
        shown = [image for image in images if len(image.data) <= IMAGE_LIMIT]
        kept: list[JsonValue] = []
        for image in images:
            if len(image.data) > IMAGE_LIMIT:
                kept.append(_named(await self.put_blob(base64.b64decode(image.data)[:WHOLE_LIMIT])))
                texts.append(
                    f"[an image of {len(image.data):,} bytes in Base64 is not shown; at most {IMAGE_LIMIT:,} are]"
                )
        return texts, shown, {"images": kept} if kept else {}

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


def _cut(data: bytes, limit: int) -> bytes:
    kept = HeadAndTail(limit)
    kept.add(data)
    return kept.content()


def _named(blob: BlobRef) -> dict[str, JsonValue]:
    return {"digest": blob.digest, "size": blob.size}
