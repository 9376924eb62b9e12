"""The built-in file tools: they read and write text files of the sandbox's workspace."""

from collections.abc import Mapping
from typing import Any

from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandboxed import Sandboxes, answer
from pilothouse.tools.tool import ExecutionMode, ToolInvocation, ToolResult

READ_LIMIT = 16 * 1024 * 1024
"""Bytes of the largest file that is read; of a larger one neither the whole nor the end is fetched."""

LIST_LIMIT = 1_000
"""Entries that are listed, at most."""

_PATH = {
    "type": "string",
    "minLength": 1,
    "maxLength": 4_096,
    "description": "Path of the file, relative to the workspace.",
}


class FileRead:
    """`file_read`: the text of a file."""

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

    def __init__(self, sandboxes: Sandboxes) -> None:
        self._sandboxes = sandboxes

    async def execute(self, call: ToolInvocation) -> ToolResult:
        path = str(call.arguments["path"])
        return await answer(self, self._sandboxes, lambda sandbox: self._read(sandbox, path))

    async def _read(self, sandbox: Sandbox, path: str) -> ToolResult:
        content = await sandbox.get(path, max_bytes=READ_LIMIT)
        if content.truncated:
            return _refused("TooLarge", f"`{path}` has {content.size:,} bytes; at most {READ_LIMIT:,} are read")
        if b"\0" in content.data:
            return _refused("NotText", f"`{path}` is not a text file; it has {content.size:,} bytes")
        return ToolResult.of(content.data.decode(errors="replace"), {"size": content.size})


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


class FileList:
    """`file_list`: paths below a directory that match a pattern, one a line, those of directories with a final `/`."""

    name = "file_list"
    description = (
        "Lists files and directories of the workspace. Names that begin with a dot are listed only where the pattern "
        "has the dot."
    )
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "pattern": {
                "type": "string",
                "minLength": 1,
                "maxLength": 1_024,
                "description": "Like `*.py` or `src/**/*.md`, `**` being any directories; `*` if not given.",
            },
            "path": {
                "type": "string",
                "minLength": 1,
                "maxLength": 4_096,
                "description": "The directory to look in, relative to the workspace; the workspace if not given.",
            },
        },
        "additionalProperties": False,
    }
    idempotent = True
    execution_mode: ExecutionMode = "parallel"

    def __init__(self, sandboxes: Sandboxes) -> None:
        self._sandboxes = sandboxes

    async def execute(self, call: ToolInvocation) -> ToolResult:
        path, pattern = str(call.arguments.get("path", ".")), str(call.arguments.get("pattern", "*"))
        return await answer(self, self._sandboxes, lambda sandbox: self._list(sandbox, path, pattern))

    async def _list(self, sandbox: Sandbox, path: str, pattern: str) -> ToolResult:
        found = await sandbox.find(path, pattern, max_entries=LIST_LIMIT)
        lines = [entry.path + ("/" if entry.kind == "directory" else "") for entry in found.entries]
        lines += ["[there are more; use a narrower pattern]"] if found.more else []
        text = "\n".join(lines) or f"Nothing in `{path}` matches `{pattern}`."
        return ToolResult.of(text, {"entries": len(found.entries), "more": found.more})


def _refused(reason: str, text: str) -> ToolResult:
    return ToolResult.of(text, {"error": reason}, is_error=True)
