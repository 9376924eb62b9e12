"""A small model in this process: a GGUF file, served by llama.cpp to this process alone."""

import asyncio
import importlib.util
import os
import secrets
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pilothouse.models.builder import MessageBuilder, Origin
from pilothouse.models.chat.wire import CHAT
from pilothouse.models.http_provider import HttpProvider
from pilothouse.models.prices import Prices
from pilothouse.models.provider import ModelEvent, ModelFailure, ModelRequest

_BINDING = "xllamacpp"


class LocalModelError(Exception):
    """A model cannot run here; the text says what is missing."""


@dataclass(frozen=True, slots=True)
class _Served:
    """A model in memory. The server lives as long as the object, so `server` is kept."""

    server: Any
    address: str
    key: str


_served: dict[Path, _Served] = {}
_serving = threading.Lock()


class LocalProvider:
    """Runs the GGUF file that `model` names: its path, or an installed Python package that holds one.

    The model is loaded by the first call, in a thread, and then kept for all providers of this process. It is reached
    over the loopback interface, never through a proxy, and with a key that no other process knows.
    """

    def __init__(self, model: str, prices: Prices | None = None) -> None:
        self.api = CHAT.api
        self.provider = "local"
        self.model = model
        self._prices = prices

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        try:
            served = await asyncio.to_thread(_serve, self.model)
        except LocalModelError as error:
            builder = MessageBuilder(Origin(self.api, self.provider, self.model), request)
            yield builder.failed(ModelFailure("F-ENV", str(error), retryable=False))
            return
        provider = HttpProvider(
            CHAT,
            self.model,
            provider=self.provider,
            base_url=f"{served.address}/v1",
            api_key=lambda: served.key,
            prices=self._prices,
            proxied=False,
        )
        async with aclosing(provider.stream(request)) as events:
            async for event in events:
                yield event


def _serve(model: str) -> _Served:
    with _serving:
        path = _weights(model)
        if path not in _served:
            _served[path] = _load(path)
        return _served[path]


def _weights(model: str) -> Path:
    if model.endswith(".gguf"):
        path = Path(model).expanduser()
        if not path.is_file():
            raise LocalModelError(f"model.name: no such file: {model}")
        return path.resolve()
    files = sorted(_package(model).glob("*.gguf"))
    if len(files) != 1:
        raise LocalModelError(f"model.name: the package {model} holds {len(files)} .gguf files, not one")
    return files[0]


def _package(name: str) -> Path:
    """The folder of an installed package, which is not imported."""
    module = name.replace("-", "_")
    spec = importlib.util.find_spec(module) if module.isidentifier() else None
    if spec is None or spec.origin is None:
        raise LocalModelError(f"model.name: {name} is neither the path of a .gguf file nor an installed package")
    return Path(spec.origin).parent


def _load(path: Path) -> _Served:
    try:
        import xllamacpp
    except ImportError as error:
        what = f"provider Local needs the Python package {_BINDING}, which is not usable here: {error}"
        raise LocalModelError(what) from None
    key = secrets.token_urlsafe(32)
    try:
        server = xllamacpp.Server(_params(xllamacpp.CommonParams(), path, key))
    except Exception as error:
        raise LocalModelError(f"{path.name} cannot be loaded as a model: {error}") from None
    return _Served(server, server.listening_address, key)


def _params(params: Any, path: Path, key: str) -> Any:
    params.model.path = str(path)
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.n_parallel = 1
    # Threads that compute wait for each other by spinning: one core is left to everything else.
    params.cpuparams.n_threads = min(4, max(1, (os.cpu_count() or 1) - 1))
    params.ui = False
    params.verbosity = 0
    return params
