"""A model that is asked over HTTP, in any of the formats."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from pilothouse.models.builder import Origin
from pilothouse.models.call import Call
from pilothouse.models.endpoint import Endpoint, checked
from pilothouse.models.failures import CallError
from pilothouse.models.patience import Patience
from pilothouse.models.prices import Prices
from pilothouse.models.provider import ModelEvent, ModelFailure, ModelRequest
from pilothouse.models.wire import Target, Wire


def no_key() -> None:
    """For servers that ask for no API key."""
    return


class HttpProvider:
    """Streams answers in the format `wire`; `provider` names the service, as messages record it.

    `api_key` is called once per model call, in a thread, so that it may read a file whose content changes.
    The key goes into the one header that the format has for it and nowhere else: failure texts are searched for it.
    Proxies are taken from the environment unless `proxied` is False.

    Raises `ValueError` if `base_url` is no http or https address, or holds a password.
    """

    def __init__(
        self,
        wire: Wire,
        model: str,
        *,
        provider: str,
        base_url: str,
        api_key: Callable[[], str | None] = no_key,
        prices: Prices | None = None,
        patience: Patience | None = None,
        proxied: bool = True,
    ) -> None:
        self.api = wire.api
        self.provider = provider
        self.model = model
        target = Target(Origin(wire.api, provider, model), checked(base_url))
        self._endpoint = Endpoint(wire, target, api_key, prices, patience or Patience(), proxied)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        call = Call(self._endpoint, request)
        try:
            async with aclosing(call.events()) as events:
                async for event in events:
                    yield event
        except CallError as error:
            yield call.failed(error.failure)
        except Exception as error:  # the protocol's promise: a failure is an event
            what = f"the model call failed unexpectedly: {type(error).__name__}"
            yield call.failed(ModelFailure("F-UNK", what, retryable=False))
