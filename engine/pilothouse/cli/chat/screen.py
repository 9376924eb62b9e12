"""What a conversation looks like while it goes on: text as it comes, calls and their results in a line each."""

import json
import sys

from pilothouse.agents.abort import Signal
from pilothouse.agents.events import MessageEnd, MessageUpdate, ToolExecutionEnd, ToolExecutionStart
from pilothouse.agents.harness.events import HarnessEvent, SessionCompact
from pilothouse.agents.messages import AssistantMessage, TextContent
from pilothouse.cli.printing import safe
from pilothouse.models.provider import TextDelta

_WIDTH = 100
"""Characters that are shown of a call's arguments and of its result."""


class Screen:
    """Listens to a harness. What comes from models and tools cannot command the terminal."""

    def __init__(self, prompts: bool) -> None:
        """`prompts`: a person types here, and is told when."""
        self._prompts = prompts
        self._open = False

    async def __call__(self, event: HarnessEvent, signal: Signal) -> None:
        match event:
            case MessageUpdate(delta=TextDelta(delta=text)):
                self._write(text)
            case ToolExecutionStart(tool_name=name, args=args):
                self.tell(f"> {name} {_short(json.dumps(args, ensure_ascii=False))}")
            case ToolExecutionEnd(tool_name=name, result=result):
                texts = (block.text for block in result.content if isinstance(block, TextContent))
                self.tell(f"{'! ' if result.is_error else '< '}{name}: {_short(' '.join(texts))}")
            case SessionCompact():
                self.tell("- the older part of the conversation was summarised")
            case MessageEnd(message=AssistantMessage() as message):
                self._end(message)

    def ask(self) -> None:
        """Somebody may type now."""
        if self._prompts:
            sys.stdout.write("\nyou> ")
            sys.stdout.flush()

    def tell(self, line: str) -> None:
        self._close()
        self._write(f"{line}\n")
        self._open = False

    def _end(self, message: AssistantMessage) -> None:
        self._close()
        if message.stop_reason in ("error", "aborted"):
            self.tell(f"! {message.stop_reason}: {message.error_message or 'no reason is given'}")

    def _close(self) -> None:
        if self._open:
            self._write("\n")
        self._open = False

    def _write(self, text: str) -> None:
        sys.stdout.write(safe(text))
        sys.stdout.flush()
        self._open = not text.endswith("\n")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else f"{line[:_WIDTH]} … ({len(line)} characters)"
