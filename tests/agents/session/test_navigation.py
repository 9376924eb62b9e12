"""Going to another place in the tree: what is said there again, and what is told of the branch that is left."""

from uuid import UUID, uuid4

import pytest

from pilothouse.agents.messages import Message
from pilothouse.agents.session import (
    BranchSummaryBody,
    BranchSummarySettings,
    CompactionBody,
    CustomMessageBody,
    Navigation,
    SessionError,
    SessionTree,
    Summariser,
    SummaryError,
    body_of,
    navigate,
    plan_navigation,
    summarise_branch,
)
from tests.agents.desk import Desk, DyingStore, Killed
from tests.agents.session.making import Teller, answer, context, result, told, user

SETTINGS = BranchSummarySettings(budget=1_000)


@pytest.fixture
async def tree(desk: Desk) -> SessionTree:
    return await SessionTree.open(await desk.attempt(), desk.session)


async def grow(tree: SessionTree, *messages: Message) -> list[UUID]:
    """Appends the messages; returns their ids."""
    return [await tree.append([message]) for message in messages]


async def go(
    tree: SessionTree,
    target: UUID,
    summarise: Summariser | None = None,
    settings: BranchSummarySettings = SETTINGS,
    label: str | None = None,
) -> Navigation:
    """All of a navigation, as the harness makes it."""
    plan = plan_navigation(tree, target)
    summary = await summarise_branch(plan, summarise, settings) if summarise else None
    return await navigate(tree, plan, summary, label)


async def test_what_was_said_at_the_target_is_there_to_be_said_again(tree: SessionTree) -> None:
    _, second, question, _ = await grow(tree, user("one"), answer("two"), user("three"), answer("four"))
    assert await go(tree, question) == Navigation(second, "three")
    assert tree.leaf == second
    assert context(tree) == [("user", "one"), ("assistant", "two")]


async def test_before_the_first_message_is_the_place_before_the_first_entry(tree: SessionTree) -> None:
    root, _ = await grow(tree, user("one"), answer("two"))
    assert await go(tree, root) == Navigation(None, "one")
    assert tree.branch() == ()


@pytest.mark.parametrize("content", ["by hand", [{"type": "text", "text": "by hand"}]])
async def test_an_extensions_message_is_said_again_too(tree: SessionTree, content: object) -> None:
    root = await tree.append([user("one")])
    body = CustomMessageBody.model_validate({"customType": "note", "content": content})
    [entry] = await tree.add(body)
    await tree.append([answer("two")])
    assert await go(tree, entry.id) == Navigation(root, "by hand")


async def test_any_other_target_is_the_new_leaf(tree: SessionTree) -> None:
    _, second, _ = await grow(tree, user("one"), answer("two"), user("three"))
    assert await go(tree, second) == Navigation(second)


async def test_going_where_the_leaf_is_changes_nothing(tree: SessionTree) -> None:
    [root] = await grow(tree, user("one"))
    before = tree.entries
    assert await go(tree, root, Teller(), label="label") == Navigation(root)
    assert tree.entries == before


async def test_a_target_must_be_there(tree: SessionTree) -> None:
    await grow(tree, user("one"))
    with pytest.raises(SessionError) as caught:
        await go(tree, uuid4())
    assert caught.value.code == "invalid_argument"


@pytest.mark.feature("A49")
async def test_the_branch_that_is_left_is_told_below_the_new_leaf(tree: SessionTree) -> None:
    root, _, second, *_ = await grow(
        tree, user("one"), answer("", "A", tool="file_read", path="a"), result("A"), user("three"), answer("four")
    )
    await tree.move(second)
    await grow(tree, user("five"), answer("", "B", tool="edit", path="b"), result("B"), answer("six"))
    summariser = Teller()
    navigation = await go(tree, root)
    assert navigation.summary is None
    await tree.move(tree.entries[-2].id)
    navigation = await go(tree, second, summariser)
    assert told(summariser.messages) == ["five", "", "six"]
    assert navigation.summary is not None
    assert (navigation.leaf, navigation.summary.parent) == (navigation.summary.id, second)
    body = body_of(navigation.summary)
    assert isinstance(body, BranchSummaryBody)
    assert (body.from_id, body.usage) == (str(second), (await summariser(summariser.requests[0])).usage)
    assert body.details == {"readFiles": [], "modifiedFiles": ["b"]}
    assert context(tree)[-1] == ("branchSummary", "what was said\n\nFiles changed:\n- b")


