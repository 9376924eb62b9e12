"""The Workflow kind: applying it runs it, as a Job does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from pilothouse.api import actions
from pilothouse.api.actions import FailurePolicy, StepNames
from pilothouse.api.base import API_VERSION, ApiModel, Observed
from pilothouse.api.conditions import Conditions
from pilothouse.api.fields import (
    Cel,
    Digest,
    Duration,
    FailureCode,
    Items,
    JsonValue,
    Line,
    StepName,
    Text,
    Timestamp,
    User,
    Variable,
)
from pilothouse.api.jsonvalue import digest
from pilothouse.api.meta import LocalRef, ObjectMeta
from pilothouse.api.params import NamedValues, Params
from pilothouse.api.pod import Pod
from pilothouse.api.rules import NAME_FITS_LABEL, Rule, exactly_one, not_with, only_with, present

ACTIONS = (
    "invokeAgent",
    "runCommand",
    "executeCode",
    "conditional",
    "transform",
    "wait",
    "parallel",
    "subWorkflow",
    "validate",
    "httpRequest",
    "route",
    "groupChat",
)

WHAT_FIELDS = frozenset({"steps", "blocks", "params", "arguments", "outputs", "onExit", "workflowRef"})
"""The fields of a Workflow's spec that say what runs. A change here is a new run; all others only control it."""

RETRY_REQUESTED_AT = "pilothouse.dev/retryRequestedAt"
"""Annotation: any new value runs the failed steps of the latest run again."""
RERUN_REQUESTED_AT = "pilothouse.dev/rerunRequestedAt"
"""Annotation: any new value starts a new run of the same spec."""
RESUME_REQUESTED_AT = "pilothouse.dev/resumeRequestedAt"
"""Annotation: any new value ends the waits for a time of the latest run."""
REQUESTED_BY = "pilothouse.dev/requestedBy"
"""Annotation: who asks by one of the annotations above; must be the caller."""

Action = (
    actions.InvokeAgent
    | actions.RunCommand
    | actions.ExecuteCode
    | actions.Conditional
    | actions.Transform
    | actions.Wait
    | actions.Parallel
    | actions.SubWorkflow
    | actions.Validate
    | actions.HttpRequest
    | actions.Route
    | actions.GroupChat
)


class Retry(ApiModel):
    """Tries a failed step again. The n-th pause is delay x backoffFactor^(n-1), at most `maxDelay`."""

    attempts: Annotated[int, Field(ge=1, le=100)] = 3
    """How often the step is tried in all."""
    delay: Duration = "5s"
    backoff_factor: Annotated[float, Field(ge=1, le=100, allow_inf_nan=False)] = 2
    max_delay: Duration = "5m"
    jitter: bool = True
    """Draws each pause between half and all of its length."""
    codes: Annotated[tuple[FailureCode, ...], Items(32, unique=True)] | None = None
    """Only these failures; if absent, all that the failure taxonomy calls retryable."""


POD_MESSAGE = "pod may be set only together with runCommand or executeCode"


def _pod_fits(step: Step) -> str | None:
    return None if step.pod is None or step.run_command or step.execute_code else POD_MESSAGE


class Step(ApiModel):
    """A node of the graph, with exactly one action."""

    rules: ClassVar[tuple[Rule, ...]] = (
        exactly_one(*ACTIONS),
        Rule("!has(self.pod) || has(self.runCommand) || has(self.executeCode)", POD_MESSAGE, _pod_fits),
    )

    name: StepName
    needs: StepNames = ()
    """Steps that end first, besides those whose outputs an expression reads."""
    when: Cel | None = None
    """False skips the step."""
    retry: Retry | None = None
    timeout: Duration | None = None
    """For each attempt."""
    pending_timeout: Duration = "10m"
    """How long an attempt may wait for its Pod to start."""
    idempotent: bool = False
    """Whether it may run again when its outcome is unknown."""
    pod: Pod | None = None
    """Where `runCommand` and `executeCode` run. An Agent has its own."""
    invoke_agent: actions.InvokeAgent | None = None
    run_command: actions.RunCommand | None = None
    execute_code: actions.ExecuteCode | None = None
    conditional: actions.Conditional | None = None
    transform: actions.Transform | None = None
    wait: actions.Wait | None = None
    parallel: actions.Parallel | None = None
    sub_workflow: actions.SubWorkflow | None = None
    validate_: actions.Validate | None = Field(default=None, alias="validate")
    http_request: actions.HttpRequest | None = None
    route: actions.Route | None = None
    group_chat: actions.GroupChat | None = None

    @property
    def action(self) -> tuple[str, Action]:
        """The action's name as users write it, such as `runCommand`, and its model."""
        return next((name, getattr(self, FIELD_OF[name])) for name in ACTIONS if present(self, name))


FIELD_OF = {str(field.alias): name for name, field in Step.model_fields.items()}
"""Python attribute of each field of a step."""

Steps = Annotated[tuple[Step, ...], Items(256, 1, key="name")]


