"""One call of the model: its stream becomes events, and its answer one message."""

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from operator import is_
from typing import Literal

import rfc8785

from pilothouse.agents.blocks import Blocks, StreamEvent
from pilothouse.agents.events import Emit, MessageStart, MessageUpdate
from pilothouse.agents.messages import AssistantMessage, ToolCall, Usage, now_ms
from pilothouse.models.provider import Done, Failed, ModelEvent, ModelProvider, ModelRequest, Start
from pilothouse.records.values import ValueRefused

ABORTED = "Operation aborted"


class ModelCall:
    """Announces the answer's start and each of its pieces; the caller records it and announces its end."""

    def __init__(self, provider: ModelProvider, emit: Emit) -> None:
        self._provider = provider
        self._emit = emit
        self._partial: AssistantMessage | None = None
        self._blocks = Blocks()

    async def answer(self, request: ModelRequest) -> AssistantMessage:
        """The complete answer. A provider that breaks its promise (raises, or ends without an answer) gives
        one with stop reason `error`, as any other failure does."""
        async with aclosing(self._events(request)) as events:
            async for event in events:
                if isinstance(event, AssistantMessage):
                    return await self._finish(_exact(event))
                await self._announce(event)
        return await self._finish(self._broken("error", "the provider's stream ended without an answer"))

    async def abort(self) -> AssistantMessage:
        """What had arrived of an answer whose call was cancelled, without its tool calls."""
        return await self._finish(self._broken("aborted", ABORTED))

    def unstorable(self, why: ValueRefused) -> AssistantMessage:
        """What stands in the session for an answer that no store takes."""
        self._partial = None
        return self._broken("error", f"the answer of the model cannot be stored: {why}")

    async def _events(self, request: ModelRequest) -> AsyncGenerator[ModelEvent | AssistantMessage]:
        try:
            async with aclosing(self._provider.stream(request)) as stream:
                async for event in stream:
                    yield event.message if isinstance(event, Done | Failed) else event
        except Exception as error:
            yield self._broken("error", f"the provider raised {type(error).__name__}: {error}")

    async def _announce(self, event: ModelEvent) -> None:
        if isinstance(event, Done | Failed):
            return
        if isinstance(event, Start):
            self._partial = event.partial
            await self._emit(MessageStart(event.partial))
        elif self._partial is not None:
            await self._update(self._blocks.around(event))

    async def _update(self, events: Iterator[StreamEvent]) -> None:
        for event in events:
            self._partial = event.partial
            await self._emit(MessageUpdate(event.partial, event))

    async def _finish(self, message: AssistantMessage) -> AssistantMessage:
        if self._partial is None:
            await self._emit(MessageStart(message))
        await self._update(self._blocks.end())
        return message

    def _broken(self, reason: Literal["error", "aborted"], why: str) -> AssistantMessage:
        return incomplete(self._provider, reason, why, self._partial)


def incomplete(
    provider: ModelProvider, reason: Literal["error", "aborted"], why: str, partial: AssistantMessage | None = None
) -> AssistantMessage:
    """An answer that did not come to its end: what had arrived of it, without its tool calls."""
    return AssistantMessage(
        content=tuple(block for block in partial.content if not isinstance(block, ToolCall)) if partial else (),
        api=provider.api,
        provider=provider.provider,
        model=provider.model,
        usage=partial.usage if partial else Usage(),
        stop_reason=reason,
        error_message=why,
        error_code="F-UNK" if reason == "error" else None,
        timestamp=now_ms(),
    )


def _exact(message: AssistantMessage) -> AssistantMessage:
    """The answer, with arguments that canonical JSON cannot hold (an integer beyond 2^53, an infinity) kept as
    text: such a call is answered with an error, and the session can store it."""
    content = tuple(_exact_call(block) if isinstance(block, ToolCall) else block for block in message.content)
    unchanged = all(map(is_, content, message.content))
    return message if unchanged else message.model_copy(update={"content": content})


def _exact_call(call: ToolCall) -> ToolCall:
    try:
        rfc8785.dumps(call.arguments)
    except rfc8785.CanonicalizationError:
        return ToolCall(id=call.id, name=call.name, arguments_text=json.dumps(call.arguments))
    return call
