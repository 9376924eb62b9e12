"""One HTTP POST that is answered by a stream of server-sent events, within limits."""

import asyncio
import functools
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from dataclasses import dataclass

import httpx

from pilothouse.models.failures import CallError, call_error, status_error
from pilothouse.models.retry import parse_retry_after
from pilothouse.models.sse import LineTooLongError, SseDecoder

_ERROR_BODY = 64 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds and bytes. `idle` is the longest silence of the server, `total` covers all tries together."""

    connect: float = 10.0
    idle: float = 120.0
    total: float = 600.0
    request_bytes: int = 32 * 1024 * 1024
    response_bytes: int = 8 * 1024 * 1024
    line_bytes: int = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Post:
    """What is sent, and until when (the event loop's clock) the whole answer must be there. `proxied`: through the
    environment's proxies, if it names some for this address."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    deadline: float
    proxied: bool = True


async def post_events(post: Post, limits: Limits) -> AsyncGenerator[str]:
    """The data of each event, as it arrives. Raises `CallError`, and nothing else but cancellation."""
    try:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(_client(limits, proxied=post.proxied))
            async with asyncio.timeout_at(post.deadline):
                response = await stack.enter_async_context(_send(client, post))
                await _check(response)
            chunks = await stack.enter_async_context(aclosing(_chunks(response, post.deadline, limits)))
            decoder = SseDecoder(limits.line_bytes)
            async for chunk in chunks:
                for data in decoder.feed(chunk):
                    yield data
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, LineTooLongError, OSError) as error:
        raise _translated(error, limits) from None


def _client(limits: Limits, *, proxied: bool) -> httpx.AsyncClient:
    """A client for one call: the pool of a long-lived one would outlive rotated proxies and event loops."""
    timeout = httpx.Timeout(limits.idle, connect=limits.connect)
    return httpx.AsyncClient(timeout=timeout, verify=_tls(), trust_env=proxied)


@functools.cache
def _tls() -> ssl.SSLContext:
    # Reading the certificate bundle takes tens of milliseconds, so once a process must do.
    return httpx.create_ssl_context()


def _send(client: httpx.AsyncClient, post: Post) -> AbstractAsyncContextManager[httpx.Response]:
    headers = {
        # Compressed answers are not asked for: a few bytes could unfold to gigabytes past the limit.
        "Accept-Encoding": "identity",
        "Accept": "text/event-stream",
        "Content-Type": "application/json",
        **post.headers,
    }
    return client.stream("POST", post.url, content=post.body, headers=headers)


async def _check(response: httpx.Response) -> None:
    if not response.is_success:
        body = await _beginning(response)
        raise status_error(response.status_code, body, parse_retry_after(response.headers.get("Retry-After")))
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise call_error("F-DEP", f"the model server sent {encoding!r} content, which was not asked for")


async def _beginning(response: httpx.Response) -> str:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) >= _ERROR_BODY:
            break
    return body.decode("utf-8", "replace")


async def _chunks(response: httpx.Response, deadline: float, limits: Limits) -> AsyncGenerator[bytes]:
    stream, received = response.aiter_raw(), 0
    while True:
        # The deadline guards each read, not the loop: while this generator rests at its yield, the task
        # belongs to the consumer, and a timeout would cancel the consumer's own work.
        async with asyncio.timeout_at(deadline):
            chunk = await anext(stream, None)
        if chunk is None:
            return
        received += len(chunk)
        if received > limits.response_bytes:
            raise call_error("F-RES", f"the answer is larger than {limits.response_bytes} bytes")
        yield chunk


def _translated(error: Exception, limits: Limits) -> CallError:
    name = type(error).__name__
    if isinstance(error, httpx.TimeoutException):
        return call_error("F-TMO", f"the model server did not answer in time ({name})", retryable=True)
    if isinstance(error, TimeoutError):
        return call_error("F-TMO", f"the answer was not complete within {limits.total:g} s", retryable=True)
    if isinstance(error, LineTooLongError):
        return call_error("F-RES", str(error))
    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol):
        return call_error("F-INP", f"the model's base URL is not usable: {error}")
    return call_error("F-DEP", f"the connection to the model server failed: {name}: {error}", retryable=True)
