"""What people say to an agent at work: delivered once, where the queue says, whatever dies or is taken back."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest

from pilothouse.agents.messages import Message, UserMessage
from pilothouse.agents.task import AgentResult, AgentTask, run_agent
from pilothouse.records.queues import QueueItem, QueueName
from pilothouse.store.errors import Conflict
from pilothouse.store.ports import AttemptStore
from pilothouse.tools.tool import ToolInvocation, ToolResult
from tests.agents.desk import Desk, Desks, DyingStore, Killed
from tests.agents.doubles import ATool, Model, calls, registry, says
from tests.agents.harness.scene import texts

STEER, FOLLOW_UP = QueueName.STEER, QueueName.FOLLOW_UP
A = ("A", "say", {"text": "a"})
FAR = 10_000

both_stores = pytest.mark.parametrize("run_store", ["memory", "postgres"], indirect=True)


def hearing(desk: Desk, *said: tuple[QueueName, str]) -> ATool:
    """A tool while which somebody says these, once however often it runs."""
    ids = [uuid4() for _ in said]

    async def work(call: ToolInvocation) -> ToolResult:
        for id, (queue, text) in zip(ids, said, strict=True):
            await desk.say(queue, text, id)
        return ToolResult.of("heard")

    return ATool(work=work, idempotent=True)


async def go(desk: Desk, store: AttemptStore, model: Model, tool: ATool) -> AgentResult:
    return await run_agent(AgentTask(desk.session, "Go."), store, model, registry(tool))


def users(messages: Sequence[Message]) -> list[str]:
    return texts([message for message in messages if isinstance(message, UserMessage)])


async def said_in(desk: Desk) -> list[str]:
    """What users said, of all that is stored."""
    found = [entry.body.get("message", {}) for entry in (await desk.stored()).entries]
    return [message["content"][0]["text"] for message in found if message.get("role") == "user"]


@both_stores
@pytest.mark.feature("A31")
@pytest.mark.feature("A69")
async def test_what_is_said_to_steer_is_in_the_next_request(desk: Desk) -> None:
    model = Model(calls(A), says("to port"), says("never"))
    result = await go(desk, await desk.attempt(), model, hearing(desk, (STEER, "turn left")))
    assert (result.failure, result.outputs["text"]) == (None, "to port")
    assert users(model.requests[1].messages) == ["Go.", "turn left"]
    assert await desk.waiting() == []


@both_stores
@pytest.mark.feature("A32")
@pytest.mark.feature("A69")
async def test_what_is_to_follow_goes_on_with_the_run_one_by_one(desk: Desk) -> None:
    model = Model(calls(A), says("1"), says("2"), says("3"))
    result = await go(desk, await desk.attempt(), model, hearing(desk, (FOLLOW_UP, "and?"), (FOLLOW_UP, "what else?")))
    assert (result.failure, result.outputs["text"], model.calls) == (None, "3", 4)
    assert users(model.requests[-1].messages) == ["Go.", "and?", "what else?"]


@pytest.mark.feature("A31")
@pytest.mark.parametrize(("said", "reads"), [((), 1), (((STEER, "left"),), 2)])
async def test_the_queues_are_read_where_a_run_begins_and_where_something_waits(
    desk: Desk, said: tuple[tuple[QueueName, str], ...], reads: int
) -> None:
    counting = Counting(await desk.attempt(), FAR, after=False)
    await go(desk, counting, Model(calls(A), calls(("B", "say", {"text": "b"})), says("1")), hearing(desk, *said))
    assert counting.reads == reads


class Counting(DyingStore):
    reads = 0

    async def queued(self, session: UUID) -> Sequence[QueueItem]:
        self.reads += 1
        return await super().queued(session)


@pytest.mark.feature("A69")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_death_at_any_write_delivers_each_message_once(after: bool, desks: Desks) -> None:
    script = calls(A), calls(("B", "say", {"text": "b"})), says("1"), says("2")
    said = (STEER, "left"), (STEER, "right"), (FOLLOW_UP, "and?")
    whole = DyingStore(await (first := await desks.new()).attempt(), FAR, after=after)
    await go(first, whole, Model(*script), hearing(first, *said))
    told = await said_in(first)
    assert told == ["Go.", "left", "right", "and?"]
    for at, write in enumerate(whole.writes):
        desk = await desks.new()
        tool = hearing(desk, *said)
        with pytest.raises(Killed):
            await go(desk, DyingStore(await desk.attempt(), at, after=after), Model(*script), tool)
        result = await go(desk, await desk.attempt(), Model(*script), tool)
        assert (result.failure, await said_in(desk)) == (None, told), f"killed at write {at}: {write}"
        assert await desk.waiting() == []


class Meddling(DyingStore):
    """After each look at the queues somebody does something about what was seen."""

    def __init__(self, store: AttemptStore, meddle: Callable[[Sequence[QueueItem]], Awaitable[None]]) -> None:
        super().__init__(store, FAR, after=False)
        self._meddle = meddle

    async def queued(self, session: UUID) -> Sequence[QueueItem]:
        seen = await super().queued(session)
        await self._meddle(seen)
        return seen


@both_stores
@pytest.mark.feature("A69")
async def test_a_message_that_is_taken_back_on_its_way_is_not_delivered_and_the_rest_goes_on(desk: Desk) -> None:
    async def take_back(seen: Sequence[QueueItem]) -> None:
        await desk.take_back(*[item for item in seen if item.message["content"][0]["text"] == "wrong"])

    model = Model(calls(A), says("done"), says("never"))
    store = Meddling(await desk.attempt(), take_back)
    result = await go(desk, store, model, hearing(desk, (STEER, "wrong"), (STEER, "right")))
    assert (result.failure, result.outputs["text"]) == (None, "done")
    assert await said_in(desk) == ["Go.", "right"]


async def test_another_conflict_than_that_is_raised(desk: Desk) -> None:
    class Refusing(DyingStore):
        async def append(self, *given: Any) -> Any:
            if given[-1]:
                raise Conflict("the leaf is another one")
            return await super().append(*given)

    store = Refusing(await desk.attempt(), FAR, after=False)
    with pytest.raises(Conflict, match="another one"):
        await go(desk, store, Model(calls(A), says("never")), hearing(desk, (STEER, "left")))


@pytest.mark.feature("A69")
async def test_what_is_queued_and_is_no_message_is_delivered_as_its_text(desk: Desk) -> None:
    async def work(call: ToolInvocation) -> ToolResult:
        await desk.outside.enqueue(desk.run.tenant, desk.session, STEER, {"role": "user", "content": 7})
        return ToolResult.of("heard")

    model = Model(calls(A), says("what?"), says("never"))
    result = await go(desk, await desk.attempt(), model, ATool(work=work))
    assert (result.failure, result.outputs["text"]) == (None, "what?")
    assert users(model.requests[1].messages) == ["Go.", '{"role": "user", "content": 7}']
    assert await desk.waiting() == []
