"""The log of an agent's process: one JSON object a line, that something happened and never what was said."""

import json
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TextIO

from pilothouse.agents.events import AgentEvent, ToolExecutionEnd, ToolExecutionStart, TurnEnd
from pilothouse.tools.names import BUILTIN_NAMES


class Log:
    """Writes a line for each turn and each tool call, and whatever it is told. A log that cannot be written to is no
    reason to stop."""

    def __init__(self, step: str, attempt: int, out: TextIO = sys.stderr) -> None:
        self._where = {"step": step, "attempt": attempt}
        self._out = out
        self._begun: dict[str, float] = {}

    def tell(self, message: str) -> None:
        self._write("told", message=message)

    async def emit(self, event: AgentEvent) -> None:
        """Takes the events of the loop."""
        if isinstance(event, TurnEnd):
            answer = event.message
            calls, tokens = len(answer.tool_calls), answer.usage.total_tokens
            self._write("turn", stop=answer.stop_reason, error=answer.error_code, tokens=tokens, calls=calls)
        elif isinstance(event, ToolExecutionStart):
            self._begun[event.tool_call_id] = time.monotonic()
        elif isinstance(event, ToolExecutionEnd):
            seconds = round(time.monotonic() - self._begun.pop(event.tool_call_id, time.monotonic()), 3)
            tool = event.tool_name if event.tool_name in BUILTIN_NAMES else None  # or the model's invention
            self._write("tool", tool=tool, error=event.result.is_error, seconds=seconds)

    def _write(self, event: str, **fields: object) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"at": at, "event": event, **self._where, **fields})
        with suppress(OSError, ValueError):
            print(line, file=self._out, flush=True)
