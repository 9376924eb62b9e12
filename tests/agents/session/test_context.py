"""What of a branch the model sees, and the state that the branch ends in."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from pilothouse.agents.messages import Message
from pilothouse.agents.session import (
    ActiveToolsChangeBody,
    BranchSummaryBody,
    CompactionBody,
    CustomBody,
    CustomMessageBody,
    LabelBody,
    ModelChangeBody,
    ModelRef,
    SessionError,
    SessionInfoBody,
    SessionState,
    SessionTree,
    ThinkingLevelChangeBody,
    build_context,
    check_tool_names,
)
from pilothouse.agents.task import AgentTask, run_agent
from pilothouse.records.sessions import NewEntry
from tests.agents.desk import Desk
from tests.agents.doubles import Model, registry, says
from tests.agents.session.making import answer, context, result, text_of, user


@pytest.fixture
async def tree(desk: Desk) -> SessionTree:
    return await SessionTree.open(await desk.attempt(), desk.session)


@pytest.mark.feature("A57")
async def test_each_type_adds_its_messages_to_the_context(tree: SessionTree) -> None:
    root = await tree.append([user("one")])
    await tree.add(
        ModelChangeBody(provider="p", model_id="m"),
        ThinkingLevelChangeBody(thinking_level="low"),
        ActiveToolsChangeBody(active_tool_names=()),
        LabelBody(target_id=str(root), label="l"),
        SessionInfoBody(name="n"),
        CustomBody(custom_type="state", data=1),
        CustomMessageBody(custom_type="note", content="by hand"),
        BranchSummaryBody(summary="the other way", from_id="root"),
        BranchSummaryBody(summary=" ", from_id="root"),
    )
    await tree.append([answer("two", "A"), result("A", "three")])
    assert context(tree) == [
        ("user", "one"),
        ("custom", "by hand"),
        ("branchSummary", "the other way"),
        ("assistant", "two"),
        ("toolResult", "three"),
    ]


@pytest.mark.feature("A51")
async def test_an_extensions_message_is_projected_with_all_that_it_has(tree: SessionTree) -> None:
    [entry] = await tree.add(CustomMessageBody(custom_type="note", content="x", display=False, details={"d": 1}))
    [message] = build_context(tree.branch()).messages
    assert message.model_dump(mode="json") == {
        "role": "custom",
        "customType": "note",
        "content": "x",
        "display": False,
        "details": {"d": 1},
        "timestamp": (entry.at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1),
    }


@pytest.mark.feature("A50")
async def test_a_custom_entry_is_in_the_context_where_a_projector_puts_it(tree: SessionTree) -> None:
    def shown(body: CustomBody) -> Sequence[Message]:
        return [user(f"{name}") for name in body.data] if isinstance(body.data, list) else ()

    await tree.add(CustomBody(custom_type="seen", data=["a", "b"]), CustomBody(custom_type="unseen", data=["c"]))
    await tree.append([user("d")])
    assert build_context(tree.branch()).messages == (user("d"),)
    assert build_context(tree.branch(), {"seen": shown}).messages == (user("a"), user("b"), user("d"))


@pytest.mark.feature("A56")
async def test_the_last_summary_comes_first_then_what_it_kept_then_what_came_after(tree: SessionTree) -> None:
    await tree.append([user("one")])
    kept = await tree.append([answer("two")])
    await tree.add(CompactionBody(summary="old", tokens_before=1, first_kept_entry_id=str(kept)))
    await tree.append([user("three")])
    later = await tree.append([answer("four")])
    await tree.append([user("five")])
    await tree.add(CompactionBody(summary="new", tokens_before=2, first_kept_entry_id=str(later)))
    await tree.append([answer("six")])
    expected = [("compactionSummary", "new"), ("assistant", "four"), ("user", "five"), ("assistant", "six")]
    assert context(tree) == expected
    made = build_context(tree.branch())
    assert made.compacted == 3
    assert made.messages[0].model_dump()["tokensBefore"] == 2


@pytest.mark.feature("A56")
async def test_what_a_summary_kept_may_reach_back_beyond_an_older_summary(tree: SessionTree) -> None:
    await tree.append([user("one")])
    kept = await tree.append([user("two")])
    await tree.add(CompactionBody(summary="old", tokens_before=1, first_kept_entry_id=str(kept)))
    await tree.append([user("three")])
    await tree.add(CompactionBody(summary="new", tokens_before=2, first_kept_entry_id=str(kept)))
    assert context(tree) == [("compactionSummary", "new"), ("user", "two"), ("user", "three")]


@pytest.mark.feature("A56")
@pytest.mark.parametrize("gone", [None, str(uuid4())])
async def test_a_retained_tail_goes_before_a_boundary(tree: SessionTree, gone: str | None) -> None:
    first = await tree.append([user("one")])
    tail = (user("kept"), answer("by itself"))
    await tree.add(
        CompactionBody(summary="s", tokens_before=1, first_kept_entry_id=gone or str(first), retained_tail=tail)
    )
    await tree.append([user("two")])
    assert context(tree) == [
        ("compactionSummary", "s"),
        ("user", "kept"),
        ("assistant", "by itself"),
        ("user", "two"),
    ]


async def test_entries_of_other_branches_are_not_in_the_context(tree: SessionTree) -> None:
    root = await tree.append([user("one")])
    await tree.append([user("two")])
    await tree.add(CompactionBody(summary="s", tokens_before=1))
    await tree.move(root)
    await tree.append([user("else")])
    assert context(tree) == [("user", "one"), ("user", "else")]


@pytest.mark.feature("A58")
async def test_the_last_word_on_each_matter_is_the_state(tree: SessionTree) -> None:
    assert build_context(tree.branch()).state == SessionState(None, "off", None)
    await tree.add(
        ModelChangeBody(provider="p", model_id="small"),
        ThinkingLevelChangeBody(thinking_level="low"),
        ActiveToolsChangeBody(active_tool_names=("a", "b")),
    )
    assert build_context(tree.branch()).state == SessionState(ModelRef("p", "small"), "low", ("a", "b"))
    await tree.append([answer("by another model")])
    await tree.add(ThinkingLevelChangeBody(thinking_level="high"), ActiveToolsChangeBody(active_tool_names=()))
    assert build_context(tree.branch()).state == SessionState(ModelRef("acme", "large"), "high", ())


@pytest.mark.feature("A45")
@pytest.mark.feature("A46")
@pytest.mark.feature("A47")
@pytest.mark.feature("A58")
async def test_the_state_survives_reopening_and_a_compaction_of_all_that_said_it(desk: Desk) -> None:
    store = await desk.attempt()
    tree = await SessionTree.open(store, desk.session)
    await tree.add(
        ModelChangeBody(provider="p", model_id="m"),
        ThinkingLevelChangeBody(thinking_level="low"),
        ActiveToolsChangeBody(active_tool_names=("a",)),
    )
    await tree.append([user("one")])
    await tree.add(CompactionBody(summary="s", tokens_before=1, retained_tail=()))
    again = await SessionTree.open(store, desk.session)
    assert build_context(again.branch()).state == SessionState(ModelRef("p", "m"), "low", ("a",))


@pytest.mark.feature("A47")
@pytest.mark.parametrize(
    ("names", "complaint"),
    [(["a", "x"], "no tool `x`; the tools are: a, b"), (["a", "a"], "`a` is named twice")],
)
def test_active_tools_must_be_there_and_each_once(names: list[str], complaint: str) -> None:
    with pytest.raises(SessionError, match=complaint) as caught:
        check_tool_names(names, {"a", "b"})
    assert caught.value.code == "invalid_argument"
    assert check_tool_names(["b", "a"], {"a", "b"}) == ("b", "a")


async def test_an_entry_of_an_unknown_type_is_on_the_branch_and_says_nothing(tree: SessionTree) -> None:
    await tree.append([user("one")])
    await tree.write([NewEntry(uuid4(), "hologram", {"message": {"role": "user"}, "attempt": 1})])
    await tree.append([user("two")])
    assert [entry.type for entry in tree.branch()] == ["message", "hologram", "message"]
    assert context(tree) == [("user", "one"), ("user", "two")]


async def test_an_entry_that_cannot_be_read_is_named(tree: SessionTree) -> None:
    [entry] = await tree.write([NewEntry(uuid4(), "custom_message", {"attempt": 1})])
    with pytest.raises(SessionError, match=f"the entry {entry.id} cannot be read: customType: Field required"):
        build_context(tree.branch())


@pytest.mark.feature("A56")
async def test_a_task_goes_on_from_the_summary_and_still_counts_all_that_was_done(desk: Desk) -> None:
    store = await desk.attempt()
    tree = await SessionTree.open(store, desk.session)
    await tree.append([user("one"), answer("two", "A"), result("A")])
    await tree.add(CompactionBody(summary="did two", tokens_before=1, retained_tail=()))
    model = Model(says("done"))
    done = await run_agent(AgentTask(desk.session, "Go."), store, model, registry())
    [seen] = model.requests[0].messages
    assert "did two" in text_of(seen)
    assert (done.failure, done.outputs["text"], done.outputs["turns"]) == (None, "done", 2)
