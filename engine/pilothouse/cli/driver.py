"""The driver: drives a run in this process, to its result or to its end, whoever drove it before."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from pilothouse.cli.command import PAUSED, CommandError, tell
from pilothouse.cli.configdata import Secret
from pilothouse.cli.following import follow
from pilothouse.cli.manifests import Manifests
from pilothouse.cli.names import name_of, typed
from pilothouse.cli.progress import progress_of
from pilothouse.cli.result import print_result
from pilothouse.cli.sources import LocalSources
from pilothouse.cli.where import Where
from pilothouse.records.runs import Run
from pilothouse.records.states import RunState
from pilothouse.store.errors import Conflict, Deposed
from pilothouse.store.ports import RunStore
from pilothouse.workflows.closure import Closure
from pilothouse.workflows.executor import Executor
from pilothouse.workflows.expressions.evaluator import Evaluator
from pilothouse.workflows.local.commands import LocalCommands
from pilothouse.workflows.local.runner import Runner

_EXIT = {RunState.SUCCEEDED: 0, RunState.FAILED: 1, RunState.CANCELLED: 3}
"""Exit statuses of a run that has ended."""

_LOOK = 2.0
"""Seconds after which another process's run is looked at again: that process may have been killed."""

Secrets: TypeAlias = Mapping[str, Mapping[str, bytes]]


def secrets_of(manifests: Manifests, namespace: str) -> Secrets:
    """The values of the Secrets in the files, by name and key."""
    return {name: secret.values for name, secret in manifests.named(Secret, namespace).items()}


@dataclass(frozen=True, slots=True)
class Driver:
    """Where the run is kept and what its steps need."""

    where: Where
    store: RunStore
    evaluator: Evaluator
    secrets: Secrets = field(repr=False)

    async def to_result(self, run: Run, after: int, output: str) -> int:
        """Shows the events after `after` while it drives, then prints the result. An interrupt pauses the run."""
        try:
            async with _shown(self.store, run, after):
                ended = await self._runner().drive(run.ref)
        except Deposed:
            raise CommandError(f"another process has taken {name_of(run)} over; {_watch(run)}") from None
        except Conflict:
            raise CommandError(f"{name_of(run)} is driven by another process; {_watch(run)}") from None
        except asyncio.CancelledError:
            tell(f"{name_of(run)} is paused; go on with: pilothouse resume {typed(run)}")
            return PAUSED
        await print_result(self.store, run.ref, output)
        return _EXIT[ended.state]

    async def to_end(self, run: Run) -> Run:
        """Waits for the run's end while another process drives it, and drives it where none does."""
        while True:
            with suppress(Conflict):
                return await self._runner().drive(run.ref)
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK):
                    async for _ in follow(self.store, run.ref, run.event_seq):
                        pass
                    return (await self.store.snapshot(run.ref)).run

    def _runner(self) -> Runner:
        def executors(closure: Closure, wake: Callable[[], None]) -> Mapping[str, Executor]:
            sources = LocalSources(closure.config_maps, self.secrets)
            commands = LocalCommands(self.where.attempts, self.store, sources, wake)
            made: dict[str, Executor] = {"runCommand": commands, "executeCode": commands}
            if closure.agents:
                from pilothouse.cli.agents import LocalAgents  # a tenth of a second that other runs need not wait

                made["invokeAgent"] = LocalAgents(self.where.state / "workspaces", self.store, sources, wake, tell)
            return made

        return Runner(self.store, self.evaluator, executors, tell)


@asynccontextmanager
async def _shown(store: RunStore, run: Run, after: int) -> AsyncIterator[None]:
    """Shows what happens to the run meanwhile, and to its last event where it ended."""
    showing = asyncio.create_task(_show(store, run, after))
    try:
        yield
        await showing
    finally:
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)


async def _show(store: RunStore, run: Run, after: int) -> None:
    with progress_of(await store.snapshot(run.ref)) as progress:
        async for event in follow(store, run.ref, after):
            progress.show(event)


def _watch(run: Run) -> str:
    return f"watch it with `pilothouse events -f {typed(run)}`, or end it with `pilothouse cancel {typed(run)}`"
