"""From what an Agent says about its model to the provider that speaks to it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pilothouse.models.provider import ModelProvider

PROVIDERS = ("OpenAI", "Scripted")
"""Names that `create` knows, as an Agent's `model.provider` writes them."""


def create(
    provider: str,
    *,
    model: str | None = None,
    base_url: str | None = None,
    api_key: Callable[[], str | None] | None = None,
    script: Iterable[Mapping[str, Any]] = (),
) -> ModelProvider:
    """The provider of that name. Raises `ValueError` saying what is missing or not supported yet."""
    if provider == "OpenAI":
        return _openai(model, base_url, api_key)
    if provider == "Scripted":
        return _scripted(model, script)
    raise ValueError(f"model.provider {provider!r} is not supported yet; known are {', '.join(PROVIDERS)}")


def _openai(model: str | None, base_url: str | None, api_key: Callable[[], str | None] | None) -> ModelProvider:
    # Imported here because httpx is slow to load, and most commands never speak to a model.
    from pilothouse.models.openai import DEFAULT_BASE_URL, OpenAIProvider, no_key

    if not model:
        raise ValueError("model.name is missing: provider OpenAI needs to know which model to ask for")
    return OpenAIProvider(model, base_url=base_url or DEFAULT_BASE_URL, api_key=api_key or no_key)


def _scripted(model: str | None, script: Iterable[Mapping[str, Any]]) -> ModelProvider:
    from pilothouse.models.script import parse_script
    from pilothouse.models.scripted import ScriptedProvider

    return ScriptedProvider(parse_script(script), model or "scripted")
