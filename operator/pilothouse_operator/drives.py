"""Drives: the reconcilers of the runs that are under way, each with its executors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from pilothouse.api.fields import seconds
from pilothouse.api.workflow import Step, WorkflowSpec
from pilothouse.records.runs import Attempt, Run, RunRef, StepId
from pilothouse.store.ports import RunStore
from pilothouse.workflows.closure import Closure
from pilothouse.workflows.executor import Executor
from pilothouse.workflows.expressions.evaluator import Evaluator
from pilothouse.workflows.plan import Controls, FailurePolicy
from pilothouse.workflows.planner import make_plan
from pilothouse.workflows.reconcile import GRACE, Reconciler
from pilothouse_operator.agentsteps import AgentPods
from pilothouse_operator.commands import CommandPods
from pilothouse_operator.executor import Memory, Surroundings
from pilothouse_operator.kube.port import Kube
from pilothouse_operator.names import Owner
from pilothouse_operator.objects import Key, Objects
from pilothouse_operator.pods import Ground
from pilothouse_operator.settings import Settings


@dataclass(frozen=True, slots=True)
class Drive:
    """One run under way."""

    reconciler: Reconciler
    memory: Memory
    key: Key

    def notes(self, attempts: Mapping[StepId, Attempt]) -> dict[str, str]:
        """What the Pods of open attempts wait for, by the step's path."""
        said = {id_: self._note(attempt) for id_, attempt in attempts.items() if not attempt.state.final}
        return {str(id_): note for id_, note in said.items() if note}

    def _note(self, attempt: Attempt) -> str:
        id_ = attempt.ref.attempt
        return self.memory.held.get(id_) or self.memory.pending.get(id_) or ""


@dataclass(slots=True)
class Drives:
    """All of them under one leadership; another leadership begins with none."""

    kube: Kube
    store: RunStore
    evaluator: Evaluator
    objects: Objects
    settings: Settings
    installation: UUID
    epoch: int
    _drives: dict[RunRef, Drive] = field(default_factory=dict)

    async def of(self, run: Run, wake: Callable[[float], None]) -> Drive:
        """The run's drive. `wake` asks for another pass after some seconds."""
        if run.ref not in self._drives:
            self._drives[run.ref] = await self._make(run, wake)
        return self._drives[run.ref]

    def known(self, run: RunRef) -> Drive | None:
        """The run's drive, where it is under way."""
        return self._drives.get(run)

    def key_of(self, run: RunRef) -> Key | None:
        """The object whose run it is, where that is under way."""
        drive = self._drives.get(run)
        return None if drive is None else drive.key

    def drop(self, run: RunRef) -> bool:
        """Whether it was under way."""
        return self._drives.pop(run, None) is not None

    async def _make(self, run: Run, wake: Callable[[float], None]) -> Drive:
        closure = Closure.from_json(run.closure)
        plan = await make_plan(closure.workflow, self.evaluator)
        memory = Memory()
        executors = self._executors(
            run,
            closure,
            Surroundings(
                kube=self.kube,
                store=self.store,
                epoch=self.epoch,
                owner=Owner(run.namespace, run.workflow, str(run.workflow_uid)),
                objects=self.objects,
                wake=wake,
                memory=memory,
            ),
        )
        reconciler = Reconciler(self.store, executors, self.evaluator, closure, plan, run.ref, self.epoch, grace=_grace)
        return Drive(reconciler, memory, Key("Workflow", run.namespace, run.workflow))

    def _executors(self, run: Run, closure: Closure, around: Surroundings) -> Mapping[str, Executor]:
        settings = self.settings
        ground = Ground(self.installation, around.owner, settings.image, settings.image_pull_policy)
        steps = {StepId(step.name): step for step in closure.workflow.steps or ()}
        commands = CommandPods(around, ground, steps, closure.config_maps)
        agents = AgentPods(around, ground, steps, closure.config_maps, settings.store_url, settings.store_ca)
        return {"runCommand": commands, "executeCode": commands, "invokeAgent": agents}


def _grace(step: Step) -> float:
    """On a cluster an attempt's time begins when its Pod does, and that may take long."""
    return GRACE + seconds(step.pending_timeout)


def controls_begun_with(run: Run, suspend: bool) -> Controls:
    """The control fields as they stood when the run began, but for `suspend`."""
    return replace(controls_of(Closure.from_json(run.closure).workflow), suspend=suspend)


def controls_of(spec: WorkflowSpec) -> Controls:
    """The control fields as they stand on the object."""
    return Controls(
        suspend=spec.suspend,
        failure_policy=FailurePolicy(spec.failure_policy),
        parallelism=spec.parallelism,
        deadline=seconds(spec.deadline) if spec.deadline else None,
    )
