"""A session with a name: one conversation of several runs, each of which answers for its own part alone."""

from uuid import uuid4

import pytest

from pilothouse.agents.bounds import Limits
from pilothouse.agents.task import AgentResult, AgentTask, run_agent
from pilothouse.records.failures import OUTCOME_UNKNOWN
from pilothouse.records.queues import QueueName
from pilothouse.records.sessions import named_session
from pilothouse.records.states import AttemptState
from pilothouse.store.errors import SessionBusy
from pilothouse.store.ports import AttemptStore
from pilothouse.tools.tool import ToolInvocation, ToolResult
from tests.agents.desk import STEP, Desk, Desks, DyingStore, Killed
from tests.agents.doubles import ATool, Model, calls, registry, says
from tests.agents.harness.scene import texts

NAME = "the watch"

both_stores = pytest.mark.parametrize("run_store", ["memory", "postgres"], indirect=True)


def call(id: str) -> tuple[str, str, dict[str, str]]:
    return (id, "say", {"text": id})


class Crew:
    """Runs of one tenant, one after the other, that go on with one session."""

    def __init__(self, desks: Desks) -> None:
        self.tenant = uuid4()
        self._desks = desks

    async def run(self) -> Desk:
        desk = await self._desks.new(self.tenant)
        desk.session = named_session(self.tenant, NAME)
        return desk


@pytest.fixture
def crew(desks: Desks) -> Crew:
    return Crew(desks)


async def work(
    desk: Desk, store: AttemptStore, message: str, model: Model, tool: ATool | None = None, attempt: int = 1
) -> AgentResult:
    task = AgentTask(desk.session, message, session_name=NAME, step=STEP, attempt=attempt, limits=Limits(turns=2))
    return await run_agent(task, store, model, registry(tool or ATool(idempotent=True)))


async def whole(desk: Desk, message: str, model: Model) -> AgentResult:
    store = await desk.attempt()
    result = await work(desk, store, message, model)
    await store.finish(AttemptState.FAILED if result.failure else AttemptState.SUCCEEDED, {}, result.failure)
    return result


@both_stores
async def test_a_run_goes_on_where_the_one_before_it_left_off(crew: Crew) -> None:
    await whole(await crew.run(), "Who has the watch?", Model(says("Ann.")))
    model = Model(says("never"), says("Ben."))
    result = await whole(await crew.run(), "And then?", model)
    assert texts(model.requests[0].messages) == ["Who has the watch?", "Ann.", "And then?"]
    assert (result.outputs["text"], result.outputs["turns"]) == ("Ben.", 1)
    assert result.outputs["session"] == str(named_session(crew.tenant, NAME))


async def test_a_run_is_bounded_by_what_it_did_itself(crew: Crew) -> None:
    first = await whole(await crew.run(), "Go.", Model(calls(call("A")), calls(call("B"))))
    assert first.failure is not None
    assert first.failure.reason == "TurnLimit"
    model = Model(says("-"), says("-"), calls(call("C")), says("done"))
    second = await whole(await crew.run(), "Again.", model)
    assert (second.failure, second.outputs["turns"]) == (None, 2)


@both_stores
@pytest.mark.parametrize("at", range(6))
async def test_a_process_that_died_goes_on_with_its_own_part(crew: Crew, at: int) -> None:
    await whole(await crew.run(), "First.", Model(says("1")))
    desk, model = await crew.run(), Model(says("1"), calls(call("A")), says("2"))
    with pytest.raises(Killed):
        await work(desk, DyingStore(await desk.attempt(), at, after=True), "Second.", model)
    result = await work(desk, await desk.attempt(), "Second.", model)
    assert (result.failure, result.outputs["text"], result.outputs["turns"]) == (None, "2", 2)
    assert texts(model.requests[-1].messages) == ["First.", "1", "Second."]
    assert model.calls == 2


async def test_a_retry_starts_a_branch_at_its_own_question(crew: Crew) -> None:
    await whole(await crew.run(), "First.", Model(says("1")))
    desk = await crew.run()
    await work(
        desk, await desk.attempt(), "Second.", Model(says("1"), calls(call("A")), {"error": {"message": "down"}})
    )
    model = Model(says("1"), says("2"))
    result = await work(desk, await desk.attempt(2), "Second.", model, attempt=2)
    assert (result.failure, result.outputs["text"]) == (None, "2")
    assert texts(model.requests[0].messages) == ["First.", "1", "Second."]


async def test_a_call_that_another_run_left_open_is_answered_and_not_run(crew: Crew) -> None:
    ran: list[str] = []

    async def effect(invocation: ToolInvocation) -> ToolResult:
        ran.append(invocation.id)
        return ToolResult.of("done")

    desk, script = await crew.run(), (calls(call("A")), says("done"))
    with pytest.raises(Killed):
        await work(desk, DyingStore(await desk.attempt(), 4, after=False), "Go.", Model(*script), ATool(work=effect))
    store = await desk.attempt()
    result = await work(desk, store, "Go.", Model(*script), ATool(work=effect))
    assert result.failure is not None
    assert result.failure.reason == OUTCOME_UNKNOWN
    await store.finish(AttemptState.FAILED, {}, result.failure)
    model = Model(*script)
    after = await whole(await crew.run(), "What happened?", model)
    assert (after.failure, after.outputs["text"], ran) == (None, "done", ["A"])
    assert [message.role for message in model.requests[0].messages] == ["user", "assistant", "toolResult", "user"]


async def test_one_attempt_at_a_time_has_the_session(crew: Crew) -> None:
    first, second = await crew.run(), await crew.run()
    store = await first.attempt()
    await work(first, store, "Go.", Model(says("1")))
    with pytest.raises(SessionBusy):
        await work(second, await second.attempt(), "Go.", Model(says("1"), says("2")))
    await store.finish(AttemptState.SUCCEEDED)
    assert (await whole(second, "Go.", Model(says("1"), says("2")))).outputs["text"] == "2"


@both_stores
@pytest.mark.feature("A33")
async def test_what_waits_for_the_next_turn_goes_before_its_prompt_and_stays_there(crew: Crew) -> None:
    first = await crew.run()
    await whole(first, "First.", Model(says("1")))
    await first.say(QueueName.NEXT_TURN, "By the way,")
    desk, script = await crew.run(), (says("1"), says("2"))
    with pytest.raises(Killed):
        await work(desk, DyingStore(await desk.attempt(), 1, after=True), "Second.", Model(*script))
    assert await desk.waiting() == []
    for number in (1, 2):
        model = Model(*script)
        await work(desk, await desk.attempt(number), "Second.", model, attempt=number)
        assert texts(model.requests[0].messages) == ["First.", "1", "By the way,", "Second."]


async def test_a_session_of_another_tenant_is_another_one(crew: Crew, desks: Desks) -> None:
    await whole(await crew.run(), "First.", Model(says("1")))
    model = Model(says("hello"))
    await whole(await Crew(desks).run(), "Hi.", model)
    assert texts(model.requests[0].messages) == ["Hi."]
