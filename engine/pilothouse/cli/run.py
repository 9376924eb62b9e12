"""`run`, `resume` and `cancel`: the commands that drive a run."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID, uuid5

import uuid6

from pilothouse.api.agent import Agent
from pilothouse.api.fields import seconds
from pilothouse.api.workflow import Workflow, run_key
from pilothouse.cli.configdata import ConfigMap
from pilothouse.cli.driver import Driver, Secrets, secrets_of
from pilothouse.cli.local import CommandError, Where, complete, find_run, name_of, tell, tenant_of
from pilothouse.cli.manifests import Manifests, read
from pilothouse.cli.validate import examine, told, validate
from pilothouse.records.failures import Failed
from pilothouse.records.runs import NewRun, NewStep, Run, StepId
from pilothouse.records.states import Shutdown
from pilothouse.records.values import JSON
from pilothouse.store.ports import RunStore
from pilothouse.workflows.closure import Closure
from pilothouse.workflows.expressions.evaluator import Evaluator
from pilothouse.workflows.freeze import freeze
from pilothouse.workflows.params import ParamError, bind, parse


@dataclass(frozen=True, slots=True)
class Request:
    """What `run` was asked for."""

    files: Sequence[Path]
    params: Sequence[str]
    workflow: str | None
    namespace: str


def start(where: Where, request: Request, output: str) -> int:
    """`pilothouse run`."""

    async def command() -> int:
        async with Evaluator() as evaluator:
            checked = await _checked(request, evaluator)
            where.make()
            async with where.store() as store:
                tenant = await tenant_of(store, request.namespace)
                run = await store.create_run(checked.new_run(tenant, request.namespace))
                driver = Driver(where, store, evaluator, checked.secrets)
                return await driver.to_result(run, 0, output)

    return complete(command)


def check(files: Sequence[Path]) -> int:
    """`pilothouse validate`."""

    async def command() -> int:
        problems = await validate(files)
        if problems:
            raise CommandError("\n".join(["these files cannot be run", *problems]))
        tell("all is well")
        return 0

    return complete(command)


def resume(where: Where, name: str | None, namespace: str, output: str) -> int:
    """`pilothouse resume`."""

    async def command() -> int:
        where.make()
        async with where.store() as store, Evaluator() as evaluator:
            run = await _unfinished(store, name, namespace)
            return await Driver(where, store, evaluator).to_result(run, run.event_seq, output)

    return complete(command)


def cancel(where: Where, name: str, verb: str, namespace: str) -> int:
    """`pilothouse cancel`: asks the run's driver to end it, or drives it to its end where it has none."""

    async def command() -> int:
        where.make()
        async with where.store() as store, Evaluator() as evaluator:
            run = await find_run(store, name, namespace)
            if run.state.final:
                raise CommandError(f"{name_of(run)} has ended already: it {run.state.value}")
            await store.request_shutdown(run.ref, Shutdown(verb))
            ended = await Driver(where, store, evaluator).to_end(run)
            tell(f"{name_of(run)} {ended.state.value}")
        return 0

    return complete(command)


async def _checked(request: Request, evaluator: Evaluator) -> "_Checked":
    manifests = await asyncio.to_thread(read, list(request.files), request.namespace)
    problems = told(await examine(manifests, evaluator))
    if problems:
        raise CommandError("\n".join(["nothing was run", *problems]))
    workflow = _chosen(manifests.workflows, request.workflow)
    closure, params = _closure(workflow, manifests, request), _params(workflow, request.params)
    return _Checked(workflow, closure, params, secrets_of(manifests, request.namespace))


@dataclass(frozen=True, slots=True)
class _Checked:
    """A checked request: what will run, with which values."""

    workflow: Workflow
    closure: Closure
    params: Mapping[str, JSON]
    secrets: Secrets = field(repr=False)

    def new_run(self, tenant: UUID, namespace: str) -> NewRun:
        spec, name = self.workflow.spec, self.workflow.metadata.name or ""
        return NewRun(
            tenant=tenant,
            run=uuid6.uuid7(),
            namespace=namespace,
            workflow=name,
            workflow_uid=uuid5(tenant, f"Workflow {name}"),
            key=run_key(spec),
            closure=self.closure.to_json(),
            params=self.params,
            steps=[NewStep(StepId(step.name), step.action[0]) for step in spec.steps or ()],
            deadline_seconds=seconds(spec.deadline) if spec.deadline else None,
        )


def _chosen(workflows: Sequence[Workflow], name: str | None) -> Workflow:
    names = [workflow.metadata.name or "" for workflow in workflows]
    if name is None and len(workflows) == 1:
        return workflows[0]
    if not names:
        raise CommandError("the files hold no Workflow")
    if name is None:
        raise CommandError(f"the files hold several Workflows; choose one with --workflow: {', '.join(names)}")
    if name not in names:
        raise CommandError(f"the files hold no Workflow `{name}`; they hold: {', '.join(names)}")
    return workflows[names.index(name)]


def _closure(workflow: Workflow, manifests: Manifests, request: Request) -> Closure:
    agents = {name: agent.spec for name, agent in manifests.named(Agent, request.namespace).items()}
    config_maps = {name: dict(map_.texts) for name, map_ in manifests.named(ConfigMap, request.namespace).items()}
    origin = [str(path.absolute()) for path in request.files if str(path) != "-"]
    try:
        return freeze(workflow.spec, agents, config_maps, origin)
    except Failed as error:
        raise CommandError(str(error.failure)) from None


def _params(workflow: Workflow, given: Sequence[str]) -> dict[str, JSON]:
    declared = {param.name: param for param in workflow.spec.params}
    values: dict[str, JSON] = {}
    try:
        for item in given:
            name, equals, text = item.partition("=")
            if not equals:
                raise CommandError(f"--param {item}: write it as NAME=VALUE")
            values[name] = parse(declared[name], text) if name in declared else text
        return bind(workflow.spec.params, values)
    except ParamError as error:
        raise CommandError(str(error)) from None


async def _unfinished(store: RunStore, name: str | None, namespace: str) -> Run:
    if name is not None:
        run = await find_run(store, name, namespace)
        if run.state.final:
            raise CommandError(f"{name_of(run)} has ended already: it {run.state.value}")
        return run
    runs = await store.runs(await tenant_of(store, namespace), unfinished=True)
    if len(runs) == 1:
        return runs[0]
    if not runs:
        raise CommandError(f"no run in namespace {namespace} waits to be resumed")
    raise CommandError(f"several runs wait to be resumed; name one: {', '.join(map(name_of, runs))}")
