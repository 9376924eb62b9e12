"""A session of its own from a branch of another."""

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias
from uuid import UUID

from uuid6 import uuid7

from pilothouse.agents.messages import UserMessage
from pilothouse.agents.session.entries import Body, LabelBody, SessionInfoBody, message_of
from pilothouse.agents.session.errors import SessionError
from pilothouse.agents.session.times import TIMESTAMP, timestamp_of
from pilothouse.agents.session.tree import SessionTree, labels_in
from pilothouse.records.sessions import Entry

ForkPosition: TypeAlias = Literal["at", "before"]


async def fork(
    tree: SessionTree, target: UUID, position: ForkPosition = "at", session: UUID | None = None
) -> SessionTree:
    """A new session with the branch up to the target; with `before`, up to what precedes it, and then the target must
    be a user's message. The entries keep their ids and times; the name of the session and the labels of the
    entries come along. All of it is one write.

    Raises SessionError `not_found`, or `invalid_fork_target`.
    """
    path = _path(tree, target, position)
    made = await SessionTree.open(tree.store, session or uuid7(), tree.attempt)
    if made.entries:
        raise SessionError("invalid_argument", f"the session {made.id} has entries already")
    copies = [made.copy(entry.id, entry.type, {**entry.body, TIMESTAMP: timestamp_of(entry)}) for entry in path]
    if new := [*copies, *map(made.new_entry, _names(tree, path))]:
        await made.write(new)
    return made


def _path(tree: SessionTree, target: UUID, position: ForkPosition) -> tuple[Entry, ...]:
    path = tree.path(tree.node(target).id)
    if position == "at":
        return path
    if not isinstance(message_of(path[-1]), UserMessage):
        raise SessionError("invalid_fork_target", f"a fork before {target} needs a user's message there")
    return path[:-1]


def _names(tree: SessionTree, path: Sequence[Entry]) -> Iterator[Body]:
    """What entries off the path say of names."""
    now, on_path = tree.labels(), labels_in(path)
    for entry in path:
        if now.get(entry.id) != on_path.get(str(entry.id)):
            yield LabelBody(target_id=str(entry.id), label=now.get(entry.id))
    if tree.name:
        yield SessionInfoBody(name=tree.name)
