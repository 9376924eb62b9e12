"""The pass of an attempt: a short-lived token that a gateway gives for the Pod's own, and that is renewed in time."""

import asyncio
import re
import time
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

from pilothouse.records.runs import AttemptRef
from pilothouse.store.errors import StoreUnavailable, StoreUnusable
from pilothouse.store.remote.answers import read_ref
from pilothouse.store.remote.posting import post, refusal
from pilothouse.store.remote.wire import Misread, parse

_VISIBLE = re.compile(r"[\x21-\x7e]+")

_PAUSE = 15.0
"""Seconds until a renewal that failed is tried again, as long as the old token is good."""


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    ref: AttemptRef
    renew_at: float
    ends_at: float


class Pass:
    """Fetched once before use with `fetch`. The Pod's token is read anew each time, for the kubelet replaces it."""

    def __init__(self, http: httpx.AsyncClient, token_file: Path) -> None:
        self._http = http
        self._file = token_file
        self._lock = asyncio.Lock()
        self._token: _Token | None = None

    @property
    def ref(self) -> AttemptRef:
        """The attempt that the gateway knows this Pod to carry out."""
        return self._held.ref

    async def fetch(self) -> None:
        """Asks for a token. Raises StoreUnavailable, Superseded where the attempt is over, and StoreUnusable where
        this Pod is not admitted."""
        asked = time.monotonic()
        answer = await post(self._http, "token", b"", await self._projected())
        if not answer.is_success:
            raise refusal(answer)
        token = _read(answer.content, asked)
        if self._token is not None and token.ref != self._token.ref:
            raise StoreUnusable("the store API takes this Pod for another attempt than before; end this process")
        self._token = token

    async def token(self) -> str:
        """A token with time left; renewed once half of its time is over."""
        if time.monotonic() < self._held.renew_at:
            return self._held.text
        async with self._lock:
            if time.monotonic() >= self._held.renew_at:
                await self._renew_early()
            return self._held.text

    async def renewed(self, refused: str) -> str:
        """Another token than the one that was refused."""
        async with self._lock:
            if self._held.text == refused:
                await self.fetch()
            return self._held.text

    async def _renew_early(self) -> None:
        """While the old token is good, nothing needs to wait for a gateway that gives no new one now."""
        try:
            await self.fetch()
        except (StoreUnavailable, StoreUnusable):
            now, old = time.monotonic(), self._held
            if now >= old.ends_at:
                raise
            self._token = replace(old, renew_at=min(now + _PAUSE, old.ends_at))

    @property
    def _held(self) -> _Token:
        assert self._token is not None, "fetch comes first"  # noqa: S101
        return self._token

    async def _projected(self) -> str:
        try:
            token = (await asyncio.to_thread(self._file.read_text)).strip()
        except (OSError, ValueError) as error:
            raise StoreUnusable(f"the Pod's token cannot be read from {self._file}: {error}") from None
        if not _VISIBLE.fullmatch(token):
            raise StoreUnusable(f"{self._file} holds no token; mount a projected service account token there")
        return token


def _read(data: bytes, asked: float) -> _Token:
    """The token of an answer to what was asked then: counted from there, it never seems to live longer than it does."""
    try:
        answer = parse(data)
        text, seconds = answer.text("token"), answer.number("expires_in")
        return _Token(text, read_ref(answer.fields("attempt")), asked + seconds / 2, asked + seconds)
    except Misread as error:
        raise StoreUnavailable(f"the store API's answer to token cannot be read: {error}") from None
