"""Files into a store and out of it again."""

import asyncio
import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given, settings

from pilothouse.agents.session import (
    SessionError,
    SessionTree,
    build_context,
    export_session,
    import_session,
    read_jsonl,
    write_jsonl,
)
from pilothouse.agents.session.transfer import Imported
from pilothouse.store.memory import MemoryRunStore
from tests.agents.desk import Desk, DyingStore, Killed, a_desk
from tests.agents.session.files import HEADER, entry, files_to_rename, files_with_uuids, jsonl, message
from tests.agents.session.making import context, user

CALL = {"type": "toolCall", "id": "A", "name": "say", "arguments": {}}
ASKED = {
    "role": "assistant",
    "content": [CALL],
    "api": "x",
    "provider": "acme",
    "model": "large",
    "usage": {},
    "stopReason": "toolUse",
    "timestamp": 2,
}


async def taken(desk: Desk, *lines: dict[str, Any]) -> tuple[SessionTree, Imported]:
    tree = await SessionTree.open(await desk.attempt(), desk.session)
    return tree, await import_session(tree, read_jsonl(jsonl(*lines)))


async def brought_back(lines: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], Imported, UUID]:
    """What an import and an export make of the entries."""
    async with a_desk(MemoryRunStore()) as desk:
        _, imported = await taken(desk, *lines)
        again = await SessionTree.open(await desk.attempt(), desk.session)
        _, *exported = [json.loads(line) for line in write_jsonl(export_session(again, "/work")).splitlines()]
        return exported, imported, again.id


@given(files_with_uuids)
def test_what_was_imported_is_exported_as_it_was(lines: list[dict[str, Any]]) -> None:
    exported, imported, _ = asyncio.run(brought_back(lines))
    assert exported[: len(lines) - 1] == lines[1:]
    assert len(exported) == len(lines) - 1 + imported.closed
    assert imported.renamed == {}


@given(files_to_rename)
@settings(max_examples=50)
def test_entries_whose_ids_are_no_uuids_are_renamed_wherever_they_are_named(lines: list[dict[str, Any]]) -> None:
    exported, imported, _ = asyncio.run(brought_back(lines))
    old = {str(new): written for written, new in imported.renamed.items()}
    assert set(old.values()) == {line["id"] for line in lines[1:]}
    restored = [{name: _restored(name, value, old) for name, value in line.items()} for line in exported]
    assert restored[: len(lines) - 1] == lines[1:]


def _restored(name: str, value: Any, old: dict[str, str]) -> Any:
    refers = name in ("id", "parentId", "targetId", "firstKeptEntryId", "fromId")
    return old.get(value, value) if refers and isinstance(value, str) else value


@pytest.mark.feature("A43")
@pytest.mark.parametrize("run_store", ["memory", "postgres"], indirect=True)
async def test_a_file_goes_on_at_another_place_with_or_without_an_entry_that_says_so(desk: Desk) -> None:
    one, two, three, leaf, four = [str(uuid4()) for _ in range(5)]
    lines = [
        message(one, None, "one"),
        message(two, one, "two"),
        message(three, one, "three"),
        entry(leaf, three, "leaf", targetId=two),
        message(four, two, "four"),
    ]
    tree, imported = await taken(desk, HEADER, *lines)
    assert context(tree) == [("user", "one"), ("user", "two"), ("user", "four")]
    assert [str(child.id) for child in tree.children(UUID(one))] == [two, three]
    again = await SessionTree.open(await desk.attempt(), desk.session)
    assert [line.to_wire() for line in export_session(again, "/").entries] == lines
    assert imported == Imported({}, 0, ())


@pytest.mark.feature("A53")
async def test_the_leaf_is_the_last_entry_or_its_target(desk: Desk) -> None:
    one, two = str(uuid4()), str(uuid4())
    lines = [message(one, None), message(two, one), entry(str(uuid4()), two, "leaf", targetId=one)]
    tree, _ = await taken(desk, HEADER, *lines)
    assert str(tree.leaf) == one


async def test_a_call_that_a_file_leaves_open_gets_a_result_and_is_not_run(desk: Desk) -> None:
    lines = [message("a", None), entry("b", "a", "message", message=ASKED)]
    tree, imported = await taken(desk, HEADER, *lines)
    assert imported.closed == 1
    assert [role for role, _ in context(tree)] == ["user", "assistant", "toolResult"]
    assert [one.type for one in tree.entries] == ["message"] * 3
    assert set(imported.renamed) == {"a", "b"}


async def test_a_session_is_imported_into_one_without_entries(desk: Desk) -> None:
    tree, _ = await taken(desk, HEADER, message("a", None))
    before = tree.entries
    with pytest.raises(SessionError, match="has entries already"):
        await import_session(tree, read_jsonl(jsonl(HEADER, message("b", None))))
    assert tree.entries == before


async def test_the_same_file_gives_the_same_ids_in_the_same_session() -> None:
    found = []
    for _ in range(2):
        async with a_desk(MemoryRunStore()) as desk:
            desk.session = UUID(int=1)
            found.append((await taken(desk, HEADER, message("a", None)))[1].renamed)
    assert found[0] == found[1]


async def test_an_import_is_one_write(desk: Desk) -> None:
    tree = await SessionTree.open(DyingStore(await desk.attempt(), 1, after=False), desk.session)
    with pytest.raises(Killed):
        await import_session(tree, read_jsonl(jsonl(HEADER, message("a", None), message("b", None))))
    assert (await desk.stored()).entries == ()


async def test_an_imported_session_goes_on_where_it_ended(desk: Desk) -> None:
    tree, _ = await taken(desk, HEADER, message("a", None, "one"))
    await tree.append([user("two")])
    again = await SessionTree.open(await desk.attempt(), desk.session)
    assert [message.role for message in build_context(again.branch()).messages] == ["user", "user"]
    file = export_session(again, "/home", "parent")
    assert file.header.model_dump(mode="json", by_alias=True) == {
        "type": "session",
        "version": 3,
        "id": str(desk.session),
        "timestamp": HEADER["timestamp"],
        "cwd": "/home",
        "parentSession": "parent",
    }


async def test_a_torn_line_is_told_of(desk: Desk) -> None:
    tree = await SessionTree.open(await desk.attempt(), desk.session)
    imported = await import_session(tree, read_jsonl(jsonl(HEADER, message("a", None)) + b'{"type": "mess'))
    assert len(imported.warnings) == 1
    assert export_session(tree, "/").warnings == ()


async def test_a_file_with_a_header_alone_is_a_session_without_entries(desk: Desk) -> None:
    tree, imported = await taken(desk, HEADER)
    assert (tree.entries, tree.leaf, imported) == ((), None, Imported({}, 0, ()))
    assert export_session(tree, "/work").entries == ()
