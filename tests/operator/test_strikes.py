"""A run of two steps in which every single write goes wrong in every way: it succeeds, and runs each step once.

A crash takes all that the operator knew, and another one with a newer epoch takes over. An outage leaves it running.
"""

from collections.abc import Callable

import pytest

from pilothouse.store.errors import StoreUnavailable
from pilothouse.store.memory import MemoryRunStore
from pilothouse.store.ports import RunStore
from pilothouse_operator.kube.errors import ApiUnavailable
from pilothouse_operator.pods import GRACE
from tests.operator.clock import Clock
from tests.operator.desk import Desk, command, desk_on
from tests.operator.strikes import Crash, Strike

COMMANDS = [command("a"), command("b", needs=["a"])]
POINTS = [
    "create_run",
    "commit:StepStarted",
    "create pods",
    "carry",
    "patch pods",
    "set_status workflows",
    "put_blob",
    "commit:StepSucceeded",
    "delete pods",
    "commit:RunSucceeded",
    "create events",
]
"""Each kind of write that such a run consists of."""


async def drive(desk: Desk, strike: Strike) -> None:
    """Drives the Workflow to its end; whoever crashes is followed by another operator."""
    desk.kube, desk.store_given = strike.kube(desk.fake), strike.store(desk.store)
    await desk.begin()
    desk.workflow(*COMMANDS)
    for _ in range(30):
        try:
            await desk.later(1)
            if desk.condition("Finished") == ("True", "Succeeded") and not desk.kubelet.pods():
                return
            for pod in desk.kubelet.pods():
                if not pod["spec"].get("schedulingGates") and pod["status"]["phase"] == "Pending":
                    # raises NotFound: it may run, and no row knows it
                    await desk.store.carried(pod["metadata"]["uid"], pod["metadata"]["namespace"])
                    desk.kubelet.succeed(pod["metadata"]["labels"]["pilothouse.dev/step"])
        except Crash:
            await desk.begin()
    raise AssertionError(f"the run does not end: {desk.object()['status']}")


async def cancel(desk: Desk, strike: Strike) -> None:
    """Shuts the Workflow down while one step runs and another one waits for a node."""
    desk.kube, desk.store_given = strike.kube(desk.fake), strike.store(desk.store)
    await desk.begin()
    desk.workflow(command("a"), command("b"))
    asked = False
    for _ in range(30):
        try:
            await desk.later(GRACE)
            if desk.condition("Finished") == ("True", "Cancelled") and not desk.kubelet.pods():
                return
            if desk.kubelet.pods("a") and not asked and not desk.kubelet.pod("a")["spec"].get("schedulingGates"):
                desk.kubelet.start("a")
                desk.edit(shutdown="Cancel")
                asked = True
            for pod in desk.kubelet.pods("a"):
                if "activeDeadlineSeconds" in pod["spec"] and pod["status"]["phase"] == "Running":
                    desk.kubelet.deadline("a")
        except Crash:
            await desk.begin()
    raise AssertionError(f"the run does not end: {desk.object()['status']}")


async def checked(store: RunStore, clock: Clock, strike: Strike) -> None:
    async with desk_on(store, clock) as desk:
        await drive(desk, strike)
        assert desk.kubelet.executions == {"a": 1, "b": 1}, strike
        assert await desk.states() == {"a": "Succeeded", "b": "Succeeded"}
        runs = await store.runs(desk.tenant)
        assert [run.state.value for run in runs] == ["Succeeded"]
        attempts = await store.attempts(runs[0].ref)
        assert [attempt.state.value for attempt in attempts] == ["Succeeded", "Succeeded"], strike


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("error", [Crash, StoreUnavailable, ApiUnavailable])
async def test_a_write_that_goes_wrong_costs_no_step_and_repeats_none(
    store: RunStore, clock: Clock, moment: str, error: Callable[[], BaseException]
) -> None:
    dry = Strike()
    await checked(store, clock, dry)
    assert set(POINTS) == set(dry.points)
    for number in range(1, len(dry.points) + 1):
        await checked(store, clock, Strike(number, moment, error))


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("error", [Crash, StoreUnavailable, ApiUnavailable])
async def test_a_cancellation_that_is_cut_off_leaves_nothing_open(
    memory: MemoryRunStore, clock: Clock, moment: str, error: Callable[[], BaseException]
) -> None:
    number, passed = 0, 1
    while number < passed:
        strike = Strike(number, moment, error)
        async with desk_on(memory, clock) as desk:
            await cancel(desk, strike)
            (run,) = await memory.runs(desk.tenant)
            assert run.state.value == "Cancelled", strike
            assert all(attempt.state.final for attempt in await memory.attempts(run.ref)), strike
        number, passed = number + 1, max(passed, len(strike.points))
