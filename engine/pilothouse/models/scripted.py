"""A model that says what a script tells it to: for examples, tests and rehearsals without a key."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator

from pilothouse.models.builder import MessageBuilder, Origin
from pilothouse.models.prices import Prices
from pilothouse.models.provider import ModelEvent, ModelFailure, ModelRequest, ToolCallStart
from pilothouse.models.script import Script, ScriptedCall, ScriptedTurn

CHUNK = 16
"""Characters in one delta."""


class ScriptedProvider:
    """Answers with the turn whose number is that of the answers the conversation holds already.

    So a process that resumes a conversation goes on where the last one stopped. Asking for more turns than
    the script has is a failure that says so.
    """

    def __init__(self, script: Script, model: str = "scripted", prices: Prices | None = None) -> None:
        self.api = "scripted"
        self.provider = "scripted"
        self.model = model
        self._script = script
        self._prices = prices

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        builder = MessageBuilder(Origin(self.api, self.provider, self.model), request, self._prices)
        for event in self._events(request.turn, builder):
            await asyncio.sleep(0)
            yield event

    def _events(self, number: int, builder: MessageBuilder) -> Iterator[ModelEvent]:
        if number >= len(self._script):
            yield builder.failed(_past_the_end(number, len(self._script)))
            return
        turn = self._script[number]
        builder.usage = turn.tokens
        yield builder.start()
        yield from _content(turn, builder)
        if turn.error:
            yield builder.failed(ModelFailure(turn.error.code, turn.error.message, turn.error.retryable))
        else:
            yield builder.done("toolUse" if turn.tool_calls else "stop")


def _content(turn: ScriptedTurn, builder: MessageBuilder) -> Iterator[ModelEvent]:
    for piece in _pieces(turn.thinking):
        yield builder.thinking(piece)
    for piece in _pieces(turn.text):
        yield builder.text(piece)
    for call in turn.tool_calls:
        yield from _call(call, builder)


def _call(call: ScriptedCall, builder: MessageBuilder) -> Iterator[ModelEvent]:
    started: ToolCallStart = builder.toolcall_start(call.id, call.name)
    yield started
    text = json.dumps(call.arguments) if call.arguments_text is None else call.arguments_text
    for piece in _pieces(text):
        yield builder.toolcall_delta(started.content_index, piece)
    yield from builder.toolcall_ends()


def _pieces(text: str) -> Iterator[str]:
    for at in range(0, len(text), CHUNK):
        yield text[at : at + CHUNK]


def _past_the_end(number: int, length: int) -> ModelFailure:
    message = f"the script has {length} turns, and the conversation asks for turn {number + 1}"
    return ModelFailure("F-INP", message, retryable=False)
