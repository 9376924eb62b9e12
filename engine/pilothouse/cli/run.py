"""`run`, `resume` and `cancel`: the commands that drive a run."""

import asyncio
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID, uuid5

import uuid6

from pilothouse.api.agent import Agent
from pilothouse.api.fields import seconds
from pilothouse.api.pod import Pod
from pilothouse.api.problem import Problem
from pilothouse.api.workflow import Workflow, WorkflowSpec, run_key
from pilothouse.cli.command import CommandError, complete, tell
from pilothouse.cli.configdata import ConfigMap
from pilothouse.cli.driver import Driver, Secrets, secrets_of
from pilothouse.cli.manifests import Manifests, read
from pilothouse.cli.names import find_run, name_of, tenant_of
from pilothouse.cli.origin import Origin
from pilothouse.cli.validate import examine, told, validate
from pilothouse.cli.where import Where
from pilothouse.records.failures import Failed
from pilothouse.records.runs import NewRun, NewStep, Run, StepId
from pilothouse.records.states import Shutdown
from pilothouse.records.values import JSON
from pilothouse.store.ports import RunStore
from pilothouse.workflows.closure import Closure, freeze, invoked
from pilothouse.workflows.expressions.evaluator import Evaluator
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
                new = checked.new_run(await tenant_of(store, checked.namespace))
                Origin.of(request.files).keep(where, new.run)
                run = await store.create_run(new)
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


def resume(where: Where, name: str | None, files: Sequence[Path], namespace: str, output: str) -> int:
    """`pilothouse resume`. `files`: where its Secrets are, if not in the files that it came from."""

    async def command() -> int:
        where.make()
        async with where.store() as store, Evaluator() as evaluator:
            run = await _unfinished(store, name, namespace)
            origin = Origin.find(where, run)
            values = await (Origin.of(files) if files else origin).secrets(run)
            return await Driver(where, store, evaluator, values).to_result(run, run.event_seq, output)

    return complete(command)


def cancel(where: Where, name: str, verb: Shutdown, namespace: str) -> int:
    """`pilothouse cancel`: asks the run's driver to end it, or drives it to its end where it has none."""

    async def command() -> int:
        where.make()
        async with where.store() as store, Evaluator() as evaluator:
            run = await find_run(store, name, namespace)
            if run.state.final:
                raise CommandError(f"{name_of(run)} has ended already: it {run.state.value}")
            Origin.find(where, run)
            await store.request_shutdown(run.ref, verb)
            ended = await Driver(where, store, evaluator, {}).to_end(run)
            tell(f"{name_of(run)} {ended.state.value}")
        return 0

    return complete(command)


async def _checked(request: Request, evaluator: Evaluator) -> "_Checked":
    manifests = await asyncio.to_thread(read, list(request.files), request.namespace)
    problems = told(await examine(manifests, evaluator))
    if problems:
        raise CommandError("\n".join(["nothing was run", *problems]))
    workflow, namespace = _chosen(manifests, request.workflow)
    closure = closure_of(workflow.spec, manifests, namespace)
    _runs_here(closure)
    return _Checked(workflow, namespace, closure, _params(workflow, request.params), secrets_of(manifests, namespace))


@dataclass(frozen=True, slots=True)
class _Checked:
    """A checked request: what will run, in which namespace, with which values."""

    workflow: Workflow
    namespace: str
    closure: Closure
    params: Mapping[str, JSON]
    secrets: Secrets = field(repr=False)

    def new_run(self, tenant: UUID) -> NewRun:
        return new_run(tenant, self.namespace, _name(self.workflow), self.closure, self.params)


def new_run(tenant: UUID, namespace: str, name: str, closure: Closure, params: Mapping[str, JSON]) -> NewRun:
    """A run of this machine of the frozen Workflow, by that name."""
    spec = closure.workflow
    return NewRun(
        tenant=tenant,
        run=uuid6.uuid7(),
        namespace=namespace,
        workflow=name,
        workflow_uid=uuid5(tenant, f"Workflow {name}"),
        key=run_key(spec),
        closure=closure.to_json(),
        params=params,
        steps=[NewStep(StepId(step.name), step.action[0]) for step in spec.steps or ()],
        deadline_seconds=seconds(spec.deadline) if spec.deadline else None,
    )


def _name(workflow: Workflow) -> str:
    """The Workflow's name; one that is to be generated gets an ending by chance, as the API server gives it."""
    metadata = workflow.metadata
    return metadata.name or f"{metadata.generate_name}{secrets.token_hex(3)[:5]}"


def _chosen(manifests: Manifests, name: str | None) -> tuple[Workflow, str]:
    """The Workflow to run and its namespace."""
    found = [
        (manifest.object, manifest.namespace) for manifest in manifests.all if isinstance(manifest.object, Workflow)
    ]
    names = [workflow.metadata.name or workflow.metadata.generate_name or "" for workflow, _ in found]
    if not found:
        raise CommandError("the files hold no Workflow")
    if name is None and len(found) > 1:
        raise CommandError(f"the files hold several Workflows; choose one with --workflow: {', '.join(names)}")
    if name is not None and name not in names:
        raise CommandError(f"the files hold no Workflow `{name}`; they hold: {', '.join(names)}")
    return found[names.index(name) if name is not None else 0]


def _runs_here(closure: Closure) -> None:
    """Raises CommandError for what only a cluster can do, where to leave it out would change what runs."""
    if problems := list(_for_a_cluster(closure)):
        raise CommandError("\n".join(["nothing was run", *map(str, problems)]))


def _for_a_cluster(closure: Closure) -> Iterator[Problem]:
    spec = closure.workflow
    if spec.suspend:
        yield Problem("spec.suspend", "a run of this machine begins at once; leave it out to run here")
    if spec.shutdown is not None:
        yield Problem("spec.shutdown", "nothing runs while it is set; leave it out, and end a run with cancel")
    for index, step in enumerate(spec.steps or ()):
        if step.run_command is not None and step.run_command.image is not None:
            place = f"spec.steps[{index}].runCommand.image"
            yield Problem(place, "an image runs on a cluster only; leave it out to run here")
        yield from _pod_only(step.pod, f"spec.steps[{index}].pod")
    for name in invoked(spec):
        yield from _pod_only(closure.agents[name].pod, f"Agent `{name}`: spec.pod")


def _pod_only(pod: Pod | None, place: str) -> Iterator[Problem]:
    """What a program would miss; where and how large a Pod is means nothing here, and does no harm."""
    if pod is not None and pod.env:
        yield Problem(f"{place}.env", "variables of a Pod are for a cluster only; leave them out to run here")
    if pod is not None and pod.volumes:
        yield Problem(f"{place}.volumes", "volumes are mounted on a cluster only; leave them out to run here")


def closure_of(spec: WorkflowSpec, manifests: Manifests, namespace: str) -> Closure:
    """All that a run of this Workflow reads, of the namespace's objects in the files."""
    agents = {name: agent.spec for name, agent in manifests.named(Agent, namespace).items()}
    config_maps = {name: dict(map_.texts) for name, map_ in manifests.named(ConfigMap, namespace).items()}
    try:
        return freeze(spec, agents, config_maps)
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
            if any("\ud800" <= char <= "\udfff" for char in text):
                raise CommandError(f"--param {name}: the value is no valid text in this terminal's encoding")
            if name in values:
                raise CommandError(f"--param {item}: `{name}` has a value already")
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
