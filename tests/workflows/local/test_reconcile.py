"""Random graphs with random outcomes, crashes and order: every run ends, as a small oracle says, by the rules."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, count
from random import Random
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from hypothesis import given, settings

from pilothouse.api.workflow import WorkflowSpec
from pilothouse.records.events import Event, EventType
from pilothouse.records.failures import Failure
from pilothouse.records.runs import Attempt, NewRun, NewStep, RunRef, StepId
from pilothouse.records.states import RunState, StepState
from pilothouse.store.memory import MemoryRunStore
from pilothouse.workflows.closure import Closure
from pilothouse.workflows.executor import Ending
from pilothouse.workflows.expressions.evaluator import Evaluator
from pilothouse.workflows.plan import Controls, Plan
from pilothouse.workflows.planner import make_plan
from pilothouse.workflows.reconcile import SHARE, Reconciler
from pilothouse.workflows.work import Work
from tests.workflows.local.cases import ENDINGS, OK, Case, cases, expected, unhandled


class Crash(BaseException):
    """The runner dies here."""


@dataclass
class Processes:
    """An executor whose processes end as they are told to, and outlive every runner."""

    case: Case
    chance: Random
    started: list[UUID] = field(default_factory=list)
    ended: dict[UUID, Ending] = field(default_factory=dict)
    open: dict[UUID, Attempt] = field(default_factory=dict)

    async def running(self, attempt: Attempt) -> bool:
        return attempt.ref.attempt in self.started

    async def start(self, attempt: Attempt, work: Work) -> None:
        assert attempt.ref.attempt not in self.started, "an attempt was started twice"
        if self.chance.random() < 0.1:
            raise Crash
        self.started.append(attempt.ref.attempt)
        self.open[attempt.ref.attempt] = attempt

    async def ending(self, attempt: Attempt) -> Ending | None:
        return self.ended.get(attempt.ref.attempt)

    async def stop(self, attempt: Attempt, failure: Failure | None) -> None:
        raise AssertionError("nothing here is to be stopped")

    async def forget(self, attempt: Attempt) -> None:
        if self.chance.random() < 0.1:
            raise Crash

    async def close(self) -> None:
        return

    def end_one(self, tries: Counter[StepId]) -> None:
        """Ends one of the open processes with the outcome that its step's script has next."""
        id_ = self.chance.choice(sorted(self.open))
        attempt = self.open.pop(id_)
        node = next(node for node in self.case.nodes if node.name == attempt.step.path)
        outcome = dict(enumerate(node.outcomes)).get(tries[attempt.step], OK)
        tries[attempt.step] += 1
        self.ended[id_] = ENDINGS[outcome]


@dataclass(frozen=True)
class Ended:
    """A run that was driven to its end."""

    state: RunState
    steps: Mapping[str, StepState]
    events: Sequence[Event]


async def drive(case: Case, evaluator: Evaluator) -> Ended:
    """Drives the case to its end through every crash, and checks on the way what must always hold."""
    store, chance = MemoryRunStore(), Random(case.seed)  # noqa: S311 - the seed makes the order one that can be had again
    spec = WorkflowSpec.model_validate(case.spec())
    plan = await make_plan(spec, evaluator)
    run = await store.create_run(new_run(spec))
    processes, tries, epoch = Processes(case, chance), Counter[StepId](), 1
    watch = Watch(store, run.ref)
    for _ in range(2000):
        reconciler = Reconciler(
            store,
            {"runCommand": processes, "conditional": processes},
            evaluator,
            Closure(spec),
            plan,
            run.ref,
            epoch,
            clock=leaping(chance),
        )
        try:
            done = await reconciler.run_pass()
        except Crash:
            epoch += 1
            continue
        await watch.look(plan)
        if done.run.state.final:
            return await watch.ended()
        if processes.open:
            processes.end_one(tries)
        else:
            assert done.wake_in is not None, "nothing runs and nothing will wake the run: it hangs"
            await asyncio.sleep(done.wake_in)
    raise AssertionError("the run does not end")


def leaping(chance: Random) -> Callable[[], float]:
    """A clock by which a pass is over after one action, or some, or none too many."""
    times = accumulate(chance.choice((0.0, SHARE / 3, SHARE)) for _ in count())
    return lambda: next(times)


def new_run(spec: WorkflowSpec) -> NewRun:
    steps = [NewStep(StepId(step.name), step.action[0]) for step in spec.steps or ()]
    return NewRun(UUID(int=1), uuid4(), "default", "w", UUID(int=2), "sha256:0", {}, {}, steps)


