"""What is said to a harness while it is at work."""

import asyncio

import pytest

from pilothouse.agents.abort import Signal
from pilothouse.agents.errors import AgentError
from pilothouse.agents.events import AgentEnd, TurnEnd, TurnStart
from pilothouse.agents.harness import MemoryQueues
from pilothouse.agents.harness.events import HarnessEvent, QueueUpdate
from pilothouse.agents.queue import MessageQueue, QueueMode
from tests.agents.desk import Desk
from tests.agents.doubles import ATool, HangingModel, Model, calls, says
from tests.agents.harness.scene import A, harness_on, said, texts


@pytest.mark.feature("A29")
@pytest.mark.feature("A31")
@pytest.mark.feature("A35")
async def test_the_lengths_of_the_steering_queue_are_told_as_it_fills_and_drains(desk: Desk) -> None:
    model = Model(calls(A), says("1"), says("2"))
    harness, heard = await harness_on(desk, model, ATool())
    queued = False

    async def listen(event: HarnessEvent, signal: Signal) -> None:
        nonlocal queued
        if isinstance(event, TurnStart) and not queued:
            queued = True
            return
        if isinstance(event, TurnEnd) and event.tool_results:
            await harness.steer(said("a"))
            await harness.steer(said("b"))

    harness.subscribe(listen)
    await harness.prompt(said("go"))
    assert [len(update.steer) for update in heard.all_of(QueueUpdate)] == [1, 2, 1, 0]
    assert texts(model.requests[-1].messages) == ["go", "a", "1", "b"]


@pytest.mark.feature("A30")
@pytest.mark.feature("A32")
@pytest.mark.feature("A34")
@pytest.mark.parametrize(("mode", "requests"), [("all", 2), ("one-at-a-time", 3)])
async def test_follow_ups_go_on_with_the_run(desk: Desk, mode: QueueMode, requests: int) -> None:
    model = Model(says("1"), says("2"), says("3"))
    harness, heard = await harness_on(desk, model, follow_up_mode=mode)

    async def listen(event: HarnessEvent, signal: Signal) -> None:
        if isinstance(event, TurnStart) and model.calls == 0:
            await harness.follow_up(said("a"))
            await harness.follow_up(said("b"))

    harness.subscribe(listen)
    await harness.prompt("go")
    assert model.calls == requests
    assert heard.names.count("agent_end") == 1


@pytest.mark.feature("A67")
async def test_steering_is_refused_where_no_run_takes_it(desk: Desk) -> None:
    harness, _ = await harness_on(desk, Model(says("hi")))
    codes: list[str] = []

    async def refused() -> None:
        for queue in (harness.steer, harness.follow_up):
            with pytest.raises(AgentError) as raised:
                await queue("no")
            codes.append(raised.value.code)

    async def listen(event: HarnessEvent, signal: Signal) -> None:
        if isinstance(event, AgentEnd):
            await refused()

    harness.subscribe(listen)
    await refused()
    await harness.prompt("go")
    assert codes == ["invalid_state"] * 4


@pytest.mark.feature("A33")
async def test_the_next_turn_survives_an_abort_and_goes_before_the_next_prompt(desk: Desk) -> None:
    model = HangingModel(says("half"), says("hi"))
    harness, _ = await harness_on(desk, model)
    run = asyncio.create_task(harness.prompt(said("first")))
    await model.begun.wait()
    await harness.next_turn(said("next"))
    await harness.abort()
    await run
    model.begun.clear()
    second = asyncio.create_task(harness.prompt(said("second")))
    await model.begun.wait()
    await harness.abort()
    await second
    assert texts(model.requests[-1].messages) == ["first", "next", "second"]


@pytest.mark.feature("A31")
async def test_a_message_whose_drain_nobody_could_hear_of_goes_first_in_the_next_run(desk: Desk) -> None:
    harness, _ = await harness_on(desk, Model(calls(A), says("never"), says("hi")), ATool())
    failing = True

    async def listen(event: HarnessEvent, signal: Signal) -> None:
        nonlocal failing
        if isinstance(event, TurnEnd) and event.tool_results:
            await harness.steer(said("a"))
            await harness.steer(said("b"))
        if isinstance(event, QueueUpdate) and len(event.steer) == 1 and texts(event.steer) == ["b"] and failing:
            failing = False
            raise RuntimeError("it broke")

    harness.subscribe(listen)
    answer = await harness.prompt(said("go"))
    assert answer.error_message == "it broke"
    await harness.prompt(said("again"))
    stored = [entry.body["message"] for entry in (await desk.stored()).entries if entry.type == "message"]
    users = [message["content"][0]["text"] for message in stored if message["role"] == "user"]
    assert users == ["go", "again", "a", "b"]


@pytest.mark.feature("A34")
@pytest.mark.feature("A35")
def test_what_is_taken_stays_at_the_head_until_it_is_delivered() -> None:
    queue = MessageQueue()
    a, b = said("same"), said("same")
    queue.put(a)
    queue.put(b)
    assert queue.take() == (a,)
    assert queue.waiting == (b,)
    queue.give_back()
    queue.mode = "all"
    assert queue.take() == (a, b)
    queue.delivered(b)
    queue.delivered(said("same"))
    queue.give_back()
    assert [held is a for held in queue.waiting] == [True]
    assert queue.clear() == (a,)
    assert not queue.waiting


async def test_queues_are_apart() -> None:
    queues = MemoryQueues()
    await queues.put("steer", said("s"))
    await queues.put("nextTurn", said("n"))
    assert await queues.take("followUp", "all") == ()
    assert texts(await queues.clear("steer")) == ["s"]
    assert texts(await queues.waiting("nextTurn")) == ["n"]
