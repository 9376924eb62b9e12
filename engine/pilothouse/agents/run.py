"""One run of the loop: it can be aborted, and its events come to an end whatever happens."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from pilothouse.agents.abort import Signal, cancellations
from pilothouse.agents.events import AgentEnd, AgentEvent, Emit, MessageEnd, MessageStart, TurnEnd, TurnStart
from pilothouse.agents.journal import Recorder
from pilothouse.agents.messages import AssistantMessage, Message
from pilothouse.agents.model_call import ABORTED, incomplete
from pilothouse.models.provider import ModelProvider
from pilothouse.records.failures import Failed
from pilothouse.store.errors import StoreError


class Run:
    """Announces the loop's events to `listen`.

    A run that was aborted ends with an answer that says so. A failure of a hook or a listener becomes an answer with
    the stop reason `error` and the events that close a run. Errors of the store, Failed of a tool, and what a
    listener raises after the end are raised.
    """

    def __init__(self, provider: ModelProvider, recorder: Recorder, listen: Emit) -> None:
        self.signal = Signal()
        self._provider = provider
        self._recorder = recorder
        self._listen = listen
        self._task: asyncio.Future[object] | None = None
        self._announcing = 0
        self._cancelled = False
        self._ended = False

    def abort(self) -> None:
        """Cancels the loop, but no listener: it is done once those that listen now have heard. Doing it again changes
        nothing."""
        self.signal.aborted = True
        self._cancel()

    async def play(self, loop: Callable[[Emit], Coroutine[Any, Any, object]]) -> None:
        """Runs the loop, which gets what it announces its events to. Cancelling this is no abort of the run: it is
        raised."""
        before = cancellations()
        self._task = asyncio.ensure_future(loop(self._announce))
        try:
            await self._task
        except asyncio.CancelledError:
            if cancellations() > before or not self.signal.aborted:
                raise
            if not self._ended:
                await self._fail(ABORTED)
        except (StoreError, Failed):
            raise
        except Exception as error:
            if self._ended:
                raise
            await self._fail(str(error) or type(error).__name__)

    def _cancel(self) -> None:
        """Cancels the loop once, where it was aborted and no listener is at work."""
        if self.signal.aborted and self._task and not (self._announcing or self._cancelled or self._ended):
            self._cancelled = True
            self._task.cancel()

    async def _announce(self, event: AgentEvent) -> None:
        if isinstance(event, AgentEnd):
            event = await self._closed(event)
            self._ended = True
        await self._tell(event)
        self._cancel()

    async def _tell(self, event: AgentEvent) -> None:
        self._announcing += 1
        try:
            await self._listen(event)
        finally:
            self._announcing -= 1

    async def _closed(self, end: AgentEnd) -> AgentEnd:
        if not self.signal.aborted or _says_so(end.messages):
            return end
        await self._tell(TurnStart())
        closing = await self._say(ABORTED)
        await self._tell(TurnEnd(closing))
        return AgentEnd((*end.messages, closing))

    async def _fail(self, why: str) -> None:
        message = await self._say(why)
        await self._tell(TurnEnd(message))
        self._ended = True
        await self._tell(AgentEnd((message,)))

    async def _say(self, why: str) -> AssistantMessage:
        message = incomplete(self._provider, "aborted" if self.signal.aborted else "error", why)
        await self._tell(MessageStart(message))
        await self._recorder.append((message,))
        await self._tell(MessageEnd(message))
        return message


def _says_so(messages: Sequence[Message]) -> bool:
    last = messages[-1] if messages else None
    return isinstance(last, AssistantMessage) and last.stop_reason == "aborted"
