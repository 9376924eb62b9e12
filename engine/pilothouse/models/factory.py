"""From what an Agent says about its model to the provider that speaks to it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pilothouse.models.prices import Prices
from pilothouse.models.provider import ModelProvider

# The providers are imported where they are made: httpx is slow to load, and most commands never speak to a model.


def create(
    provider: str,
    *,
    model: str | None = None,
    api: str = "ChatCompletions",
    base_url: str | None = None,
    api_key: Callable[[], str | None] | None = None,
    prices: Prices | None = None,
    script: Iterable[Mapping[str, Any]] = (),
) -> ModelProvider:
    """The provider of that name; names are those of an Agent's `spec.model`. Raises `ValueError` saying what is
    missing or not known."""
    if provider == "Scripted":
        return _scripted(model or "scripted", script, prices)
    if not model:
        raise ValueError(f"model.name is missing: provider {provider} needs to know which model to ask for")
    if provider == "OpenAI":
        return _openai(api, model, base_url, api_key, prices)
    if provider == "Anthropic":
        return _anthropic(model, base_url, api_key, prices)
    if provider == "Local":
        return _local(model, prices)
    raise ValueError(f"model.provider {provider!r} is not known; there are OpenAI, Anthropic, Local and Scripted")


def _openai(
    api: str, model: str, base_url: str | None, api_key: Callable[[], str | None] | None, prices: Prices | None
) -> ModelProvider:
    from pilothouse.models.chat.wire import CHAT
    from pilothouse.models.http_provider import HttpProvider, no_key
    from pilothouse.models.responses.wire import RESPONSES

    wire = {"ChatCompletions": CHAT, "Responses": RESPONSES}.get(api)
    if wire is None:
        raise ValueError(f"model.api {api!r} is not known; there are ChatCompletions and Responses")
    url = base_url or "https://api.openai.com/v1"
    return HttpProvider(wire, model, provider="openai", base_url=url, api_key=api_key or no_key, prices=prices)


def _anthropic(
    model: str, base_url: str | None, api_key: Callable[[], str | None] | None, prices: Prices | None
) -> ModelProvider:
    from pilothouse.models.anthropic.wire import MESSAGES
    from pilothouse.models.http_provider import HttpProvider, no_key

    url = base_url or "https://api.anthropic.com"
    return HttpProvider(MESSAGES, model, provider="anthropic", base_url=url, api_key=api_key or no_key, prices=prices)


def _local(model: str, prices: Prices | None) -> ModelProvider:
    from pilothouse.models.local import LocalProvider

    return LocalProvider(model, prices)


def _scripted(model: str, script: Iterable[Mapping[str, Any]], prices: Prices | None) -> ModelProvider:
    from pilothouse.models.script import parse_script
    from pilothouse.models.scripted import ScriptedProvider

    return ScriptedProvider(parse_script(script), model, prices)
