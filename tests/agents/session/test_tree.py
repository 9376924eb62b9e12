"""The session tree: branches, the leaf, and what of it is the conversation."""

import json
from uuid import uuid4

import pytest

from pilothouse.agents.messages import Message, UserMessage
from pilothouse.agents.resume import find_position
from pilothouse.agents.session import CustomBody, SessionError, SessionTree, message_of
from pilothouse.records.sessions import NewEntry
from pilothouse.store.errors import Conflict
from tests.agents.desk import Desk


def said(*texts: str) -> list[Message]:
    return [UserMessage.of(text, 1) for text in texts]


def texts(tree: SessionTree) -> list[str]:
    found = [message_of(entry) for entry in tree.branch()]
    return [message.content[0].text for message in found if isinstance(message, UserMessage)]  # type: ignore[union-attr]


@pytest.mark.feature("A43")
@pytest.mark.feature("A55")
async def test_the_branch_is_the_path_from_the_root_to_the_leaf(desk: Desk) -> None:
    tree = await SessionTree.open(await desk.attempt(), desk.session)
    assert tree.branch() == ()
    root = await tree.append(said("one"))
    await tree.append(said("two", "three"))
    assert texts(tree) == ["one", "two", "three"]
    assert next(entry.parent for entry in tree.branch()) is None
    await tree.move(root)
    assert texts(tree) == ["one"]
    await tree.append(said("else"))
    assert texts(tree) == ["one", "else"]


@pytest.mark.feature("A53")
async def test_the_leaf_survives_reopening(desk: Desk) -> None:
    store = await desk.attempt()
    tree = await SessionTree.open(store, desk.session)
    root = await tree.append(said("one"))
    await tree.append(said("two"))
    await tree.move(root)
    again = await SessionTree.open(store, desk.session)
    assert (again.leaf, texts(again)) == (root, ["one"])


async def test_a_stored_entry_reads_like_the_harness_documents_it(desk: Desk) -> None:
    tree = await SessionTree.open(await desk.attempt(), desk.session)
    root = await tree.append(said("one"))
    await tree.move(root)
    message, leaf = (await desk.stored()).entries
    text = {"type": "text", "text": "one"}
    assert message.type == "message"
    assert json.loads(json.dumps(message.body)) == {
        "message": {"role": "user", "content": [text], "timestamp": 1},
        "attempt": 1,
    }
    assert (leaf.type, leaf.body) == ("leaf", {"targetId": str(root), "attempt": 1})


async def test_entries_that_are_no_messages_are_not_part_of_the_conversation(desk: Desk) -> None:
    store = await desk.attempt()
    tree = await SessionTree.open(store, desk.session)
    leaf = await tree.append(said("one"))
    change = NewEntry(uuid4(), "model_change", {"provider": "x", "modelId": "y"})
    await store.append(desk.session, leaf, [change])
    again = await SessionTree.open(store, desk.session)
    await again.append(said("two"))
    assert len(again.branch()) == 3
    assert len((await find_position(store, again)).messages) == 2


@pytest.mark.feature("A44")
async def test_a_write_to_a_leaf_that_has_moved_is_refused(desk: Desk) -> None:
    store = await desk.attempt()
    one, other = [await SessionTree.open(store, desk.session) for _ in range(2)]
    await one.append(said("one"))
    with pytest.raises(Conflict):
        await other.append(said("other"))
    assert other.leaf is None


@pytest.mark.parametrize("run_store", ["memory", "postgres"], indirect=True)
async def test_the_place_before_the_first_entry_is_a_place_to_go_on_from(desk: Desk) -> None:
    store = await desk.attempt()
    tree = await SessionTree.open(store, desk.session)
    await tree.append(said("one"))
    await tree.move(None)
    assert tree.branch() == ()
    await tree.append(said("else"))
    assert texts(tree) == ["else"]
    again = await SessionTree.open(store, desk.session)
    assert [entry.parent for entry in again.children(None)] == [None, None]
    assert again.branch() == tree.branch()


