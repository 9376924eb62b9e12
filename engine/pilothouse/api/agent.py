"""The Agent kind: the definition of a model, its instructions, its tools and its limits."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pilothouse.api.base import API_VERSION, ApiModel, Observed
from pilothouse.api.conditions import Conditions
from pilothouse.api.fields import (
    Image,
    Items,
    JsonObject,
    Line,
    Name,
    ObjectName,
    Quantity,
    Text,
    Url,
)
from pilothouse.api.governance import Governance
from pilothouse.api.languagemodel import Model
from pilothouse.api.meta import ConfigMapSource, EnvVars, Headers, LocalRef, ObjectMeta
from pilothouse.api.params import Params
from pilothouse.api.pod import Pod
from pilothouse.api.rules import NAME_FITS_LABEL, Rule, exactly_one, needed_when, only_with

Rules = tuple[Rule, ...]
ToolName = Annotated[str, Text(128, 1, "^[A-Za-z0-9_.-]+$", says="must be a tool name: letters, digits, _, - and .")]


class Prompt(ApiModel):
    """The system prompt."""

    rules: ClassVar[Rules] = (exactly_one("system", "systemFrom"),)

    system: Annotated[str, Text(65536)] | None = None
    system_from: ConfigMapSource | None = None


class AgentOutputs(ApiModel):
    """What the final answer must be."""

    schema_: JsonObject = Field(alias="schema")
    """A JSON schema; the answer is `steps.<name>.outputs.data`."""


class McpServer(ApiModel):
    """An MCP server whose tools the Agent may use: by URL, or a program in the sandbox speaking over stdio."""

    rules: ClassVar[Rules] = (exactly_one("url", "command"), only_with("url", "headers"), only_with("command", "env"))

    name: Name
    url: Url | None = None
    headers: Headers = ()
    command: Annotated[tuple[Annotated[str, Text(4096)], ...], Items(128, 1)] | None = None
    env: EnvVars = ()
    """With a value from a Secret the server gets a container of its own."""
    include: Annotated[tuple[ToolName, ...], Items(128, unique=True)] | None = None
    """Only these tools; all if absent."""
    exclude: Annotated[tuple[ToolName, ...], Items(128, unique=True)] = ()


class ApprovalRule(ApiModel):
    """Whether a call needs a person. Auto: by policy. NotRequired: deny gates and the owner's floors still hold."""

    mode: Literal["Auto", "Required", "NotRequired"] = "Auto"
    class_: Name | None = Field(default=None, alias="class")


class Tool(ApiModel):
    """A built-in tool, the tools of an MCP server, or another Agent as a tool."""

    rules: ClassVar[Rules] = (exactly_one("builtin", "mcp", "agentRef"),)

    builtin: ToolName | None = None
    mcp: McpServer | None = None
    agent_ref: LocalRef | None = None
    """The model sees it by its name and its description."""
    approval: ApprovalRule | None = None


class SkillRef(ApiModel):
    """A skill of a Pack of this namespace."""

    name: Annotated[
        str,
        Text(
            127,
            3,
            "^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
            says="must be <pack>/<skill>, like writing/changelog",
        ),
    ]
    mode: Literal["Listed", "Active"] = "Listed"
    """Listed: name and description. Active: the instructions, too."""


class AgentLimits(ApiModel):
    """Limits of the tool loop."""

    tool_calls_per_turn: Annotated[int, Field(ge=1, le=64)] = 5
    consecutive_errors: Annotated[int, Field(ge=1, le=100)] = 3
    repeated_calls: Annotated[int, Field(ge=2, le=100)] = 3
    """Turns in a row with the same calls and the same arguments; the last of them is not executed."""
    empty_responses: Annotated[int, Field(ge=1, le=100)] = 3
    """Responses in a row with neither text nor calls."""
    double_confirmation: bool = False
    """Whether the model is asked if its answer is the last word."""
    output_bytes: Annotated[int, Field(ge=256, le=1_048_576)] = 15_000
    """How much of a tool's result the model sees."""


class Memory(ApiModel):
    """What is recalled before the first turn."""

    recall: bool = True
    level: Literal["Index", "Timeline", "Full"] = "Index"
    top_k: Annotated[int, Field(ge=1, le=100)] = 5


class Compaction(ApiModel):
    """When a long conversation is summarised: it is before a request that would take more of the model's context."""

    at_percent: Annotated[int, Field(ge=10, le=100)] = 80
    """Of the model's context window."""
    keep_tokens: Annotated[int, Field(ge=0, le=10_000_000)] = 20_000
    """The newest part, kept as it is."""


