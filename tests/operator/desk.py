"""The operator as a whole on a cluster in memory, and the hands of its user."""

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

from pilothouse.api.conditions import check_object
from pilothouse.records.runs import Attempt, Run, Snapshot
from pilothouse.records.states import AttemptState
from pilothouse.records.values import Inline
from pilothouse.store.errors import StoreUnavailable
from pilothouse.store.ports import Leadership, RunStore
from pilothouse.workflows.expressions.evaluator import Evaluator
from pilothouse_operator.kube.port import Kube, Object
from pilothouse_operator.kube.resources import AGENTS, CONFIG_MAPS, EVENTS, OURS, PODS, WORKFLOWS, Resource
from pilothouse_operator.names import MANAGED_BY
from pilothouse_operator.objects import Key
from pilothouse_operator.operator import HEARTBEAT, Operator
from pilothouse_operator.settings import Settings
from pilothouse_operator.shift import Shift
from pilothouse_operator.workqueue import WorkQueue
from tests.operator.clock import Clock
from tests.operator.fakekube import FakeKube
from tests.operator.kubelet import Kubelet

NAMESPACE = "team-a"
SETTINGS = Settings(
    dsn="",
    namespace="pilothouse",
    installation_config_map="pilothouse-installation",
    image="pilothouse:test",
    store_url="https://pilothouse-gateway.pilothouse.svc",
    store_ca="PEM",
)
QUIET_TURNS = 25
"""Turns of the event loop in which nothing was due, after which nothing will be by itself."""


