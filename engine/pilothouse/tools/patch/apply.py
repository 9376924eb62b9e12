"""The built-in `apply_patch` tool: changes several files at once, or none of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from pilothouse.tools.files import READ_LIMIT
from pilothouse.tools.patch.changes import FileChange, PatchRefused
from pilothouse.tools.patch.envelope import BEGIN, read_envelope
from pilothouse.tools.patch.fitting import Text, fit, render
from pilothouse.tools.patch.unified import read_unified
from pilothouse.tools.sandbox.client import FileContent, Sandbox
from pilothouse.tools.sandbox.errors import PathNotFound, RequestError
from pilothouse.tools.sandboxed import Sandboxes, answer
from pilothouse.tools.tool import ExecutionMode, ToolInvocation, ToolResult

_NEW_FILE = 0o600


class ApplyPatch:
    """`apply_patch`: applies a patch of either format, or with `dry_run` only shows what it would do.

    Every hunk of every file is fitted before anything is written; if a write fails after that, what was written before
    it is put back. A patch that was applied does not fit a second time, so a call is never repeated, and no other tool
    runs beside it.
    """

    name = "apply_patch"
    description = (
        "Changes, adds, moves and deletes text files of the workspace by a patch: all of it, or nothing if a part does "
        "not fit. The patch is `*** Begin Patch` ... `*** End Patch` with sections `*** Update File: PATH`, "
        "`*** Add File: PATH`, `*** Delete File: PATH`; or a unified diff."
    )
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "patch": {"type": "string", "minLength": 1, "description": "The patch."},
            "dry_run": {"type": "boolean", "description": "Only show what would be changed; false if not given."},
        },
        "required": ["patch"],
        "additionalProperties": False,
    }
    idempotent = False
    execution_mode: ExecutionMode = "sequential"

    def __init__(self, sandboxes: Sandboxes) -> None:
        self._sandboxes = sandboxes

    async def execute(self, call: ToolInvocation) -> ToolResult:
        patch, dry_run = str(call.arguments["patch"]), call.arguments.get("dry_run") is True
        try:
            changes = read_patch(patch)
            return await answer(self, self._sandboxes, lambda sandbox: _apply(sandbox, changes, dry_run))
        except PatchRefused as error:
            text = f"Nothing was changed: {error}."
            return ToolResult.of(text, {"error": "PatchRefused"}, is_error=True)


def read_patch(patch: str) -> tuple[FileChange, ...]:
    """What the patch asks for. Raises PatchRefused."""
    patch = patch.lstrip("\n").replace("\r\n", "\n")
    return read_envelope(patch) if patch.lstrip().startswith(BEGIN) else read_unified(patch)


@dataclass(frozen=True, slots=True)
class _File:
    """A file as it was: None where there was none."""

    content: FileContent | None
    text: str | None

    @property
    def mode(self) -> int:
        return self.content.mode if self.content else _NEW_FILE


@dataclass(slots=True)
class _Plan:
    """The files that the patch names, as they were and as they will be, and the account of it."""

    before: dict[str, _File] = field(default_factory=dict)
    after: dict[str, str | None] = field(default_factory=dict)
    modes: dict[str, int] = field(default_factory=dict)
    account: list[str] = field(default_factory=list)

    async def add(self, sandbox: Sandbox, change: FileChange) -> None:
        """Raises PatchRefused where the change does not fit what the ones before it leave."""
        await self._load(sandbox, change.path)
        if change.new_path is not None:
            await self._load(sandbox, change.new_path)
            if self.after[change.new_path] is not None:
                raise PatchRefused(f"`{change.new_path}` is there already, so `{change.path}` cannot become it")
        text = self.after[change.path]
        if change.kind == "add":
            self._add(change, text)
        elif text is None:
            raise PatchRefused(f"`{change.path}` does not exist in the workspace")
        elif change.kind == "delete":
            self.after[change.path] = None
            self.account.append(f"D {change.path}")
        else:
            self._update(change, Text(text))

    def _add(self, change: FileChange, text: str | None) -> None:
        if text is not None:
            raise PatchRefused(f"`{change.path}` is there already; update it instead")
        self.after[change.path] = change.text
        self.account.append(f"A {change.path}\n" + "\n".join(f"+{line}" for line in change.text.splitlines()))

    def _update(self, change: FileChange, text: Text) -> None:
        try:
            edits = fit(text, change.hunks)
        except PatchRefused as error:
            raise PatchRefused(f"`{change.path}`: {error}") from None
        target = change.new_path or change.path
        self.after[change.path] = None
        self.after[target] = text.edited(edits)
        self.modes[target] = self.modes[change.path]
        moved = f" -> {target}" if change.new_path else ""
        self.account.append(f"M {change.path}{moved}\n{render(text, edits)}".rstrip("\n"))

    async def _load(self, sandbox: Sandbox, path: str) -> None:
        if path not in self.before:
            file = self.before[path] = await _read(sandbox, path)
            self.after[path], self.modes[path] = file.text, file.mode


async def _apply(sandbox: Sandbox, changes: Sequence[FileChange], dry_run: bool) -> ToolResult:
    plan = _Plan()
    for change in changes:
        await plan.add(sandbox, change)
    if not dry_run:
        await _write(sandbox, plan)
    heading = "The patch fits; nothing was changed yet:" if dry_run else "Done:"
    details: dict[str, JsonValue] = {"dryRun": dry_run, "files": len(changes)}
    return ToolResult.of("\n".join((heading, *plan.account)), details)


async def _read(sandbox: Sandbox, path: str) -> _File:
    try:
        content = await sandbox.get(path, max_bytes=READ_LIMIT)
    except PathNotFound:
        return _File(None, None)
    if content.truncated or b"\0" in content.data:
        raise PatchRefused(f"`{path}` is no text file of at most {READ_LIMIT:,} bytes")
    return _File(content, content.data.decode(errors="surrogateescape"))


async def _write(sandbox: Sandbox, plan: _Plan) -> None:
    """Raises RequestError once all that had been written is as it was."""
    written: list[str] = []
    try:
        for path, text in plan.after.items():
            if text != plan.before[path].text:
                written.append(path)
                await _put(sandbox, path, text, plan.modes[path])
    except RequestError:
        for path in reversed(written):
            file = plan.before[path]
            await _put(sandbox, path, file.text, file.mode)
        raise


async def _put(sandbox: Sandbox, path: str, text: str | None, mode: int) -> None:
    if text is not None:
        await sandbox.put(path, text.encode(errors="surrogateescape"), mode=mode)
        return
    try:
        await sandbox.remove(path)
    except PathNotFound:
        return
