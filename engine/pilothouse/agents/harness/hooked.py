"""A model whose requests pass a hook."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from pilothouse.agents.harness.hooks import Chain
from pilothouse.models.provider import ModelEvent, ModelProvider, ModelRequest


class HookedModel:
    """A hook that fails makes an answer that failed, as a provider that raises does."""

    def __init__(self, model: ModelProvider, before: Chain[ModelRequest]) -> None:
        self.api = model.api
        self.provider = model.provider
        self.model = model.model
        self._model = model
        self._before = before

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        async with aclosing(self._model.stream(await self._before.through(request))) as events:
            async for event in events:
                yield event
