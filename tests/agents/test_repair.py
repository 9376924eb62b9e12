"""Whatever a session holds, a model sees one result for each call, right after the answer that asked for it."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.agents.convert import ModelMessage
from pilothouse.agents.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from pilothouse.agents.repair import INTERRUPTED, missing_results, repaired
from pilothouse.agents.session import SessionTree
from pilothouse.agents.task import AgentTask, run_agent
from tests.agents.desk import Desk
from tests.agents.doubles import ATool, Model, registry, says
from tests.agents.session.making import answer, result, told, user

ids = st.sampled_from("ABCD")
anything = st.lists(
    st.builds(user, st.just("u"))
    | st.builds(result, ids)
    | st.lists(ids, max_size=3).flatmap(
        lambda calls: st.sampled_from(["toolUse", "error", "aborted"]).map(
            lambda stop: answer("a", *calls, stop=stop)  # type: ignore[arg-type]
        )
    ),
    max_size=12,
)


def interrupted(message: Message) -> bool:
    return isinstance(message, ToolResultMessage) and message.details == {"error": INTERRUPTED} and message.is_error


def test_a_whole_conversation_stays_as_it_is() -> None:
    whole: list[ModelMessage] = [user("1"), answer("2", "A", "B"), result("A"), result("B"), answer("3"), user("4")]
    assert repaired(whole) == whole
    assert missing_results(whole) == []


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    found = repaired([user("1"), answer("2", "A", "B"), result("A", "one"), user("3")])
    assert told(found)[:3] + told(found)[4:] == ["1", "2", "one", "3"]
    assert interrupted(found[3])


def test_a_result_that_came_late_is_moved_up_to_its_call() -> None:
    found = repaired([answer("1", "A", "B"), user("2"), result("B", "b"), result("A", "a"), answer("3")])
    assert told(found) == ["1", "a", "b", "2", "3"]


def test_results_that_answer_no_call_are_left_out() -> None:
    found = repaired([result("X"), user("1"), answer("2", "A"), result("A", "a"), result("A", "again"), result("Y")])
    assert told(found) == ["1", "2", "a"]


def test_answers_that_failed_are_left_out_with_their_results() -> None:
    cut = answer("2", "A", stop="error")
    assert told(repaired([user("1"), cut, result("A"), answer("3", stop="aborted"), user("4")])) == ["1", "4"]


@given(anything)
def test_every_call_has_one_result_in_its_place(messages: list[ModelMessage]) -> None:
    found = repaired(messages)
    wanted: list[str] = []
    for message in found:
        if isinstance(message, ToolResultMessage):
            assert wanted.pop(0) == message.tool_call_id
        else:
            assert wanted == []
            wanted = [call.id for call in message.tool_calls] if isinstance(message, AssistantMessage) else []
    assert wanted == []
    kept = [message for message in found if isinstance(message, UserMessage)]
    assert len(kept) == sum(isinstance(message, UserMessage) for message in messages)
    assert repaired(found) == found


@given(anything)
def test_the_missing_results_close_the_last_turn(messages: list[Message]) -> None:
    closed = [*messages, *missing_results(messages)]
    assert missing_results(closed) == []
    last = next((at for at in reversed(range(len(closed))) if isinstance(closed[at], AssistantMessage)), None)
    tail = [] if last is None else closed[last + 1 :]
    if last is not None and tail and all(isinstance(message, ToolResultMessage) for message in tail):
        message = closed[last]
        assert isinstance(message, AssistantMessage)
        calls = Counter(call.id for call in message.tool_calls)
        answered = Counter(one.tool_call_id for one in tail if isinstance(one, ToolResultMessage))
        assert message.stop_reason != "toolUse" or calls <= answered


@pytest.mark.feature("A41")
async def test_a_branch_that_begins_in_the_middle_of_a_turn_is_shown_whole_to_the_model(desk: Desk) -> None:
    store = await desk.attempt()
    tree = await SessionTree.open(store, desk.session)
    await tree.append([user("one"), answer("two", "A"), user("never mind")])
    model = Model(says("unused"), says("done"))
    await run_agent(AgentTask(desk.session, "Go."), store, model, registry(ATool()))
    seen = model.requests[0].messages
    assert [message.role for message in seen] == ["user", "assistant", "toolResult", "user"]
    assert interrupted(seen[2])
