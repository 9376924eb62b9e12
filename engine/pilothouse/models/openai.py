"""Any server that speaks OpenAI's chat completions: OpenAI, vLLM, Ollama, LiteLLM, llama.cpp."""

import asyncio
import json
import random
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import count

import httpx

from pilothouse.models.builder import MessageBuilder, Origin
from pilothouse.models.chat_chunks import ChunkReader
from pilothouse.models.chat_request import encode
from pilothouse.models.failures import CallError, call_error, presentable
from pilothouse.models.http import Limits, Post, post_events
from pilothouse.models.provider import Failed, ModelEvent, ModelFailure, ModelRequest
from pilothouse.models.retry import RetryPolicy

DEFAULT_BASE_URL = "https://api.openai.com/v1"

_VISIBLE_ASCII = re.compile(r"[\x21-\x7e]+")


def no_key() -> None:
    """For servers that ask for no API key."""
    return


@dataclass(frozen=True, slots=True)
class Patience:
    """How a call deals with time and size; `sleep` and `jitter` are what waiting is made of."""

    limits: Limits = field(default_factory=Limits)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random


class OpenAIProvider:
    """Streams chat completions over HTTP; proxies are taken from the environment.

    `api_key` is called once per model call, in a thread, so that it may read a file whose content changes.
    The key goes into the Authorization header and nowhere else: failure texts are searched for it. A try that
    failed before anything of the answer was passed on is repeated as `patience.retry` says.

    Raises `ValueError` if `base_url` is no http or https address, or holds a password.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = DEFAULT_BASE_URL,
        api_key: Callable[[], str | None] = no_key,
        patience: Patience | None = None,
    ) -> None:
        self.api = "openai-completions"
        self.provider = "openai"
        self.model = model
        self._url = _endpoint(_checked(base_url))
        self._api_key = api_key
        self.patience = patience or Patience()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        call = _Call(self, request)
        try:
            async with aclosing(call.events()) as events:
                async for event in events:
                    yield event
        except CallError as error:
            yield call.failed(error.failure)
        except Exception as error:  # the protocol's promise: a failure is an event
            what = f"the model call failed unexpectedly: {type(error).__name__}"
            yield call.failed(ModelFailure("F-UNK", what, retryable=False))

    @property
    def origin(self) -> Origin:
        return Origin(self.api, self.provider, self.model)

    async def key(self) -> str | None:
        """The API key of this moment. Raises `CallError`."""
        try:
            key = (await asyncio.to_thread(self._api_key) or "").strip()
        except Exception as error:  # whatever the callable does, its text may hold the key
            what = str(error) if isinstance(error, OSError) else type(error).__name__
            raise call_error("F-ENV", f"the API key cannot be read: {what}", retryable=True) from None
        if key and not _VISIBLE_ASCII.fullmatch(key):
            raise call_error("F-ENV", "the API key holds characters that an HTTP header cannot carry")
        return key or None

    def post(self, request: ModelRequest, key: str | None, deadline: float) -> Post:
        """The HTTP request. Raises `CallError` if it is too large."""
        # OpenAI's reasoning models refuse the older name; most other servers know only that one.
        official = self._url.host == "api.openai.com"
        limit_name = "max_completion_tokens" if official else "max_tokens"
        body = json.dumps(encode(request, self.model, max_tokens_field=limit_name)).encode()
        limit = self.patience.limits.request_bytes
        if len(body) > limit:
            raise call_error("F-INP", f"the request has {len(body)} bytes, more than the {limit} allowed")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return Post(str(self._url), headers, body, deadline)


class _Call:
    """One model call: its tries, and what they have passed on so far."""

    def __init__(self, provider: OpenAIProvider, request: ModelRequest) -> None:
        self._provider = provider
        self._patience = provider.patience
        self._request = request
        self._secret: str | None = None
        self._passed_on = False
        self._builder = MessageBuilder(provider.origin, request)

    def failed(self, failure: ModelFailure) -> Failed:
        return self._builder.failed(presentable(failure, self._secret))

    async def events(self) -> AsyncGenerator[ModelEvent]:
        deadline = asyncio.get_running_loop().time() + self._patience.limits.total
        self._secret = await self._provider.key()
        post = self._provider.post(self._request, self._secret, deadline)
        for attempt in count(1):
            try:
                async with aclosing(self._try(post)) as events:
                    async for event in events:
                        yield event
                return
            except CallError as error:
                await self._wait(error, attempt, deadline)

    async def _try(self, post: Post) -> AsyncGenerator[ModelEvent]:
        self._builder = MessageBuilder(self._provider.origin, self._request)
        start = self._builder.start()
        async with aclosing(self._answer(post)) as events:
            async for event in events:
                if not self._passed_on:
                    self._passed_on = True
                    yield start
                yield event

    async def _answer(self, post: Post) -> AsyncGenerator[ModelEvent]:
        reader = ChunkReader(self._builder)
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


def _endpoint(base: httpx.URL) -> httpx.URL:
    """Where to post; a query in the base URL is kept, as gateways that want an API version need it."""
    return base.copy_with(path=base.path.rstrip("/") + "/chat/completions")


def _checked(base_url: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL as error:
        raise ValueError(f"baseURL is not an address: {error}") from None
    if url.userinfo:
        raise ValueError("baseURL must not hold a user or password; give the key as apiKeyFrom")
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError(f"baseURL must begin with http:// or https:// and name a host, not {base_url!r}")
    return url
