"""Command attempts as Pods."""

from typing import Any

from pilothouse.api.fields import seconds
from pilothouse.api.pod import Pod
from pilothouse.records.failures import Failure, FailureCode
from pilothouse.records.runs import Attempt
from pilothouse.records.states import AttemptState
from pilothouse.records.values import BlobRef, ValueRefused
from pilothouse.store.keeping import keep_all
from pilothouse.workflows.commands.outcome import CommandOutcome
from pilothouse.workflows.executor import Ending
from pilothouse.workflows.work import CommandWork, Work
from pilothouse_operator.commandpod import CommandPod
from pilothouse_operator.executor import PodExecutor
from pilothouse_operator.outcome import Seen, result_of
from pilothouse_operator.pods import COMMAND, IMAGE, MAIN


class CommandPods(PodExecutor):
    """The log of the main container tells how a command ended, so the Pod stays until it was read."""

    async def manifest(self, attempt: Attempt, work: Work) -> dict[str, Any]:
        if not isinstance(work, CommandWork):
            raise TypeError(f"step {attempt.step} is not a command")
        step = self._steps[attempt.step]
        block, limit = step.pod or Pod(), seconds(step.pending_timeout)
        return CommandPod(self._ground, attempt, work, block, limit, self._config_maps).manifest()

    def role(self, attempt: Attempt) -> str:
        action = self._steps[attempt.step].run_command
        return COMMAND if action is None or action.image is None else IMAGE

    async def ended(self, attempt: Attempt, seen: Seen) -> Ending | None:
        metadata = seen.pod["metadata"]
        log = await self._around.kube.log(metadata["namespace"], metadata["name"], MAIN[seen.role])
        kept = None if log is None else await self._around.store.put_blob(attempt.ref.run.tenant, log)
        return await self._ending(attempt, result_of(seen, log), kept)

    def gone(self, attempt: Attempt) -> Ending:
        return Ending(AttemptState.LOST, failure=Failure(FailureCode.UNK, "its Pod is gone, and its outcome with it"))

    async def _ending(self, attempt: Attempt, result: CommandOutcome, log: BlobRef | None) -> Ending:
        try:
            outputs = await keep_all(self._around.store, attempt.ref.run.tenant, result.outputs)
        except ValueRefused as error:
            failure = Failure(FailureCode.VAL, f"$PILOTHOUSE_OUTPUT cannot be stored: {error}")
            return Ending(AttemptState.FAILED, failure=failure, log=log)
        return Ending(result.state, outputs, result.failure, log)
