"""One model call: its tries, and what they have passed on so far."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import count

from pilothouse.models.endpoint import Endpoint
from pilothouse.models.failures import CallError, presentable
from pilothouse.models.http import Post, post_events
from pilothouse.models.provider import Failed, ModelEvent, ModelFailure, ModelRequest


class Call:
    """A try that failed before anything of the answer was passed on is repeated as `patience.retry` says.

    After the first delta nothing is repeated: what was announced cannot be taken back. The call fails with what had
    arrived and with a failure that is retryable; the message is kept with the stop reason `error`, no model sees it
    again, and whoever asks anew asks for the same turn.
    """

    def __init__(self, endpoint: Endpoint, request: ModelRequest) -> None:
        self._endpoint = endpoint
        self._request = request
        self._patience = endpoint.patience
        self._secret: str | None = None
        self._passed_on = False
        self._builder = endpoint.builder(request)

    def failed(self, failure: ModelFailure) -> Failed:
        return self._builder.failed(presentable(failure, self._secret))

    async def events(self) -> AsyncGenerator[ModelEvent]:
        """Raises `CallError`."""
        deadline = asyncio.get_running_loop().time() + self._patience.limits.total
        self._secret = await self._endpoint.key()
        post = self._endpoint.post(self._request, self._secret, deadline)
        for attempt in count(1):
            try:
                async with aclosing(self._try(post)) as events:
                    async for event in events:
                        yield event
                return
            except CallError as error:
                await self._wait(error, attempt, deadline)

    async def _try(self, post: Post) -> AsyncGenerator[ModelEvent]:
        self._builder = self._endpoint.builder(self._request)
        start = self._builder.start()
        async with aclosing(self._answer(post)) as events:
            async for event in events:
                if not self._passed_on:
                    self._passed_on = True
                    yield start
                yield event

    async def _answer(self, post: Post) -> AsyncGenerator[ModelEvent]:
        reader = self._endpoint.wire.reader(self._builder, self._request)
        try:
            async with aclosing(post_events(post, self._patience.limits)) as stream:
                async for data in stream:
                    for event in reader.read(data):
                        yield event
                    if reader.ended:
                        break
        except CallError:
            if not reader.complete:
                raise
        for event in reader.finish():
            yield event

    async def _wait(self, error: CallError, attempt: int, deadline: float) -> None:
        """Waits for the next try. Raises `error` when there is none."""
        wait = self._patience.retry.wait(error.failure, attempt, self._patience.jitter)
        now = asyncio.get_running_loop().time()
        if wait is None or self._passed_on or now + wait >= deadline:
            raise error
        await self._patience.sleep(wait)
