"""While the database or the API server is away, work waits; it goes on by itself, and nothing has failed."""

import pytest

from pilothouse.records.runs import NewRun, Run
from pilothouse.store.errors import StoreUnusable
from pilothouse_operator.kube.errors import Refused
from pilothouse_operator.kube.port import Object
from pilothouse_operator.kube.resources import AGENTS, CONFIG_MAPS, Resource
from pilothouse_operator.operator import SWEEP
from tests.operator.desk import Desk, command, invocation
from tests.operator.kubelet import framed


async def test_an_outage_of_the_store_shows_on_what_is_unfinished_and_not_on_what_is_finished(desk: Desk) -> None:
    await desk.begin()
    desk.workflow(name="done")
    await desk.settle()
    desk.kubelet.succeed("a")
    await desk.settle()
    desk.workflow(name="runs")
    await desk.settle()
    desk.kubelet.start("a")
    await desk.settle()
    steps = desk.object("runs")["status"]["steps"]
    desk.calls.away = True
    desk.kubelet.end("a", framed())
    desk.workflow(name="new")
    for name in ("done", "runs", "new"):
        desk.operator.queue.add(desk.key(name))
    await desk.later(1)
    assert desk.condition("Ready", "runs") == ("Unknown", "StoreUnavailable")
    assert desk.condition("Finished", "runs") == ("False", "Progressing")
    assert desk.object("runs")["status"]["steps"] == steps
    assert desk.condition("Ready", "new") == ("Unknown", "StoreUnavailable")
    assert desk.condition("Ready", "done") == ("True", "Succeeded")
    await desk.later(3600)
    assert desk.condition("Ready", "runs") == ("Unknown", "StoreUnavailable")
    desk.calls.away = False
    await desk.later(100)
    assert desk.condition("Ready", "runs") == ("True", "Succeeded")
    desk.kubelet.succeed("a")
    await desk.settle()
    assert desk.condition("Ready", "new") == ("True", "Succeeded")
    assert desk.kubelet.executions == {"a": 3}
    assert ("Warning", "StoreUnavailable") not in desk.events()


async def test_an_outage_of_the_store_is_said_once(desk: Desk) -> None:
    await desk.begin()
    desk.workflow()
    await desk.settle()
    desk.calls.away = True
    desk.operator.queue.add(desk.key())
    await desk.later(1)
    before = desk.writes()
    await desk.later(1000)
    assert desk.writes() == before


async def test_a_store_that_cannot_be_used_shows_without_what_only_its_owner_should_read(desk: Desk) -> None:
    """Its disk is full, or it has become a standby: to read it is possible still."""

    async def full(_: NewRun) -> Run:
        raise StoreUnusable("PostgreSQL: could not extend file base/5/1: the disk is full")

    await desk.begin()
    desk.calls.create_run = full  # type: ignore[attr-defined]
    desk.workflow()
    await desk.settle()
    assert desk.condition("Ready") == ("Unknown", "StoreUnavailable")
    assert "the operator's log says why" in desk.message()
    assert "base/5" not in desk.message()
    del desk.calls.create_run
    await desk.later(60)
    assert desk.condition("Ready") == ("Unknown", "Progressing")


async def test_a_leader_whose_store_cannot_be_used_goes_on_to_lead(desk: Desk) -> None:
    await desk.begin()
    desk.calls.away, desk.calls.fault = True, StoreUnusable("PostgreSQL: the server refuses the password")
    desk.workflow()
    await desk.later(100)
    await desk.later(100)
    assert desk.operator.leads
    assert desk.condition("Ready") == ("Unknown", "StoreUnavailable")
    desk.calls.away = False
    await desk.later(100)
    assert desk.condition("Ready") == ("Unknown", "Progressing")


FAILURES = [
    (Refused('configmaps is forbidden: User "x" cannot get', forbidden=True), "refuses the operator: configmaps is"),
    (KeyError("s3cret"), "the operator failed unexpectedly; its log says how"),
]


@pytest.mark.parametrize(("error", "told"), FAILURES)
async def test_what_keeps_a_look_from_being_done_is_said_once_and_taken_back(
    desk: Desk, error: Exception, told: str
) -> None:
    await desk.begin()
    desk.workflow()
    await desk.settle()
    steps = desk.object()["status"]["steps"]
    desk.calls.away, desk.calls.fault = True, error
    desk.operator.queue.add(desk.key())
    await desk.settle()
    assert desk.condition("Ready") == ("False", "ReconcileFailed")
    assert desk.condition("Reconciling") == ("True", "ReconcileFailed")
    assert told in desk.message()
    assert "s3cret" not in desk.message()
    assert desk.object()["status"]["steps"] == steps
    before = desk.writes()
    for _ in range(5):
        desk.operator.queue.add(desk.key())
        await desk.settle()
    assert desk.writes() == before
    desk.calls.away = False
    await desk.later(60)
    assert desk.condition("Ready") == ("Unknown", "Progressing")


async def test_what_keeps_an_agent_from_being_looked_at_is_said(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    real = desk.fake.get

    async def get(resource: Resource, namespace: str | None, name: str) -> Object | None:
        if resource is CONFIG_MAPS:
            raise Refused('configmaps "texts" is forbidden', forbidden=True)
        return await real(resource, namespace, name)

    monkeypatch.setattr(desk.fake, "get", get)
    await desk.begin()
    desk.agent(prompt={"systemFrom": {"configMapKeyRef": {"name": "texts", "key": "a"}}})
    await desk.settle()
    assert desk.condition("Ready", "scribe", AGENTS) == ("False", "ReconcileFailed")


async def test_an_outage_of_the_api_server_delays_and_loses_nothing(desk: Desk) -> None:
    await desk.begin()
    desk.workflow(command("a"), command("b", needs=["a"]))
    await desk.settle()
    desk.kubelet.start("a")
    await desk.settle()
    desk.fake.away = True
    desk.kubelet.end("a", framed())
    await desk.later(3600)
    assert await desk.states() == {"a": "Running", "b": "Pending"}
    desk.fake.away = False
    await desk.later(100)
    desk.kubelet.succeed("b")
    await desk.settle()
    assert desk.condition("Ready") == ("True", "Succeeded")
    assert desk.kubelet.executions == {"a": 1, "b": 1}


async def test_a_hint_that_is_lost_costs_half_a_minute_at_most(desk: Desk) -> None:
    """The agent's own outcome comes through the database alone."""
    desk.agent()
    desk.workflow(invocation("ask"))
    await desk.begin(prepare=desk.deafen)
    desk.kubelet.start("ask")
    await desk.settle()
    await desk.agent_says("ask", text="fine")
    await desk.later(SWEEP)
    assert desk.condition("Ready") == ("True", "Succeeded")


@pytest.mark.parametrize("forbidden", [True, False])
async def test_a_deletion_is_believed_only_where_the_api_server_tells_of_it(desk: Desk, forbidden: bool) -> None:
    """A 403 or an outage proves nothing of an object."""
    await desk.begin()
    desk.workflow()
    await desk.settle()
    await desk.end()
    desk.watching = False
    desk.fake.away = not forbidden
    desk.fake.admission.blind = forbidden
    desk.operator = desk.made()
    await desk.begin()
    await desk.later(1000)
    (run,) = await desk.runs()
    assert run.state.value == "Running"
    assert run.shutdown is None
