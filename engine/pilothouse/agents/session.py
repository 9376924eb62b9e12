"""The session tree: every entry of a conversation, and the branch that is current.

Entries are append-only. Each is a child of the leaf and becomes the leaf; a `leaf` entry moves the leaf and is
never on a branch itself. Types and bodies are the agent harness's; beside them each body says in `attempt` by
which attempt of the step it was written, counted from 1.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from uuid6 import uuid7

from pilothouse.agents.messages import Message, from_wire, to_wire
from pilothouse.records.events import NewEvent
from pilothouse.records.sessions import Entry, NewEntry, Session, ToolOutcome
from pilothouse.store.ports import AttemptStore

MESSAGE = "message"
LEAF = "leaf"


class SessionTree:
    """One session as its attempt holds it. Every change is committed before the call returns."""

    def __init__(self, store: AttemptStore, session: Session, attempt: int) -> None:
        self.id = session.id
        self.leaf = session.leaf
        self._attempt = attempt
        self._store = store
        self._entries = {entry.id: entry for entry in session.entries}

    @classmethod
    async def open(cls, store: AttemptStore, session: UUID, attempt: int = 1) -> "SessionTree":
        """The session as attempt number `attempt` of the step finds it; a later attempt than the one that
        wrote before starts a branch at the step's first message."""
        tree = cls(store, await store.open_session(session), attempt)
        await tree._begin()
        return tree

    def branch(self) -> tuple[Entry, ...]:
        """The path from the root to the leaf."""
        path = []
        at = self.leaf
        while at is not None:
            entry = self._entries[at]
            path.append(entry)
            at = entry.parent
        return tuple(reversed(path))

    async def append(
        self, messages: Sequence[Message], events: Sequence[NewEvent] = (), outcomes: Sequence[ToolOutcome] = ()
    ) -> UUID:
        """Appends the messages in one transaction with the events and the outcomes; returns the new leaf."""
        new = [self._entry(MESSAGE, {"message": to_wire(message)}) for message in messages]
        await self._write(new, events, outcomes)
        self.leaf = new[-1].id
        return self.leaf

    async def move(self, target: UUID) -> None:
        """Makes `target` the leaf, so that what is appended next is a new branch there."""
        await self._write([self._entry(LEAF, {"targetId": str(target)})])
        self.leaf = target

    async def _begin(self) -> None:
        written = self._entries.values()
        first = next((entry for entry in written if entry.type == MESSAGE), None)
        if first and all(entry.body.get("attempt") != self._attempt for entry in written):
            await self.move(first.id)

    def _entry(self, kind: str, body: Mapping[str, Any]) -> NewEntry:
        return NewEntry(uuid7(), kind, {**body, "attempt": self._attempt})

    async def _write(
        self, new: Sequence[NewEntry], events: Sequence[NewEvent] = (), outcomes: Sequence[ToolOutcome] = ()
    ) -> None:
        for entry in await self._store.append(self.id, self.leaf, new, events, outcomes):
            self._entries[entry.id] = entry


def message_of(entry: Entry) -> Message | None:
    """The message that the entry adds to the conversation, if it adds one."""
    return from_wire(entry.body["message"]) if entry.type == MESSAGE else None
