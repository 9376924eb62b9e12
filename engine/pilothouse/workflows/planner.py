"""The planner: from a Workflow's spec to its plan, or to the problems that keep it from having one."""

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field

from pilothouse.api.fields import seconds
from pilothouse.api.problem import Problem
from pilothouse.api.suggestion import suggestion
from pilothouse.api.workflow import Retry, Step, WorkflowSpec
from pilothouse.records.failures import FailureCode
from pilothouse.records.runs import StepId
from pilothouse.workflows.expressions.errors import ExpressionError, ExpressionLimit
from pilothouse.workflows.expressions.evaluator import Compiled, Evaluator
from pilothouse.workflows.expressions.references import References
from pilothouse.workflows.graph import CycleError, Graph
from pilothouse.workflows.plan import Branch, FailurePolicy, OnLoss, Plan, PlannedStep, RetryPolicy
from pilothouse.workflows.scope import NAMES, RUN_FIELDS
from pilothouse.workflows.sites import Site, step_sites, template_sites
from pilothouse.workflows.steps import KINDS

EXPRESSIONS_LIMIT = 2_000
"""Expressions in one Workflow: compiling one takes about a millisecond."""


@dataclass
class _Draft:
    """What is known of a step while the plan is made."""

    step: Step
    where: str
    needs: set[str] = field(default_factory=set)
    survives: set[str] = field(default_factory=set)
    branch: tuple[str, str] | None = None


