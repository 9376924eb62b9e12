"""The plan of a run: what the frozen definition says of each step, in the form that the brain reads."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum

from pilothouse.records.failures import FailureCode
from pilothouse.records.runs import StepId


class FailurePolicy(StrEnum):
    """What an unhandled failure does to the steps that have not begun."""

    FAIL_FAST = "FailFast"
    FINISH_ALL = "FinishAll"


class OnLoss(StrEnum):
    """What follows when an attempt began and then lost its process."""

    FAIL = "Fail"
    """Nobody knows whether its effect happened: the step ends in Error."""
    RERUN = "Rerun"
    """The step is declared idempotent: it runs again from its beginning."""
    CONTINUE = "Continue"
    """Every effect has a row of its own, as an agent's have: the work goes on from the last row."""


@dataclass(frozen=True, slots=True)
class Branch:
    """The place of a step under a conditional: it runs only if that side was chosen."""

    conditional: StepId
    side: str


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and when a failed step is tried again. `attempts` counts the first try; delays are seconds."""

    attempts: int = 1
    delay: float = 0.0
    factor: float = 1.0
    max_delay: float = 300.0
    jitter: bool = False
    codes: frozenset[FailureCode] = frozenset(code for code in FailureCode if code.retryable)


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step. `needs` orders it; `survives` are those needs whose failure does not omit it, since an
    expression of this step reads their state."""

    id: StepId
    kind: str
    needs: Set[StepId] = frozenset()
    survives: Set[StepId] = frozenset()
    branch: Branch | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    on_loss: OnLoss = OnLoss.FAIL


@dataclass(frozen=True, slots=True)
class Controls:
    """The control fields of a Workflow as they stand now: they act on a run that is under way. `deadline` counts from
    the run's creation, in seconds."""

    suspend: bool = False
    failure_policy: FailurePolicy = FailurePolicy.FAIL_FAST
    parallelism: int | None = None
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps in the order of the definition, and what applies to the whole run."""

    steps: Mapping[StepId, PlannedStep]
    failure_policy: FailurePolicy = FailurePolicy.FAIL_FAST
    parallelism: int | None = None
    suspended: bool = False
    """No attempt and no light step begins; what runs goes on."""

    def under(self, controls: Controls) -> "Plan":
        """The plan with the control fields as they stand now."""
        return replace(
            self,
            failure_policy=controls.failure_policy,
            parallelism=controls.parallelism,
            suspended=controls.suspend,
        )

    @property
    def handled(self) -> Set[StepId]:
        """Steps whose failure another step reads; it fails neither the run nor its branches."""
        return {need for step in self.steps.values() for need in step.survives}
