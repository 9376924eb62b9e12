"""From an Agent's spec to what runs it: the task, the model's provider and the tools."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from pydantic import JsonValue

from pilothouse.agents.bounds import Limits
from pilothouse.agents.session import CompactionSettings
from pilothouse.agents.task import AgentTask
from pilothouse.api.agent import AgentLimits, AgentSpec
from pilothouse.api.fields import seconds
from pilothouse.api.governance import Budget
from pilothouse.api.languagemodel import ModelOptions, ModelPrices
from pilothouse.api.meta import KeyRef
from pilothouse.governance.domains import DomainGate
from pilothouse.models import provider
from pilothouse.models.factory import create
from pilothouse.models.prices import Prices
from pilothouse.models.text_calls import TextCalls
from pilothouse.records.failures import Failed, FailureCode
from pilothouse.records.runs import StepId
from pilothouse.tools.builtin import builtin_tools
from pilothouse.tools.mcp.opening import McpGround, mcp_tools
from pilothouse.tools.output import BoundedTool, Outputs, PutBlob
from pilothouse.tools.redaction import Redactor
from pilothouse.tools.registry import ToolRegistry
from pilothouse.tools.sandboxed import Sandboxes
from pilothouse.tools.tool import Tool

_THINKING: Mapping[str, provider.ThinkingLevel] = {
    "Off": "off",
    "Minimal": "minimal",
    "Low": "low",
    "Medium": "medium",
    "High": "high",
    "XHigh": "xhigh",
}


@dataclass(frozen=True, slots=True)
class Definition:
    """An Agent as its run froze it. `instructions` is the system prompt, wherever the spec takes it from."""

    name: str
    spec: AgentSpec
    instructions: str = ""


def make_task(
    spec: AgentSpec,
    *,
    session: UUID,
    step: StepId | None,
    attempt: int,
    message: str,
    arguments: Mapping[str, JsonValue],
    instructions: str,
    session_name: str | None = None,
) -> AgentTask:
    """The task of one attempt. `instructions` is the system prompt, wherever the spec takes it from. `session_name` is
    that of a session that passes from run to run."""
    return AgentTask(
        session=session,
        session_name=session_name,
        message=message,
        arguments=arguments,
        instructions=instructions,
        description=spec.description or "",
        output_schema=spec.outputs.schema_ if spec.outputs else None,
        limits=_limits(spec.limits or AgentLimits(), (spec.governance and spec.governance.budget) or Budget()),
        options=_options(spec.model.options or ModelOptions()),
        compaction=_compaction(spec),
        attempt=attempt,
        step=step,
    )


def make_provider(spec: AgentSpec, api_key: Callable[[], str | None] | None) -> provider.ModelProvider:
    """The model's provider. `api_key` is asked before each call, so a key may change while the task runs."""
    model = spec.model
    script = [turn.manifest() for turn in model.script or ()]
    try:
        made = create(
            model.provider,
            model=model.name,
            api=model.api,
            base_url=model.base_url,
            api_key=api_key,
            prices=_prices(model.prices),
            script=script,
        )
    except ValueError as error:
        raise Failed(FailureCode.INP, str(error)) from None
    return TextCalls(made) if model.tool_calls == "Text" else made


@dataclass(frozen=True, slots=True)
class ToolGround:
    """What tools need of where the agent runs: `put_blob` keeps what is too long to be shown; `secret` is the value of
    a Secret's key, asked for whenever it is used; `tell` hears what people should know."""

    sandboxes: Sandboxes
    put_blob: PutBlob
    redactor: Redactor
    secret: Callable[[KeyRef], str]
    tell: Callable[[str], None]


@asynccontextmanager
async def open_tools(spec: AgentSpec, ground: ToolGround, agents: Sequence[Tool] = ()) -> AsyncIterator[ToolRegistry]:
    """The tools that the spec lists, for as long as the block lasts; the programs of MCP servers end with it. `agents`
    are the tools that stand for the Agents it lists.

    Raises Failed where the spec's domains cannot be read, or an MCP server cannot be used.
    """
    names = [tool.builtin for tool in spec.tools if tool.builtin is not None]
    try:
        gate = DomainGate.of(spec.governance.domains if spec.governance else None)
    except ValueError as error:
        raise Failed(FailureCode.INP, f"governance.domains: {error}") from None
    outputs = Outputs(ground.put_blob, ground.redactor, (spec.limits or AgentLimits()).output_bytes)
    own = [*builtin_tools(names, ground.sandboxes, gate), *agents]
    registry = ToolRegistry([BoundedTool(tool, outputs) for tool in own])
    servers = [tool.mcp for tool in spec.tools if tool.mcp is not None]
    mcp = McpGround(registry, ground.sandboxes, gate, outputs, ground.secret, ground.tell)
    async with mcp_tools(servers, mcp):
        yield registry


def _limits(limits: AgentLimits, budget: Budget) -> Limits:
    return Limits(
        turns=budget.turns or Limits().turns,
        tool_calls=budget.tool_calls,
        tokens=budget.tokens,
        cost=Decimal(budget.cost) if budget.cost else None,
        duration=seconds(budget.duration) if budget.duration else None,
        tool_calls_per_turn=limits.tool_calls_per_turn,
        consecutive_errors=limits.consecutive_errors,
        repeated_calls=limits.repeated_calls,
        empty_responses=limits.empty_responses,
        double_confirmation=limits.double_confirmation,
    )


def _compaction(spec: AgentSpec) -> CompactionSettings | None:
    window = spec.model.context_window
    if spec.compaction is None or window is None:
        return None
    reserve = max(window * (100 - spec.compaction.at_percent) // 100, 1)
    return CompactionSettings(window, reserve, spec.compaction.keep_tokens)


def _prices(prices: ModelPrices | None) -> Prices | None:
    if prices is None:
        return None
    written = prices.model_dump(exclude_none=True)
    return Prices(**{name: Decimal(price) for name, price in written.items()})


def _options(options: ModelOptions) -> provider.ModelOptions:
    return provider.ModelOptions(
        temperature=options.temperature,
        top_p=options.top_p,
        max_output_tokens=options.max_output_tokens,
        thinking=_THINKING[options.thinking or "Off"],
        seed=options.seed,
        stop=options.stop,
    )
