"""Where a model is asked, in which format and with which key."""

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass

import httpx

from pilothouse.models.builder import MessageBuilder
from pilothouse.models.failures import call_error
from pilothouse.models.http import Post
from pilothouse.models.patience import Patience
from pilothouse.models.prices import Prices
from pilothouse.models.provider import ModelRequest
from pilothouse.models.wire import Target, Wire

_VISIBLE_ASCII = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class Endpoint:
    wire: Wire
    target: Target
    api_key: Callable[[], str | None]
    prices: Prices | None
    patience: Patience
    proxied: bool

    def builder(self, request: ModelRequest) -> MessageBuilder:
        return MessageBuilder(self.target.origin, request, self.prices)

    async def key(self) -> str | None:
        """The API key of this moment. Raises `CallError`."""
        try:
            key = (await asyncio.to_thread(self.api_key) or "").strip()
        except Exception as error:  # whatever the callable does, its text may hold the key
            what = str(error) if isinstance(error, OSError) else type(error).__name__
            raise call_error("F-ENV", f"the API key cannot be read: {what}", retryable=True) from None
        if key and not _VISIBLE_ASCII.fullmatch(key):
            raise call_error("F-ENV", "the API key holds characters that an HTTP header cannot carry")
        return key or None

    def post(self, request: ModelRequest, key: str | None, deadline: float) -> Post:
        """The HTTP request. Raises `CallError` if it is too large."""
        body = json.dumps(self.wire.encode(request, self.target)).encode()
        limit = self.patience.limits.request_bytes
        if len(body) > limit:
            raise call_error("F-INP", f"the request has {len(body)} bytes, more than the {limit} allowed")
        url = self.wire.endpoint(self.target.base)
        return Post(str(url), self.wire.headers(key), body, deadline, self.proxied)


def checked(base_url: str) -> httpx.URL:
    """The address. Raises `ValueError` if it is no http or https address, or holds a password."""
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL as error:
        raise ValueError(f"baseURL is not an address: {error}") from None
    if url.userinfo:
        raise ValueError("baseURL must not hold a user or password; give the key as apiKeyFrom")
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError(f"baseURL must begin with http:// or https:// and name a host, not {base_url!r}")
    return url