@pytest.mark.feature("A53")
async def test_the_leaf_moves_only_to_an_entry_that_can_be_on_a_branch(desk: Desk) -> None:
    tree = await SessionTree.open(await desk.attempt(), desk.session)
    root = await tree.append(said("one"))
    await tree.move(root)
    leaf_entry = tree.entries[-1].id
    for wrong in (uuid4(), leaf_entry):
        with pytest.raises(SessionError, match=str(wrong)) as caught:
            await tree.move(wrong)
        assert caught.value.code == "not_found"
    assert (tree.leaf, len(tree.entries)) == (root, 2)


@pytest.mark.feature("A43")
async def test_every_branch_hangs_below_the_entry_that_it_left(desk: Desk) -> None:
    tree = await SessionTree.open(await desk.attempt(), desk.session)
    root = await tree.append(said("one"))
    first = await tree.append(said("two"))
    await tree.move(root)
    second = await tree.append(said("three"))
    assert [entry.id for entry in tree.children(root)] == [first, second]
    assert tree.children(second) == ()
    assert [entry.id for entry in tree.path(first)] == [root, first]


@pytest.mark.feature("A52")
@pytest.mark.parametrize("run_store", ["memory", "postgres"], indirect=True)
async def test_a_label_is_set_changed_and_cleared(desk: Desk) -> None:
    store = await desk.attempt()
    tree = await SessionTree.open(store, desk.session)
    root = await tree.append(said("one"))
    await tree.label(root, " start ")
    assert tree.labels() == {root: "start"}
    await tree.label(root, "begin")
    assert (await SessionTree.open(store, desk.session)).labels() == {root: "begin"}
    await tree.label(root, "  ")
    assert tree.labels() == {}
    assert [entry.body.get("label") for entry in tree.entries[1:]] == ["start", "begin", None]


@pytest.mark.feature("A52")
async def test_a_label_needs_an_entry_that_is_there(desk: Desk) -> None:
    tree = await SessionTree.open(await desk.attempt(), desk.session)
    with pytest.raises(SessionError) as caught:
        await tree.label(uuid4(), "start")
    assert (caught.value.code, tree.entries) == ("not_found", ())


@pytest.mark.feature("A54")
async def test_the_last_name_of_the_session_holds(desk: Desk) -> None:
    store = await desk.attempt()
    tree = await SessionTree.open(store, desk.session)
    assert tree.name is None
    root = await tree.append(said("one"))
    await tree.rename(" first ")
    await tree.rename("second")
    await tree.move(root)
    assert (await SessionTree.open(store, desk.session)).name == tree.name == "second"
    await tree.rename(" ")
    assert tree.name is None


@pytest.mark.feature("A50")
@pytest.mark.parametrize("run_store", ["memory", "postgres"], indirect=True)
async def test_several_entries_are_one_write(desk: Desk) -> None:
    """Where the store refuses one of them, none is there."""
    store = await desk.attempt()
    tree = await SessionTree.open(store, desk.session)
    kept = await tree.add(CustomBody(custom_type="a", data={"x": [1, None]}), CustomBody(custom_type="b"))
    assert [(entry.type, entry.parent) for entry in kept] == [("custom", None), ("custom", kept[0].id)]
    before = await desk.stored()
    with pytest.raises(ValueError, match="beyond 64 bits"):
        await tree.add(CustomBody(custom_type="c"), CustomBody(custom_type="d", data=2**70))
    assert await desk.stored() == before
    assert (tree.leaf, tree.entries) == (kept[1].id, tuple(kept))


async def test_a_branch_may_be_long(desk: Desk) -> None:
    store = await desk.attempt()
    tree = await SessionTree.open(store, desk.session)
    await tree.append(said(*map(str, range(10_000))))
    again = await SessionTree.open(store, desk.session)
    assert texts(again) == [str(number) for number in range(10_000)]