class Calls:
    """A store that knows how many calls are under way. While `away`, each of them raises `fault`."""

    def __init__(self, store: RunStore) -> None:
        self.under_way = 0
        self.away = False
        self.fault: Exception = StoreUnavailable("the database is away")
        self.all_changes: Any = store.all_changes
        self._store = store

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        return self._counted(method) if inspect.iscoroutinefunction(method) else method

    @contextlib.asynccontextmanager
    async def lead(self, scope: str) -> AsyncIterator[Leadership]:
        """Under way until it is decided who leads."""
        async with contextlib.AsyncExitStack() as stack:
            self.under_way += 1
            try:
                leadership = await stack.enter_async_context(self._store.lead(scope))
            finally:
                self.under_way -= 1
            yield leadership

    def _counted(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def counted(*args: Any, **kwargs: Any) -> Any:
            self.under_way += 1
            try:
                if self.away:
                    raise self.fault
                return await method(*args, **kwargs)
            finally:
                self.under_way -= 1

        return counted


@dataclass
class Desk:
    """One cluster, one database, and operators that come and go. `kube` and `store_given` are what an operator is
    given: the cluster and the database themselves, unless a test puts something before them."""

    store: RunStore
    clock: Clock
    fake: FakeKube
    evaluator: Evaluator
    installation: UUID
    kube: Kube = field(init=False)
    store_given: RunStore = field(init=False)
    kubelet: Kubelet = field(init=False)
    operator: Operator = field(init=False)
    calls: Calls = field(init=False)
    leading: "asyncio.Task[None] | None" = None
    watching: bool = True
    held: list[tuple[Resource, str, Object]] | None = None

    def __post_init__(self) -> None:
        self.kube, self.store_given = self.fake, self.store
        self.kubelet = Kubelet(self.fake, NAMESPACE)
        self.fake.watch = self._watch
        self.operator = self.made()

    # ---- operators

    def made(self) -> Operator:
        """An operator that knows nothing yet."""
        self.calls = Calls(self.store_given)
        return Operator(self.kube, cast(RunStore, self.calls), self.evaluator, SETTINGS, self.installation)

    async def begin(self, prepare: Callable[[], None] = lambda: None) -> None:
        """A new operator takes the place of the one before, of which nothing is left. `prepare` is called before it
        leads."""
        await self.end()
        self.operator = self.made()
        prepare()
        self.list_all()
        self.leading = asyncio.create_task(self.operator.lead())
        await asyncio.sleep(0)
        await self.settle()
        while not self.operator.leads:  # the database may not have noticed yet that the one before is gone
            await self.later(HEARTBEAT)
        await self.settle()

    async def end(self) -> None:
        """The operator's process ends, whatever it is at."""
        task, self.leading = self.leading, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def shift(self, epoch: int) -> Shift:
        """The shift of an operator that has seen what this one has, under the leadership with that epoch."""
        operator = self.operator
        return Shift.begin(
            self.kube,
            self.store,
            self.evaluator,
            operator.objects,
            SETTINGS,
            self.installation,
            epoch,
            WorkQueue(lambda key: key.namespace),
            operator.metrics,
        )

    def deafen(self) -> None:
        """The operator hears of no change in the database."""

        @contextlib.asynccontextmanager
        async def deaf() -> AsyncIterator[None]:
            raise StoreUnavailable("nobody listens")
            yield

        self.calls.all_changes = deaf

    def list_all(self) -> None:
        """The operator's watches begin with what is there."""
        for resource in (*OURS, PODS):
            for obj in self.fake.all(resource):
                self._show(resource, None, obj)

    async def settle(self) -> None:
        """Until nothing is due any more."""
        queue, quiet = self.operator.queue, 0
        while quiet < QUIET_TURNS:
            self._raise()
            due = self.operator.leads and (len(queue) or queue._active)
            quiet = 0 if due or self.calls.under_way else quiet + 1
            await asyncio.sleep(0 if quiet else 0.0005)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Until something holds; the test's time limit is the limit."""
        while not holds():
            self._raise()
            await asyncio.sleep(0.001)

    async def later(self, seconds: float) -> None:
        """Time passes, and what is due by then is done. A little more passes, as what was due began a little later."""
        await self.settle()
        self.clock.advance(seconds + 0.2)
        await self.settle()

    def _raise(self) -> None:
        if self.leading is not None and self.leading.done():
            self.leading.result()

    # ---- watches

    def hold(self) -> None:
        """The watches lag behind until `deliver`."""
        self.held = []

    async def deliver_one(self) -> None:
        """The oldest event that was held back arrives."""
        if self.held:
            self._show(*self.held.pop(0))
        await self.settle()

    async def deliver(self) -> None:
        """All that was held back arrives, and what follows is seen at once."""
        while self.held:
            await self.deliver_one()
        self.held = None

    def _watch(self, resource: Resource, change: str, obj: Object) -> None:
        if self.held is not None:
            self.held.append((resource, change, obj))
        elif self.watching:
            self._show(resource, change, obj)

    def _show(self, resource: Resource, change: str | None, obj: Object) -> None:
        ours = resource is PODS and obj["metadata"].get("labels", {}).get(MANAGED_BY) == "pilothouse"
        if resource in OURS or ours:
            self.operator.see(resource, change, obj)

    # ---- the user

    def apply(self, resource: Resource, name: str, spec: Mapping[str, Any], **metadata: Any) -> Object:
        """`kubectl apply`, in the user's hands: new, or with another spec."""
        if self.fake.find(resource, NAMESPACE, name) is None:
            body = {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "metadata": {"name": name, **metadata},
                "spec": dict(spec),
            }
            return self.fake.put(resource, NAMESPACE, body)
        return self.fake.change(resource, NAMESPACE, name, lambda obj: obj.update(spec=dict(spec)))

    def workflow(self, *steps: Mapping[str, Any], name: str = "hello", **spec: Any) -> Object:
        """Applies a Workflow with these steps; one that says hello where none are given."""
        return self.apply(WORKFLOWS, name, {"steps": list(steps) or [command("a")], **spec})

    def agent(self, name: str = "scribe", **spec: Any) -> Object:
        return self.apply(AGENTS, name, {"model": {"provider": "OpenAI", "name": "m"}, **spec})

    def config_map(self, name: str, **data: str) -> Object:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
        return self.fake.put(CONFIG_MAPS, NAMESPACE, body)

    def edit(self, name: str = "hello", **spec: Any) -> None:
        """Sets fields of a Workflow's spec; None takes one away."""

        def change(obj: Object) -> None:
            obj["spec"] = {key: value for key, value in {**obj["spec"], **spec}.items() if value is not None}

        self.fake.change(WORKFLOWS, NAMESPACE, name, change)

    def annotate(self, annotation: str, value: str | None, name: str = "hello") -> None:
        def change(obj: Object) -> None:
            notes = {**obj["metadata"].get("annotations", {}), annotation: value}
            obj["metadata"]["annotations"] = {key: each for key, each in notes.items() if each is not None}

        self.fake.change(WORKFLOWS, NAMESPACE, name, change)

    def delete(self, name: str = "hello", *, collect: bool = True) -> None:
        """`kubectl delete`, and what the garbage collector makes of it."""
        self.fake.remove(WORKFLOWS, NAMESPACE, name)
        if collect:
            self.fake.collect()

    async def agent_says(self, step: str, **outputs: Any) -> None:
        """The process of an agent's Pod commits its outcome."""
        attempt = await self.store.carried(self.kubelet.pod(step)["metadata"]["uid"], NAMESPACE)
        said = {name: Inline(value) for name, value in outputs.items()}
        await self.store.attempt_store(attempt.ref).finish(AttemptState.SUCCEEDED, said)

    # ---- what is seen

    @property
    def tenant(self) -> UUID:
        namespace = self.fake.namespace(NAMESPACE)
        assert namespace is not None
        return UUID(namespace["metadata"]["uid"])

    def key(self, name: str = "hello") -> Key:
        return Key("Workflow", NAMESPACE, name)

    def object(self, name: str = "hello", resource: Resource = WORKFLOWS) -> Object:
        """The object; its status keeps the rules whenever it is looked at."""
        obj = self.fake.find(resource, NAMESPACE, name)
        assert obj is not None
        assert check_object(obj) == []
        return obj

    def condition(self, type_: str, name: str = "hello", resource: Resource = WORKFLOWS) -> tuple[str, str]:
        """The status and the reason of a condition; empty texts where it does not stand."""
        found = {each["type"]: each for each in self.object(name, resource)["status"].get("conditions", [])}
        said = found.get(type_, {})
        return said.get("status", ""), said.get("reason", "")

    def message(self, type_: str = "Ready", name: str = "hello") -> str:
        found = {each["type"]: each for each in self.object(name)["status"]["conditions"]}
        return str(found[type_]["message"])

    async def runs(self, name: str = "hello") -> list[Run]:
        """Oldest first."""
        return list(reversed(await self.store.runs(workflow=name)))

    async def latest(self, name: str = "hello") -> Snapshot:
        return await self.store.snapshot((await self.runs(name))[-1].ref)

    async def states(self, name: str = "hello") -> dict[str, str]:
        """The states of the latest run's steps."""
        return {id_.path: step.state.value for id_, step in (await self.latest(name)).steps.items()}

    async def output(self, step: str, output: str, name: str = "hello") -> Any:
        steps = {id_.path: each for id_, each in (await self.latest(name)).steps.items()}
        stored = steps[step].outputs[output]
        assert isinstance(stored, Inline)
        return stored.value

    async def attempts(self, name: str = "hello") -> list[Attempt]:
        """Those of all runs, oldest first."""
        return [attempt for run in await self.runs(name) for attempt in await self.store.attempts(run.ref)]

    def writes(self, verb: str = "") -> list[str]:
        """What the operator has written so far."""
        return [str(write) for write in self.fake.writes if str(write).startswith(verb)]

    def events(self) -> list[tuple[str, str]]:
        """The type and the reason of each Event."""
        return [(event["type"], event["reason"]) for event in self.fake.all(EVENTS)]


def command(name: str, **step: Any) -> dict[str, Any]:
    """A step that runs a command in our image."""
    return {"name": name, "runCommand": {"command": ["echo", "hello"]}, **step}


def invocation(name: str, agent: str = "scribe", **step: Any) -> dict[str, Any]:
    return {"name": name, "invokeAgent": {"agentRef": {"name": agent}}, **step}


@contextlib.asynccontextmanager
async def desk_on(store: RunStore, clock: Clock) -> AsyncIterator[Desk]:
    """A desk with the namespace `team-a`, and no operator yet."""
    fake = FakeKube(now=clock.epoch)
    fake.add_namespace(NAMESPACE, {"pod-security.kubernetes.io/enforce": "restricted"})
    async with Evaluator() as evaluator:
        desk = Desk(store, clock, fake, evaluator, await store.installation())
        try:
            yield desk
        finally:
            await desk.end()