class Block(ApiModel):
    """A named sub-graph, run by `parallel` and `subWorkflow` steps."""

    name: StepName
    params: Params = ()
    steps: Steps
    outputs: NamedValues = ()


class Schedule(ApiModel):
    """Creates Workflow objects as a CronJob creates Jobs."""

    cron: Annotated[str, Text(100, 1)]
    time_zone: Annotated[str, Text(64, 1)] = "Etc/UTC"
    concurrency: Literal["Allow", "Forbid", "Replace"] = "Forbid"
    starting_deadline: Duration | None = None
    """How late a run may start."""
    keep_succeeded: Annotated[int, Field(ge=0, le=1000)] = 3
    keep_failed: Annotated[int, Field(ge=0, le=1000)] = 3


class WorkflowSpec(ApiModel):
    """What runs, and how it is controlled."""

    rules: ClassVar[tuple[Rule, ...]] = (
        exactly_one("steps", "workflowRef"),
        only_with("workflowRef", "arguments"),
        not_with("workflowRef", "blocks", "params", "outputs", "onExit"),
    )

    description: Line | None = None
    params: Params = ()
    """What a run is given; read as `params.<name>`."""
    steps: Steps | None = None
    """What is done. The order follows from `needs` and from the outputs that are read."""
    blocks: Annotated[tuple[Block, ...], Items(32, key="name")] = ()
    outputs: NamedValues = ()
    """What a run gives, evaluated once its steps have ended."""
    on_exit: Annotated[tuple[Step, ...], Items(32, key="name")] = ()
    """Run once when all else has ended, whatever happened; they see `run.state`."""
    workflow_ref: LocalRef | None = None
    """Runs the definition of another Workflow, instead of `steps`."""
    arguments: NamedValues = ()
    """Values for the definition's params."""
    run_policy: Literal["OnApply", "OnDemand"] = "OnApply"
    """OnDemand is a definition that others run."""
    failure_policy: FailurePolicy = "FailFast"
    """Whether independent branches go on after a failure."""
    parallelism: Annotated[int, Field(ge=1, le=256)] | None = None
    """How many steps run at the same time."""
    deadline: Duration | None = None
    """For the whole run; waiting for a person does not count."""
    suspend: bool = False
    """Starts no step while true."""
    shutdown: Literal["Cancel", "Stop", "Terminate"] | None = None
    """Cancel: running steps are ended, onExit runs. Stop: running steps end first. Terminate: all ends now."""
    schedule: Schedule | None = None
    ttl_after_finished: Duration | None = None
    submitted_by: User | None = None
    """Who wants this run; must be the caller."""


class RunStatus(Observed):
    """The latest run."""

    number: int | None = None
    id: Annotated[str, Text(64)] | None = None
    key: Digest | None = None
    state: Annotated[str, Text(32)] | None = None
    progress: Annotated[str, Text(16)] | None = None
    """Finished steps of all, as `3/7`."""
    started_at: Timestamp | None = None
    finished_at: Timestamp | None = None


class StepStatus(Observed):
    """One step of the latest run; at most 100 are listed: failed, active, newest."""

    path: Annotated[str, Text(512, 1)]
    state: Annotated[str, Text(32)]
    attempts: int | None = None
    code: FailureCode | None = None
    message: Annotated[str, Text(1024)] | None = None
    started_at: Timestamp | None = None
    finished_at: Timestamp | None = None


class OutputStatus(Observed):
    """An output of the run: its value up to 4 KiB, else digest and size in bytes."""

    name: Variable
    value: JsonValue = None
    digest: Digest | None = None
    size: int | None = None


class WorkflowStatus(Observed):
    """What was observed; never a cause of anything."""

    observed_generation: int | None = None
    conditions: Conditions = ()
    run: RunStatus | None = None
    steps: Annotated[tuple[StepStatus, ...], Items(100, key="path")] = ()
    outputs: Annotated[tuple[OutputStatus, ...], Items(64, key="name")] = ()
    approvals: Annotated[tuple[Annotated[str, Text(253, 1)], ...], Items(100, unique=True)] = ()
    """The ToolApprovals that a person has yet to decide."""


class Workflow(ApiModel):
    """Steps, run once for each new content of the What fields."""

    rules: ClassVar[tuple[Rule, ...]] = (NAME_FITS_LABEL,)

    api_version: Literal["pilothouse.dev/v1alpha1"] = API_VERSION
    kind: Literal["Workflow"] = "Workflow"
    metadata: ObjectMeta
    spec: WorkflowSpec
    status: WorkflowStatus | None = None


def run_key(spec: WorkflowSpec) -> str:
    """The digest of the What fields that the user set; equal keys are the same run.

    Built from the fields set and not from defaults, so a default that a later release adds changes no key.
    """
    return key_of_fields(spec.manifest())


def key_of_fields(spec: Mapping[str, Any]) -> str:
    """The run key of a spec as JSON that holds what the user set, and nothing else."""
    return digest({name: value for name, value in spec.items() if name in WHAT_FIELDS})
