"""The states of runs, steps and attempts, and which of them are final."""

from enum import StrEnum


class RunState(StrEnum):
    """Where one execution of a Workflow stands."""

    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"

    @property
    def final(self) -> bool:
        return self is not RunState.RUNNING


class StepState(StrEnum):
    """Where one step stands. A final state never changes."""

    PENDING = "Pending"
    """Not begun: a need is not settled, or there is no room for it yet."""
    RUNNING = "Running"
    """An attempt is open."""
    RETRYING = "Retrying"
    """The last attempt failed; the next one begins at `wake_at`."""
    WAITING_FOR_APPROVAL = "WaitingForApproval"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    """The work failed, and every attempt is used up."""
    ERROR = "Error"
    """The infrastructure failed, or the outcome is not known."""
    CANCELLED = "Cancelled"
    SKIPPED = "Skipped"
    """Its own `when` was false, or its branch was not chosen. Steps that need it run."""
    OMITTED = "Omitted"
    """A step that it needs failed, or the run was failing. Steps that need it are omitted too."""

    @property
    def final(self) -> bool:
        return self not in _OPEN_STEPS


_OPEN_STEPS = frozenset({StepState.PENDING, StepState.RUNNING, StepState.RETRYING, StepState.WAITING_FOR_APPROVAL})


class AttemptState(StrEnum):
    """Where one try of a step stands. Exactly one attempt of a step is open at a time."""

    OPEN = "Open"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    NEVER_STARTED = "NeverStarted"
    """Proved: nothing of the work began, so beginning again costs nothing."""
    LOST = "Lost"
    """It began, and its process ended without an outcome."""
    RELEASED = "Released"
    """Its process let go of it, as a pause does. It goes on later, and nothing of its tries is used up."""
    CANCELLED = "Cancelled"

    @property
    def final(self) -> bool:
        return self is not AttemptState.OPEN


class Shutdown(StrEnum):
    """What a person asked of a run that is to end early."""

    CANCEL = "Cancel"
    """Running steps are ended; exit handlers run."""
    STOP = "Stop"
    """Running steps end by themselves, nothing new begins; exit handlers run."""
    TERMINATE = "Terminate"
    """Running steps are ended; exit handlers do not run."""
