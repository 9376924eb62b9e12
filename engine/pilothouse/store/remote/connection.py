"""HTTP to a gateway: requests that bear the attempt's token, and what their answers mean."""

from collections.abc import Callable
from typing import TypeVar

import httpx

from pilothouse.records.runs import AttemptRef
from pilothouse.records.values import ValueRefused
from pilothouse.store.errors import StoreUnavailable
from pilothouse.store.remote.passes import Pass
from pilothouse.store.remote.posting import post, refusal
from pilothouse.store.remote.wire import LIMITS, Fields, Misread, Text, parse

T = TypeVar("T")


class Connection:
    """The calls of one attempt, whose pass must have been fetched."""

    def __init__(self, http: httpx.AsyncClient, held: Pass) -> None:
        self._http = http
        self._pass = held

    @property
    def ref(self) -> AttemptRef:
        return self._pass.ref

    async def call(self, method: str, body: Text | bytes, meaning: Callable[[Fields], T]) -> T:
        """What the answer means. Raises what the store refused, or StoreUnavailable."""
        data = await self.bytes_of(method, body)
        try:
            return meaning(parse(data))
        except Misread as error:
            raise StoreUnavailable(f"the store API's answer to {method} cannot be read: {error}") from None

    async def bytes_of(self, method: str, body: Text | bytes) -> bytes:
        """The answer as it came. A refused token is renewed once: a refusal proves that nothing was done."""
        data = body if isinstance(body, bytes) else body.encode()
        if len(data) > LIMITS[method]:
            size = f"{len(data):,} bytes; the store API takes at most {LIMITS[method]:,}"
            raise ValueRefused(f"the request `{method}` has {size}")
        token = await self._pass.token()
        answer = await post(self._http, method, data, token)
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            answer = await post(self._http, method, data, await self._pass.renewed(token))
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            raise StoreUnavailable("the store API refuses the token that it has just given")
        if not answer.is_success:
            raise refusal(answer)
        return answer.content