class Unplannable(ValueError):  # noqa: N818 - the outcome, as a caller reports it
    """A spec that has no plan; every problem has the path of the field that it is about."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self._problems = problems


async def make_plan(spec: WorkflowSpec, evaluator: Evaluator) -> Plan:
    """The plan of a spec that was checked. Raises Unplannable."""
    planner = _Planner(spec, evaluator)
    problems = await planner.problems()
    if problems:
        raise Unplannable(problems)
    return planner.plan()


async def plan_problems(spec: WorkflowSpec, evaluator: Evaluator) -> list[Problem]:
    """What keeps a spec from having a plan; its actions need not all be supported."""
    return await _Planner(spec, evaluator).problems()


class _Planner:
    def __init__(self, spec: WorkflowSpec, evaluator: Evaluator) -> None:
        self._spec = spec
        self._evaluator = evaluator
        self._drafts = {s.name: _Draft(s, f"spec.steps[{i}]") for i, s in enumerate(spec.steps or ())}
        self._params = {param.name for param in spec.params}
        self._expressions_seen = 0
        self._problems: list[Problem] = []

    async def problems(self) -> list[Problem]:
        for draft in self._drafts.values():
            self._declared_needs(draft)
            self._branches(draft)
            await self._expressions(draft)
        for index, output in enumerate(self._spec.outputs):
            await self._compile(template_sites(output.value, f"spec.outputs[{index}].value"))
        self._acyclic()
        return self._problems

    def plan(self) -> Plan:
        """The plan, once there are no problems."""
        steps = (_planned(draft) for draft in self._drafts.values())
        return Plan({step.id: step for step in steps}, FailurePolicy(self._spec.failure_policy), self._spec.parallelism)

    def _declared_needs(self, draft: _Draft) -> None:
        for index, need in enumerate(draft.step.needs):
            if self._known(need, f"{draft.where}.needs[{index}]"):
                draft.needs.add(need)

    def _branches(self, draft: _Draft) -> None:
        conditional = draft.step.conditional
        if conditional is None:
            return
        for side, names in (("then", conditional.then), ("else", conditional.else_)):
            for index, name in enumerate(names):
                where = f"{draft.where}.conditional.{side}[{index}]"
                if self._known(name, where):
                    self._put_on_branch(name, draft.step.name, side, where)

    def _put_on_branch(self, name: str, conditional: str, side: str, where: str) -> None:
        chosen = self._drafts[name]
        if chosen.branch is not None:
            self._problem(where, f"step `{name}` is on a branch of `{chosen.branch[0]}` already")
            return
        chosen.branch = (conditional, side)
        chosen.needs.add(conditional)

    async def _expressions(self, draft: _Draft) -> None:
        async for site, compiled in self._compiled(step_sites(draft.step, draft.where)):
            for name, reads in compiled.references.steps.items():
                if name in self._drafts:
                    draft.needs.add(name)
                    draft.survives |= {name} if reads.state else set()
            if site.condition and compiled.result_type not in {"bool", "dyn"}:
                self._problem(site.path, f"must give true or false, and gives {compiled.result_type}")

    async def _compile(self, sites: Iterable[Site | Problem]) -> None:
        async for _ in self._compiled(sites):
            pass

    async def _compiled(self, sites: Iterable[Site | Problem]) -> AsyncIterator[tuple[Site, Compiled]]:
        for site in sites:
            if isinstance(site, Problem):
                self._problems.append(site)
                continue
            self._expressions_seen += 1
            if self._expressions_seen > EXPRESSIONS_LIMIT:
                self._too_many()
                return
            try:
                compiled = await self._evaluator.compile(site.source, NAMES)
            except (ExpressionError, ExpressionLimit) as error:
                self._problem(site.path, str(error))
                continue
            self._references(compiled.references, site.path)
            yield site, compiled

    def _too_many(self) -> None:
        if self._expressions_seen == EXPRESSIONS_LIMIT + 1:
            self._problem("spec", f"holds more than {EXPRESSIONS_LIMIT:,} expressions: split the Workflow")

    def _references(self, references: References, where: str) -> None:
        for name in sorted(references.params - self._params):
            self._problem(where, f"there is no param `{name}`{suggestion(name, self._params)}")
        for path in sorted(path for path in references.reads | references.tests if path[0] == "run" and path[1:]):
            if path[1] not in RUN_FIELDS:
                self._problem(where, f"a run has no `{path[1]}`; it has: {', '.join(RUN_FIELDS)}")
        for name, reads in references.steps.items():
            if self._known(name, where):
                self._outputs(name, {str(path[0]) for path in reads.outputs if path}, where)

    def _outputs(self, name: str, outputs: set[str], where: str) -> None:
        key, _ = self._drafts[name].step.action
        kind = KINDS.get(key)
        if kind is None or kind.outputs is None:
            return
        for output in sorted(outputs - kind.outputs):
            given = ", ".join(sorted(kind.outputs))
            self._problem(where, f"step `{name}` ({key}) has no output `{output}`; it has: {given}")

    def _known(self, name: str, where: str) -> bool:
        if name not in self._drafts:
            self._problem(where, f"there is no step `{name}`{suggestion(name, self._drafts)}")
        return name in self._drafts

    def _acyclic(self) -> None:
        try:
            Graph({name: draft.needs for name, draft in self._drafts.items()})
        except CycleError as error:
            self._problem(f"{self._drafts[error.cycle[0]].where}", str(error))

    def _problem(self, where: str, message: str) -> None:
        self._problems.append(Problem(where, message))


def _planned(draft: _Draft) -> PlannedStep:
    key, _ = draft.step.action
    return PlannedStep(
        id=StepId(draft.step.name),
        kind=key,
        needs=frozenset(map(StepId, draft.needs)),
        survives=frozenset(map(StepId, draft.survives)),
        branch=Branch(StepId(draft.branch[0]), draft.branch[1]) if draft.branch else None,
        retry=_retry(draft.step.retry),
        on_loss=_on_loss(draft.step, key),
    )


def _on_loss(step: Step, key: str) -> OnLoss:
    if KINDS[key].durable:
        return OnLoss.CONTINUE
    return OnLoss.RERUN if step.idempotent else OnLoss.FAIL


def _retry(retry: Retry | None) -> RetryPolicy:
    if retry is None:
        return RetryPolicy()
    codes = {} if retry.codes is None else {"codes": frozenset(map(FailureCode, retry.codes))}
    return RetryPolicy(
        attempts=retry.attempts,
        delay=seconds(retry.delay),
        factor=retry.backoff_factor,
        max_delay=seconds(retry.max_delay),
        jitter=retry.jitter,
        **codes,
    )
