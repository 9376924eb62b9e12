"""The session tree: branches, the leaf, and what of it is the conversation."""

import json
from uuid import uuid4

import pytest

from pilothouse.agents.messages import Message, UserMessage
from pilothouse.agents.resume import find_position
from pilothouse.agents.session import SessionTree, message_of
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
