"""One operator acts at a time. Who lost the lead does nothing more, and who stands by takes over."""

import asyncio
from uuid import UUID, uuid4

import pytest

from pilothouse.records.states import Shutdown
from pilothouse.store.transitions import Transition
from pilothouse_operator.installation import StoreMismatch
from pilothouse_operator.kube.resources import WORKFLOWS
from pilothouse_operator.operator import HEARTBEAT, SCOPE
from tests.operator.desk import Desk, command
from tests.operator.kubelet import framed


async def test_an_operator_without_the_lead_watches_and_acts_once_it_has_it(desk: Desk) -> None:
    async with desk.store.lead(SCOPE):
        desk.leading = asyncio.create_task(desk.operator.lead())
        desk.workflow()
        await desk.later(HEARTBEAT * 5)
        assert not desk.operator.leads
        assert desk.writes() == []
        assert await desk.runs() == []
    while not desk.operator.leads:
        await desk.later(HEARTBEAT)
    await desk.settle()
    assert len(desk.kubelet.pods("a")) == 1


async def test_an_operator_is_deposed_by_the_first_write_that_shows_it_and_does_nothing_more(desk: Desk) -> None:
    await desk.begin()
    desk.workflow(command("a"), command("b", needs=["a"]))
    await desk.settle()
    desk.kubelet.start("a")
    await desk.settle()
    (run,) = await desk.runs()
    await desk.store.commit(run.ref, run.epoch + 1_000, Transition())
    before, old = desk.writes(), desk.operator
    desk.kubelet.end("a", framed())
    await desk.until(lambda: not old.leads)
    desk.workflow(name="other")
    await desk.settle()
    assert desk.writes() == before
    assert await desk.states() == {"a": "Running", "b": "Pending"}
    assert await desk.runs("other") == []


async def test_an_operator_that_another_has_followed_steps_down_within_a_heartbeat(desk: Desk) -> None:
    await desk.begin()
    old = desk.operator
    real = desk.store.epoch_of

    async def newer(scope: str) -> int:
        return await real(scope) + 1

    desk.calls.epoch_of = newer  # type: ignore[attr-defined]
    desk.clock.advance(HEARTBEAT)
    await desk.until(lambda: not old.leads)


async def test_who_takes_over_with_watches_that_lag_behind_repeats_and_ends_nothing(desk: Desk) -> None:
    """What is cached may be older than what the operator before has seen."""
    await desk.begin()
    desk.workflow(command("a"))
    await desk.settle()
    before = desk.object()
    desk.edit(steps=[command("a"), command("b")])
    await desk.settle()
    assert [run.number for run in await desk.runs()] == [1, 2]
    await desk.end()
    desk.operator = desk.made()
    desk.hold()
    desk.operator.see(WORKFLOWS, None, before)
    desk.leading = asyncio.create_task(desk.operator.lead())
    await desk.later(HEARTBEAT)
    await desk.later(HEARTBEAT)
    runs = await desk.runs()
    assert [run.number for run in runs] == [1, 2]
    assert runs[1].shutdown is None


async def test_who_takes_over_with_an_old_object_of_the_name_ends_no_run_of_the_new_one(desk: Desk) -> None:
    await desk.begin()
    desk.workflow()
    await desk.settle()
    before = desk.object()
    desk.delete()
    desk.workflow()
    await desk.later(100)
    await desk.end()
    desk.operator = desk.made()
    desk.hold()
    desk.operator.see(WORKFLOWS, None, before)
    desk.leading = asyncio.create_task(desk.operator.lead())
    await desk.later(HEARTBEAT)
    await desk.later(HEARTBEAT)
    old, new = await desk.runs()
    assert (old.shutdown, new.shutdown) == (Shutdown.TERMINATE, None)


async def test_a_pod_that_another_operator_has_just_made_is_not_tidied_away(desk: Desk) -> None:
    """The rows are read after the Pod was seen, so the one that opened its attempt is among them."""
    await desk.begin()
    desk.workflow(command("a"), command("b", needs=["a"]))
    await desk.settle()
    (run,) = await desk.runs()
    stale = await desk.store.snapshot(run.ref)
    desk.kubelet.succeed("a")
    await desk.settle()
    (pod,) = desk.kubelet.pods()
    await desk.shift(epoch=1).workflows._tidy(desk.key(), UUID(desk.object()["metadata"]["uid"]), desk.tenant, stale)
    assert desk.kubelet.pods() == [pod]


async def test_an_operator_that_meets_another_database_touches_nothing_and_ends(desk: Desk) -> None:
    desk.installation = uuid4()
    desk.workflow()
    with pytest.raises(StoreMismatch, match=f"belongs to installation .*, not {desk.installation}"):
        await desk.begin()
    assert desk.writes() == []
    assert await desk.runs() == []


async def test_a_leader_whose_database_is_another_one_by_now_ends(desk: Desk) -> None:
    """The epochs of two databases may be the same."""

    async def other() -> UUID:
        return UUID(int=1)

    async def go_on() -> None:
        while True:
            await desk.later(HEARTBEAT)

    await desk.begin()
    desk.calls.installation = other  # type: ignore[attr-defined]
    with pytest.raises(StoreMismatch):
        await go_on()
    assert not desk.operator.leads