@pytest.mark.feature("A49")
async def test_a_summary_of_all_hangs_below_the_root(tree: SessionTree) -> None:
    root, _ = await grow(tree, user("one"), answer("two"))
    navigation = await go(tree, root, Teller())
    assert navigation.editor_text == "one"
    assert navigation.summary is not None
    assert (navigation.summary.parent, navigation.summary.body["fromId"]) == (None, "root")
    assert context(tree) == [("branchSummary", "what was said")]


async def test_the_newest_part_of_the_branch_is_told_where_not_all_fits(tree: SessionTree) -> None:
    root, *_ = await grow(tree, answer("one"), user("x" * 40), answer("y" * 40), user("z" * 40))
    summariser = Teller()
    await go(tree, root, summariser, BranchSummarySettings(budget=20))
    assert told(summariser.messages) == ["y" * 40, "z" * 40]


async def test_what_was_compacted_on_the_branch_is_told_by_its_summary(tree: SessionTree) -> None:
    root, *_ = await grow(tree, answer("one"), user("two"))
    details = {"readFiles": ["a"], "modifiedFiles": []}
    await tree.add(CompactionBody(summary="done before", tokens_before=1, details=details, retained_tail=()))
    await grow(tree, user("three"))
    summariser = Teller()
    navigation = await go(tree, root, summariser)
    assert told(summariser.messages) == ["two", "done before", "three"]
    assert navigation.summary is not None
    assert navigation.summary.body["details"] == details


async def test_a_branch_without_words_has_no_summary(tree: SessionTree) -> None:
    root, *_ = await grow(tree, answer("one", "A"), result("A"))
    summariser = Teller()
    assert await go(tree, root, summariser) == Navigation(root)
    assert summariser.requests == []


@pytest.mark.parametrize(("replace", "asked"), [(False, ["left", "Mind x."]), (True, ["Mind x."])])
async def test_a_person_may_say_what_to_mind(tree: SessionTree, replace: bool, asked: list[str]) -> None:
    root, *_ = await grow(tree, answer("one"), user("two"))
    summariser = Teller()
    settings = BranchSummarySettings(budget=1_000, instructions="Mind x.", replace_instructions=replace)
    await go(tree, root, summariser, settings)
    [request] = summariser.requests
    assert ("left" in request.instructions) is ("left" in asked)
    assert request.instructions.endswith("Mind x.")


@pytest.mark.feature("A49")
async def test_without_a_summary_the_leaf_stays(tree: SessionTree) -> None:
    root, *_ = await grow(tree, user("one"), answer("two"))
    before = tree.entries, tree.leaf
    with pytest.raises(SummaryError, match="down"):
        await go(tree, root, Teller(lambda _: SummaryError("the model is down")))
    assert (tree.entries, tree.leaf) == before


@pytest.mark.feature("A52")
@pytest.mark.parametrize("with_summary", [True, False])
async def test_a_label_goes_to_the_summary_or_else_to_the_target(tree: SessionTree, with_summary: bool) -> None:
    first, *_ = await grow(tree, answer("one"), user("two"))
    navigation = await go(tree, first, Teller() if with_summary else None, label=" tried ")
    labelled = navigation.summary.id if navigation.summary else first
    assert tree.labels() == {labelled: "tried"}
    assert [entry.type for entry in tree.branch()][-1] == "label"


@pytest.mark.feature("A49")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("run_store", ["memory", "postgres"], indirect=True)
async def test_a_process_that_dies_on_the_way_is_here_or_there(desk: Desk, after: bool) -> None:
    """The move, the summary and the label are one write."""
    dying = DyingStore(await desk.attempt(), 2, after=after)
    tree = await SessionTree.open(dying, desk.session)
    await tree.append([answer("one"), user("two")])
    first = tree.branch()[0].id
    with pytest.raises(Killed):
        await go(tree, first, Teller(), label="tried")
    again = await SessionTree.open(await desk.attempt(), desk.session)
    types = ["message", "message", "leaf", "branch_summary", "label"]
    assert [entry.type for entry in again.entries] == (types if after else types[:2])
    assert [entry.type for entry in again.branch()] == (
        ["message", "branch_summary", "label"] if after else ["message", "message"]
    )
