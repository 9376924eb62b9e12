"""A model that works on account."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from pilothouse.agents.delegation.account import Account
from pilothouse.models.builder import MessageBuilder, Origin
from pilothouse.models.provider import Done, Failed, ModelEvent, ModelFailure, ModelProvider, ModelRequest

SPENT = "the tokens are used up that this agent and those that asked it may use together"


class Metered:
    """Charges each answer to the account. Once that is spent, the model is not asked any more: every call fails."""

    def __init__(self, model: ModelProvider, account: Account) -> None:
        self.api = model.api
        self.provider = model.provider
        self.model = model.model
        self._model = model
        self._account = account

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        if self._account.spent:
            origin = Origin(self.api, self.provider, self.model)
            yield MessageBuilder(origin, request).failed(ModelFailure("F-RES", SPENT, retryable=False))
            return
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                if isinstance(event, Done | Failed):
                    self._account.charge(event.message.usage.total_tokens)
                yield event
