"""The built-in `shell` tool: runs a command in the sandbox."""

from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from pilothouse.tools.output import WHOLE_LIMIT
from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandbox.output import HeadAndTail, RunResult
from pilothouse.tools.sandboxed import Sandboxes, answer
from pilothouse.tools.tool import ExecutionMode, ToolInvocation, ToolResult

DEFAULT_TIMEOUT = 120
LONGEST_TIMEOUT = 3_600


class Shell:
    """`shell`: the output of a command as a terminal would show it, then how it ended. A command that does
    not end with exit code 0 is an error result. Commands have effects, so a call is never repeated."""

    name = "shell"
    description = "Runs a shell command in the workspace. Shows its output and its exit code."
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "command": {"type": "string", "minLength": 1, "description": "The command, for /bin/sh."},
            "timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": LONGEST_TIMEOUT,
                "description": f"Seconds after which it is ended; {DEFAULT_TIMEOUT} if not given.",
            },
        },
        "required": ["command"],
        "additionalProperties": False,
    }
    idempotent = False
    execution_mode: ExecutionMode = "parallel"

    def __init__(self, sandboxes: Sandboxes) -> None:
        self._sandboxes = sandboxes

    async def execute(self, call: ToolInvocation) -> ToolResult:
        timeout = call.arguments.get("timeout", DEFAULT_TIMEOUT)
        seconds = float(timeout) if isinstance(timeout, int | float) else float(DEFAULT_TIMEOUT)
        command = str(call.arguments["command"])
        return await answer(self, self._sandboxes, lambda sandbox: self._run(sandbox, command, seconds))

    async def _run(self, sandbox: Sandbox, command: str, seconds: float) -> ToolResult:
        output = HeadAndTail(WHOLE_LIMIT)
        ended = await sandbox.run(command, timeout=seconds, max_output=0, on_output=lambda _, data: output.add(data))
        text = output.content().decode(errors="replace")
        gap = "\n" if text and not text.endswith("\n") else ""
        details: dict[str, JsonValue] = {
            "exitCode": ended.exit_code,
            "signal": ended.signal,
            "timedOut": ended.timed_out,
        }
        return ToolResult.of(f"{text}{gap}{_ending(ended, seconds)}", details, is_error=ended.exit_code != 0)


def _ending(ended: RunResult, seconds: float) -> str:
    if ended.timed_out:
        return f"[ended after its timeout of {seconds:g} seconds]"
    if ended.exit_code is None:
        return f"[killed by signal {ended.signal}]"
    return f"[exit code {ended.exit_code}]"
