"""Which language model an Agent speaks to, and what a scripted one says."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pilothouse.api.base import ApiModel
from pilothouse.api.fields import FailureCode, Items, JsonObject, Text, Url
from pilothouse.api.governance import Cost
from pilothouse.api.meta import SecretSource
from pilothouse.api.rules import Rule, at_least_one, not_with, present

Rules = tuple[Rule, ...]
ToolName = Annotated[str, Text(128, 1, "^[A-Za-z0-9_.-]+$", says="must be a tool name: letters, digits, _, - and .")]
Tokens = Annotated[int, Field(ge=0, le=2**53 - 1)]


class ScriptedCall(ApiModel):
    """A tool call of a scripted turn."""

    rules: ClassVar[Rules] = (not_with("arguments", "argumentsText"),)

    name: ToolName
    arguments: JsonObject = Field(default_factory=dict)
    arguments_text: Annotated[str, Text(65536)] | None = None
    """Arguments that are no JSON object, as a weak model writes them."""
    id: Annotated[str, Text(128, 1)] | None = None


class ScriptedError(ApiModel):
    """A failure of the provider."""

    message: Annotated[str, Text(1024)]
    code: FailureCode = "F-DEP"
    retryable: bool = False


class ScriptedUsage(ApiModel):
    """What the provider says the turn took, in tokens."""

    input: Tokens | None = None
    output: Tokens | None = None
    cache_read: Tokens | None = None
    cache_write: Tokens | None = None


class ScriptedTurn(ApiModel):
    """What the scripted model says in one turn: thinking, text, tool calls; or an error after what stands beside it."""

    rules: ClassVar[Rules] = (at_least_one("text", "thinking", "toolCalls", "error"),)

    text: Annotated[str, Text(65536)] | None = None
    thinking: Annotated[str, Text(65536)] | None = None
    tool_calls: Annotated[tuple[ScriptedCall, ...], Items(32)] = ()
    error: ScriptedError | None = None
    usage: ScriptedUsage | None = None


class ModelOptions(ApiModel):
    """How the model answers; what is absent is left to the provider."""

    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    thinking: Literal["Off", "Minimal", "Low", "Medium", "High", "XHigh"] | None = None
    seed: int | None = None
    stop: Annotated[tuple[Annotated[str, Text(256, 1)], ...], Items(16)] = ()


class ModelPrices(ApiModel):
    """US dollars for a million tokens. What the provider's cache holds costs as much as other input if absent."""

    input: Cost
    output: Cost
    cache_read: Cost | None = None
    cache_write: Cost | None = None


class Model(ApiModel):
    """The model and where it is served."""

    rules: ClassVar[Rules] = (
        Rule(
            "self.provider == 'Scripted' ? has(self.script) : has(self.name) && !has(self.script)",
            "script must be set when provider is Scripted, and name when it is not",
            lambda model: _model_problem(model),
        ),
        Rule(
            "!has(self.api) || self.api == 'ChatCompletions' || self.provider == 'OpenAI'",
            "api may be Responses only when provider is OpenAI",
            lambda model: _api_problem(model),
        ),
        Rule(
            "self.provider != 'Local' || !(has(self.baseURL) || has(self.apiKeyFrom))",
            "baseURL, apiKeyFrom may not be set when provider is Local: the model runs in the agent's process",
            lambda model: _local_problem(model),
        ),
        Rule(
            "!has(self.options) || !has(self.options.seed)"
            " || self.provider != 'Anthropic' && (!has(self.api) || self.api != 'Responses')",
            "options.seed may not be set: the format that this model is asked in has no such field",
            lambda model: _option_problem(model, "seed", ("Anthropic", "Responses")),
        ),
        Rule(
            "!has(self.options) || !has(self.options.stop) || !has(self.api) || self.api != 'Responses'",
            "options.stop may not be set: the format that this model is asked in has no such field",
            lambda model: _option_problem(model, "stop", ("Responses",)),
        ),
    )

    provider: Literal["OpenAI", "Anthropic", "Scripted", "Local"]
    api: Literal["ChatCompletions", "Responses"] = "ChatCompletions"
    """Which of OpenAI's formats the server speaks. Servers of others that are compatible know ChatCompletions."""
    name: Annotated[str, Text(256, 1)] | None = None
    base_url: Url | None = Field(default=None, alias="baseURL")
    api_key_from: SecretSource | None = None
    """Mounted into the agent container as a file."""
    options: ModelOptions | None = None
    tool_calls: Literal["Native", "Text"] = "Native"
    """Native: in the form that the server's format has for calls. Text: in the text of its answers."""
    context_window: Annotated[int, Field(ge=1_024, le=100_000_000)] | None = None
    """Tokens that it takes at once, its answer included."""
    prices: ModelPrices | None = None
    """What tokens cost. Without them no cost is counted."""
    script: Annotated[tuple[ScriptedTurn, ...], Items(256, 1)] | None = None
    """The turns of the provider Scripted, in order."""


def _model_problem(model: Model) -> str | None:
    if model.provider == "Scripted":
        return None if model.script is not None else "script must be set when provider is Scripted"
    if model.script is not None:
        return f"script may be set only when provider is Scripted, not {model.provider}"
    return None if model.name is not None else f"name must be set when provider is {model.provider}"


def _api_problem(model: Model) -> str | None:
    if model.provider == "OpenAI" or model.api != "Responses":
        return None
    return f"api may be Responses only when provider is OpenAI, not {model.provider}"


def _local_problem(model: Model) -> str | None:
    surplus = [alias for alias in ("baseURL", "apiKeyFrom") if present(model, alias)]
    if model.provider != "Local" or not surplus:
        return None
    return f"{', '.join(surplus)} may not be set when provider is Local: the model runs in the agent's process"


def _option_problem(model: Model, option: str, lacking: tuple[str, ...]) -> str | None:
    """An option is refused where nothing could carry it; `lacking` are the providers and formats without it."""
    form = next((name for name in (model.provider, model.api) if name in lacking), None)
    if form is None or model.options is None or not present(model.options, option):
        return None
    return f"options.{option} may not be set: the format of {form} has no such field"