class Watch:
    """What never may happen while a run is driven."""

    def __init__(self, store: MemoryRunStore, run: RunRef) -> None:
        self._store = store
        self._run = run
        self._final: dict[StepId, StepState] = {}

    async def look(self, plan: Plan) -> None:
        snapshot = await self._store.snapshot(self._run)
        for id_, state in self._final.items():
            assert snapshot.steps[id_].state is state, "a final state changed"
        self._final = {id_: step.state for id_, step in snapshot.steps.items() if step.state.final}
        open_attempts = Counter(a.step for a in await self._store.attempts(self._run) if not a.state.final)
        assert all(count == 1 for count in open_attempts.values()), "a step has two open attempts"
        assert len(open_attempts) <= (plan.parallelism or len(plan.steps))
        running = {id_ for id_, step in snapshot.steps.items() if step.state is StepState.RUNNING}
        assert open_attempts.keys() == running

    async def ended(self) -> Ended:
        snapshot = await self._store.snapshot(self._run)
        events = await self._store.events(self._run)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        states = {id_.path: step.state for id_, step in snapshot.steps.items()}
        return Ended(snapshot.run.state, states, events)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def evaluator() -> AsyncIterator[Evaluator]:
    async with Evaluator() as made:
        yield made


@pytest.mark.feature("B44")
@pytest.mark.asyncio(loop_scope="module")
@settings(max_examples=150)
@given(case=cases())
async def test_every_run_ends_by_the_rules_whatever_dies_on_the_way(case: Case, evaluator: Evaluator) -> None:
    ended, states = await drive(case, evaluator), expected(case)
    broken = unhandled(case, states)
    if not broken or not case.fail_fast:
        assert ended.steps == states
    else:
        assert {ended.steps[name] for name in states if ended.steps[name] is not states[name]} <= {
            StepState.OMITTED,
            StepState.FAILED,
        }
        assert unhandled(case, ended.steps) != set()
        assert_nothing_begins_after_a_failure(case, ended)
    assert ended.state is (RunState.FAILED if broken else RunState.SUCCEEDED)
    assert_steps_begin_after_their_needs(case, ended)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_long_run_gives_others_their_turn_and_hears_what_was_asked_meanwhile(evaluator: Evaluator) -> None:
    spec = WorkflowSpec.model_validate({"steps": [{"name": f"s{n}", "transform": {"value": n}} for n in range(4)]})
    store, clock = MemoryRunStore(), count(step=SHARE)
    run = await store.create_run(new_run(spec))
    plan = await make_plan(spec, evaluator)
    reconciler = Reconciler(store, {}, evaluator, Closure(spec), plan, run.ref, 1, clock=lambda: next(clock))

    async def succeeded(controls: Controls) -> tuple[int, float | None]:
        done = await reconciler.run_pass(controls)
        return Counter(step.state for step in done.snapshot.steps.values())[StepState.SUCCEEDED], done.wake_in

    assert await succeeded(Controls()) == (1, 0.0)
    assert await succeeded(Controls()) == (2, 0.0)
    assert await succeeded(Controls(suspend=True)) == (2, None)
    assert await succeeded(Controls()) == (3, 0.0)
    assert await succeeded(Controls()) == (4, None), "nobody waits another turn for the run's end alone"


FINAL = {
    EventType.STEP_SUCCEEDED,
    EventType.STEP_FAILED,
    EventType.STEP_ERROR,
    EventType.STEP_SKIPPED,
    EventType.STEP_OMITTED,
}


def assert_steps_begin_after_their_needs(case: Case, ended: Ended) -> None:
    settled: set[str] = set()
    needs = {node.name: node.all_needs for node in case.nodes}
    for event in ended.events:
        if event.step is not None:
            assert event.step.path not in settled, "something happened to a step after its end"
            if event.type is EventType.STEP_STARTED:
                assert needs[event.step.path] <= settled, "a step began before a need was settled"
            settled |= {event.step.path} if event.type in FINAL else set()
    assert settled == needs.keys()


def assert_nothing_begins_after_a_failure(case: Case, ended: Ended) -> None:
    failed = unhandled(case, ended.steps)
    over = False
    for event in ended.events:
        if event.step is not None:
            first = event.type is EventType.STEP_STARTED and event.data["attempt"] == 1
            assert not (over and first), "a step began after an unhandled failure"
            over |= event.step.path in failed and event.type in {EventType.STEP_FAILED, EventType.STEP_ERROR}
