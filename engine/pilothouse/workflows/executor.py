"""The executor: how an attempt is carried out. Local processes here, Pods on a cluster."""

from dataclasses import dataclass, field
from typing import Protocol

from pilothouse.records.failures import Failure
from pilothouse.records.runs import Attempt
from pilothouse.records.states import AttemptState
from pilothouse.records.values import BlobRef, Outputs
from pilothouse.workflows.work import Work


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of an attempt as its executor saw it."""

    state: AttemptState
    outputs: Outputs = field(default_factory=dict)
    failure: Failure | None = None
    log: BlobRef | None = None


class Executor(Protocol):
    """Carries out open attempts. Every call may be made again after a crash and must then do no harm."""

    async def running(self, attempt: Attempt) -> bool:
        """Whether the attempt was started by `start` and is under way, so that `start` is not owed."""
        ...

    async def start(self, attempt: Attempt, work: Work) -> None:
        """Starts the attempt unless it has been started before. Its end wakes the reconciler.

        Raises Failed where the work cannot be started at all.
        """
        ...

    async def ending(self, attempt: Attempt) -> Ending | None:
        """How the attempt ended; None while it is under way, can yet be started, or has committed its own end."""
        ...

    async def stop(self, attempt: Attempt, failure: Failure | None) -> None:
        """Ends the attempt: as FAILED with the failure where one is given, else as CANCELLED."""
        ...

    async def forget(self, attempt: Attempt) -> None:
        """Removes what is left of an attempt whose end is recorded."""
        ...

    async def close(self) -> None:
        """Lets go of everything without ending it for the run: what can go on by itself does, and the rest
        is taken up again by the next executor."""
        ...
