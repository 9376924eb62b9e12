"""Sessions into a store and out of it, as files."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid5

from uuid6 import uuid7

from pilothouse.agents.repair import missing_results
from pilothouse.agents.session.context import build_context
from pilothouse.agents.session.entries import LeafBody
from pilothouse.agents.session.errors import SessionError
from pilothouse.agents.session.jsonl import FileEntry, Header, SessionFile
from pilothouse.agents.session.times import TIMESTAMP, iso, timestamp_of
from pilothouse.agents.session.tree import ATTEMPT, TASK, SessionTree
from pilothouse.records.sessions import Entry, NewEntry, Session

IMPLIED = "impliedByImport"
"""Marks a `leaf` entry that no file has: the store has one wherever a file goes on at another place."""

_REFERENCES = ("targetId", "firstKeptEntryId", "fromId")


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did beside copying. `renamed`: the new ids of entries whose own were no UUIDs. `closed`: calls of
    the last turn that had no result and got one which says so."""

    renamed: Mapping[str, UUID]
    closed: int
    warnings: tuple[str, ...]


async def import_session(tree: SessionTree, file: SessionFile) -> Imported:
    """Writes the entries of the file into a session without entries, in one write. They keep their times, and their
    ids where these are UUIDs; references follow a changed id. A field `attempt` becomes our own.

    No call of the file is run here: what was begun elsewhere has its effect there.
    """
    if tree.entries:
        raise SessionError("invalid_argument", f"the session {tree.id} has entries already; import into a new one")
    ids = {entry.id: _id(tree.id, entry.id) for entry in file.entries}
    if file.entries:
        await tree.write(list(_new_entries(tree, file, ids)))
    results = missing_results(build_context(tree.branch()).messages)
    if results:
        await tree.append(results)
    renamed = {old: new for old, new in ids.items() if str(new) != old}
    return Imported(renamed, len(results), file.warnings)


def export_session(session: SessionTree | Session, cwd: str, parent_session: str | None = None) -> SessionFile:
    """All of the session. What the store's rows have and files do not is left out."""
    entries = tuple(_exported(entry) for entry in session.entries if not entry.body.get(IMPLIED))
    began = entries[0].timestamp if entries else iso(datetime.now(UTC))
    return SessionFile(Header(id=str(session.id), timestamp=began, cwd=cwd, parent_session=parent_session), entries)


def _new_entries(tree: SessionTree, file: SessionFile, ids: Mapping[str, UUID]) -> Iterator[NewEntry]:
    leaf: UUID | None = None
    for entry in file.entries:
        parent = None if entry.parent is None else ids[entry.parent]
        if parent != leaf:
            target = None if parent is None else str(parent)
            yield tree.copy(uuid7(), LeafBody.type, {"targetId": target, IMPLIED: True})
        yield tree.copy(ids[entry.id], entry.type, {**_referring(entry, ids), TIMESTAMP: entry.timestamp})
        leaf = _leaf_after(entry, ids)


def _leaf_after(entry: FileEntry, ids: Mapping[str, UUID]) -> UUID | None:
    if entry.type != LeafBody.type:
        return ids[entry.id]
    target = entry.fields["targetId"]
    return None if target is None else ids[target]


def _referring(entry: FileEntry, ids: Mapping[str, UUID]) -> dict[str, Any]:
    """The fields, with references to the ids that the entries have now."""
    changed = {name: str(ids[old]) for name in _REFERENCES if (old := _text(entry.fields.get(name))) in ids}
    return {**entry.fields, **changed}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _id(session: UUID, written: str) -> UUID:
    """The same file gives the same ids in the same session."""
    try:
        id = UUID(written)
    except ValueError:
        return uuid5(session, written)
    return id if str(id) == written else uuid5(session, written)


def _exported(entry: Entry) -> FileEntry:
    fields = {name: value for name, value in entry.body.items() if name not in (ATTEMPT, TASK, TIMESTAMP)}
    parent = None if entry.parent is None else str(entry.parent)
    return FileEntry(str(entry.id), parent, timestamp_of(entry), entry.type, fields)
