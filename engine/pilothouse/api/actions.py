"""What a step can do. A step holds exactly one of these, under the name of its class in lowerCamelCase."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pilothouse.api.base import ApiModel
from pilothouse.api.fields import (
    Cel,
    Duration,
    Image,
    Items,
    JsonObject,
    JsonValue,
    Line,
    Name,
    StepName,
    Template,
    Text,
    Variable,
)
from pilothouse.api.meta import EnvVars, Headers, LocalRef, ValueFrom
from pilothouse.api.params import NamedValues
from pilothouse.api.rules import Rule, at_least_one, exactly_one, only_with

Rules = tuple[Rule, ...]
FailurePolicy = Literal["FailFast", "FinishAll"]
StepNames = Annotated[tuple[StepName, ...], Items(64, unique=True)]
Arguments = Annotated[tuple[Template, ...], Items(128)]


class FileMount(ApiModel):
    """A file laid into the step's directory before it starts."""

    rules: ClassVar[Rules] = (exactly_one("content", "valueFrom"),)

    path: Annotated[str, Text(1024, 1, "^[^/\\x00][^\\x00]*$", says="must be a path relative to the step's directory")]
    content: Template | None = None
    value_from: ValueFrom | None = None


Files = Annotated[tuple[FileMount, ...], Items(64, key="path")]


class InvokeAgent(ApiModel):
    """Runs an Agent. Outputs: `text`, `data` (if the Agent has an outputs schema), `usage`, `turns`, `session`."""

    agent_ref: LocalRef
    arguments: NamedValues = ()
    """Values for the Agent's inputs."""
    message: Template | None = None
    session: Annotated[str, Text(253, 1)] | None = None
    """Continues this conversation of the namespace."""


class RunCommand(ApiModel):
    """Runs a program. Outputs: the JSON object written to `$PILOTHOUSE_OUTPUT`, `exitCode`, `stdout`, `stderr`."""

    command: Annotated[tuple[Template, ...], Items(128, 1)]
    """The program and its first arguments; never split, never given to a shell."""
    args: Arguments = ()
    """Further arguments."""
    env: EnvVars = ()
    """Variables of the program. Names that begin with PILOTHOUSE_ are refused."""
    files: Files = ()
    """Laid into its directory before it starts."""
    image: Image | None = None
    """Runs as it is: its log is `stdout`, its termination message, if a JSON object, its outputs."""


class ExecuteCode(ApiModel):
    """Runs a piece of code in the sandbox image. Outputs as for `runCommand`."""

    language: Literal["python", "bash"]
    code: Annotated[str, Text(65536, 1)]
    """Taken as it is: `${{ }}` is not evaluated here. Pass values by `args` or `env`."""
    args: Arguments = ()
    """Further arguments."""
    env: EnvVars = ()
    """Variables of the program. Names that begin with PILOTHOUSE_ are refused."""
    files: Files = ()
    """Laid into its directory before it starts."""


class Conditional(ApiModel):
    """Chooses which steps of the same list run; those of the other branch are skipped."""

    if_: Cel = Field(alias="if")
    then: StepNames = ()
    else_: StepNames = Field(default=(), alias="else")


class Transform(ApiModel):
    """Computes a value. Outputs: `value`."""

    value: JsonValue


class ApprovalGate(ApiModel):
    """Asks a person who may approve the class."""

    class_: Name = Field(alias="class")
    message: Annotated[str, Text(4096)] | None = None


class Wait(ApiModel):
    """Waits for a time, a condition or a person."""

    rules: ClassVar[Rules] = (exactly_one("duration", "until", "approval"), only_with("until", "every"))

    duration: Duration | None = None
    until: Cel | None = None
    """Over `run`, `params` and `steps`."""
    every: Duration | None = None
    """How often `until` is looked at; 30s if absent."""
    approval: ApprovalGate | None = None


class Parallel(ApiModel):
    """Runs a block or definition once for each item. Outputs: `results` (in item order), `failed`."""

    rules: ClassVar[Rules] = (exactly_one("block", "workflowRef"),)

    items: Cel
    as_: Variable = Field(default="item", alias="as")
    """The name of the item in `arguments`."""
    block: StepName | None = None
    workflow_ref: LocalRef | None = None
    arguments: NamedValues = ()
    max_concurrency: Annotated[int, Field(ge=1, le=256)] | None = None
    failure_policy: FailurePolicy = "FailFast"


class SubWorkflow(ApiModel):
    """Runs a block or another Workflow's definition. Outputs: those of the block or definition."""

    rules: ClassVar[Rules] = (exactly_one("block", "workflowRef"),)

    workflow_ref: LocalRef | None = None
    block: StepName | None = None
    arguments: NamedValues = ()


class Validate(ApiModel):
    """Fails unless a value satisfies a JSON schema and an expression. Outputs: `valid`, `errors`."""

    rules: ClassVar[Rules] = (at_least_one("schema", "expression"),)

    value: JsonValue
    schema_: JsonObject | None = Field(default=None, alias="schema")
    expression: Cel | None = None
    """Sees the value as `value`."""


class HttpRequest(ApiModel):
    """Sends a request to a public address. Outputs: `status`, `headers`, `body`, `json`; 4xx and 5xx are no failure."""

    url: Annotated[str, Text(2048, 1)]
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    headers: Headers = ()
    body: JsonValue = None
    """A text is sent as it is, any other value as JSON."""


class RouteCandidate(ApiModel):
    """An Agent to choose from."""

    agent_ref: LocalRef
    description: Line | None = None
    """The Agent's own description, if absent."""


class Route(ApiModel):
    """Lets a model choose an Agent. Outputs: `agent`, `confidence`, `reason`."""

    agent_ref: LocalRef
    """The Agent whose model chooses."""
    query: Template
    candidates: Annotated[tuple[RouteCandidate, ...], Items(32, 1)]


class GroupChat(ApiModel):
    """Lets Agents talk. Outputs: `transcript`, `finalMessage`, `rounds`, `terminationReason`."""

    agents: Annotated[tuple[LocalRef, ...], Items(16, 2, key="name")]
    topic: Template
    max_rounds: Annotated[int, Field(ge=1, le=100)] = 10
    speaker_selection: Literal["RoundRobin", "Random", "Auto", "Mention"] = "RoundRobin"
    termination_phrase: Line = "TERMINATE"
    history_limit: Annotated[int, Field(ge=1, le=1000)] = 20
    """How many messages each speaker is shown."""