class Workspace(ApiModel):
    """The sandbox's directory."""

    size: Quantity = "1Gi"


class NetworkGrant(ApiModel):
    """Addresses that the sandbox may reach."""

    cidr: Annotated[str, Text(64, 1, "^[0-9a-fA-F.:]+/[0-9]+$", says="must be an address range like 10.0.0.0/8")]
    ports: Annotated[tuple[Annotated[int, Field(ge=1, le=65535)], ...], Items(32, unique=True)] = ()
    """TCP ports; all if empty."""


class Sandbox(ApiModel):
    """Where tools that touch files or run programs work."""

    rules: ClassVar[Rules] = (
        needed_when("isolation", "Isolated", "runtimeClassName"),
        Rule(
            "!has(self.network) || (has(self.isolation) && self.isolation != 'Sealed')",
            "network needs isolation Networked or Isolated",
            lambda sandbox: (
                "network needs isolation Networked or Isolated"
                if sandbox.network is not None and sandbox.isolation == "Sealed"
                else None
            ),
        ),
    )

    isolation: Literal["Sealed", "Networked", "Isolated"] = "Sealed"
    """Sealed: no network at all. Networked: a Pod of its own. Isolated: that, under a runtime class."""
    image: Image | None = None
    """Built from the project's sandbox image."""
    runtime_class_name: ObjectName | None = None
    network: Annotated[tuple[NetworkGrant, ...], Items(32)] | None = None
    workspace: Workspace | None = None


class AgentSpec(ApiModel):
    """The definition."""

    rules: ClassVar[Rules] = (
        Rule(
            "!has(self.compaction) || has(self.model.contextWindow)",
            "model.contextWindow must be set with compaction, which is measured by it",
            lambda spec: (
                "model.contextWindow must be set with compaction, which is measured by it"
                if spec.compaction is not None and spec.model.context_window is None
                else None
            ),
        ),
        Rule(
            "!has(self.governance) || !has(self.governance.budget) || !has(self.governance.budget.cost)"
            " || has(self.model.prices)",
            "model.prices must be set with governance.budget.cost, which is measured by them",
            lambda spec: _cost_problem(spec),
        ),
        Rule(
            "!has(self.limits) || !has(self.limits.doubleConfirmation) || !self.limits.doubleConfirmation"
            " || !has(self.outputs)",
            "limits.doubleConfirmation may not be set with outputs: an answer that fits a schema cannot say COMPLETED",
            lambda spec: _confirmation_problem(spec),
        ),
    )

    description: Line | None = None
    model: Model
    prompt: Prompt | None = None
    inputs: Params = ()
    outputs: AgentOutputs | None = None
    tools: Annotated[tuple[Tool, ...], Items(64)] = ()
    skills: Annotated[tuple[SkillRef, ...], Items(64, key="name")] = ()
    governance: Governance | None = None
    limits: AgentLimits | None = None
    memory: Memory | None = None
    compaction: Compaction | None = None
    sandbox: Sandbox | None = None
    pod: Pod | None = None

    @property
    def agents(self) -> tuple[str, ...]:
        """The names of the Agents that are its tools."""
        return tuple(tool.agent_ref.name for tool in self.tools if tool.agent_ref is not None)


def _cost_problem(spec: AgentSpec) -> str | None:
    budget = spec.governance.budget if spec.governance else None
    if budget is None or budget.cost is None or spec.model.prices is not None:
        return None
    return "model.prices must be set with governance.budget.cost, which is measured by them"


def _confirmation_problem(spec: AgentSpec) -> str | None:
    if spec.limits is None or not spec.limits.double_confirmation or spec.outputs is None:
        return None
    return "limits.doubleConfirmation may not be set with outputs: an answer that fits a schema cannot say COMPLETED"


class AgentStatus(Observed):
    """`Ready` says: accepted, its references resolve."""

    observed_generation: int | None = None
    conditions: Conditions = ()


class Agent(ApiModel):
    """A model with instructions, tools and limits."""

    rules: ClassVar[Rules] = (NAME_FITS_LABEL,)

    api_version: Literal["pilothouse.dev/v1alpha1"] = API_VERSION
    kind: Literal["Agent"] = "Agent"
    metadata: ObjectMeta
    spec: AgentSpec
    status: AgentStatus | None = None
