"""The built-in file tools: they read and write text files of the sandbox's workspace."""

from collections.abc import Mapping
from typing import Any

from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandbox.output import HeadAndTail
from pilothouse.tools.sandboxed import DEFAULT_OUTPUT_BYTES, Sandboxes, answer
from pilothouse.tools.tool import ExecutionMode, ToolInvocation, ToolResult

READ_LIMIT = 16 * 1024 * 1024
"""Bytes of the largest file that is read; of a larger one neither the whole nor the end is fetched."""

_PATH = {
    "type": "string",
    "minLength": 1,
    "maxLength": 4_096,
    "description": "Path of the file, relative to the workspace.",
}


class FileRead:
    """`file_read`: the text of a file; of a long one its beginning and its end."""

    name = "file_read"
    description = "Reads a text file of the workspace."
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {"path": _PATH},
        "required": ["path"],
        "additionalProperties": False,
    }
    idempotent = True
    execution_mode: ExecutionMode = "parallel"

    def __init__(self, sandboxes: Sandboxes, output_bytes: int = DEFAULT_OUTPUT_BYTES) -> None:
        self._sandboxes = sandboxes
        self._output_bytes = output_bytes

    async def execute(self, call: ToolInvocation) -> ToolResult:
        path = str(call.arguments["path"])
        return await answer(self, self._sandboxes, lambda sandbox: self._read(sandbox, path))

    async def _read(self, sandbox: Sandbox, path: str) -> ToolResult:
        content = await sandbox.get(path, max_bytes=READ_LIMIT)
        if content.truncated:
            return _refused("TooLarge", f"`{path}` has {content.size:,} bytes; at most {READ_LIMIT:,} are read")
        if b"\0" in content.data:
            return _refused("NotText", f"`{path}` is not a text file; it has {content.size:,} bytes")
        kept = HeadAndTail(self._output_bytes)
        kept.add(content.data)
        return ToolResult.of(kept.content().decode(errors="replace"), {"size": content.size})


class FileWrite:
    """`file_write`: makes or replaces a file. Writing the same text again changes nothing, so it may be
    repeated."""

    name = "file_write"
    description = "Writes a text file of the workspace; replaces it if it is there, makes missing directories."
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "path": _PATH,
            "text": {"type": "string", "description": "The whole new content of the file."},
        },
        "required": ["path", "text"],
        "additionalProperties": False,
    }
    idempotent = True
    execution_mode: ExecutionMode = "parallel"

    def __init__(self, sandboxes: Sandboxes) -> None:
        self._sandboxes = sandboxes

    async def execute(self, call: ToolInvocation) -> ToolResult:
        path, text = str(call.arguments["path"]), str(call.arguments["text"])
        return await answer(self, self._sandboxes, lambda sandbox: self._write(sandbox, path, text))

    async def _write(self, sandbox: Sandbox, path: str, text: str) -> ToolResult:
        data = text.encode()
        await sandbox.put(path, data)
        return ToolResult.of(f"Wrote {len(data):,} bytes to `{path}`.", {"size": len(data)})


def _refused(reason: str, text: str) -> ToolResult:
    return ToolResult.of(text, {"error": reason}, is_error=True)
