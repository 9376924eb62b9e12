"""The session tree: every entry of a conversation, and the branch that is current.

Entries are append-only. Each is a child of the leaf and becomes the leaf; a `leaf` entry moves the leaf and is
never on a branch itself. Types and bodies are the agent harness's; beside them each body says in `attempt` by
which attempt of the step it was written, counted from 1, and in a session of several runs in `task` by which step of
which run.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any
from uuid import UUID

from uuid6 import uuid7

from pilothouse.agents.messages import Message, to_wire
from pilothouse.agents.session.entries import Body, LabelBody, LeafBody, MessageBody, SessionInfoBody
from pilothouse.agents.session.errors import SessionError
from pilothouse.records.events import NewEvent
from pilothouse.records.runs import StepId
from pilothouse.records.sessions import Entry, NewEntry, Session, ToolOutcome
from pilothouse.store.ports import AttemptStore
from pilothouse.store.rules import LEAF, chain

ATTEMPT = "attempt"
TASK = "task"


class SessionTree:
    """One session as its attempt holds it. Every change is committed before the call returns; where the store
    refuses it, the tree is as it was."""

    def __init__(self, store: AttemptStore, session: Session, attempt: int, task: str | None = None) -> None:
        """`task`: who has the session now, where it passes from one to the next."""
        self.id = session.id
        self.leaf = session.leaf
        self.store = store
        self.attempt = attempt
        self.waiting = True
        """Something may wait in the session's queues, as far as the last write told."""
        self._mark = {ATTEMPT: attempt} | ({} if task is None else {TASK: task})
        self._entries: dict[UUID, Entry] = {}
        self._children: defaultdict[UUID | None, list[Entry]] = defaultdict(list)
        self._keep(session.entries)

    @classmethod
    async def open(
        cls,
        store: AttemptStore,
        session: UUID,
        attempt: int = 1,
        name: str | None = None,
        step: StepId | None = None,
    ) -> "SessionTree":
        """The session as attempt number `attempt` of the step finds it; a later attempt than the one that
        wrote before starts a branch at the step's first message. With a name it is one that passes from run to run, and
        the step begins where the one before it left off. Raises SessionBusy where another attempt has it."""
        task = None if name is None else f"{store.ref.run.run}/{step}"
        tree = cls(store, await store.open_session(session, name), attempt, task)
        await tree._begin()
        return tree

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every entry, in the order of writing."""
        return tuple(self._entries.values())

    def __getitem__(self, entry: UUID) -> Entry:
        """Raises SessionError `not_found`."""
        if entry not in self._entries:
            raise SessionError("not_found", f"the session has no entry {entry}")
        return self._entries[entry]

    def own(self, entry: Entry) -> bool:
        """Whether this step of this run wrote it."""
        return bool(entry.body.get(TASK) == self._mark.get(TASK))

    def branch(self) -> tuple[Entry, ...]:
        """The path from the root to the leaf."""
        return self.path(self.leaf)

    def node(self, id: UUID) -> Entry:
        """An entry that can be on a branch; a `leaf` entry cannot. Raises SessionError `not_found`."""
        entry = self[id]
        if entry.type == LEAF:
            raise SessionError("not_found", f"the entry {id} only moved the leaf; name the entry that it moved it to")
        return entry

    def path(self, to: UUID | None) -> tuple[Entry, ...]:
        """The path from the root to an entry."""
        path = []
        while to is not None:
            entry = self[to]
            path.append(entry)
            to = entry.parent
        return tuple(reversed(path))

    def children(self, of: UUID | None) -> tuple[Entry, ...]:
        """The entries that hang below the entry, oldest first; None: those that begin the session."""
        return tuple(self._children.get(of, ()))

    def labels(self) -> Mapping[UUID, str]:
        """The names that entries have now."""
        named = labels_in(self._entries.values())
        return {id: named[str(id)] for id in self._entries if str(id) in named} if named else {}

    @property
    def name(self) -> str | None:
        """The name of the session, None where it has none."""
        infos = (entry for entry in reversed(self._entries.values()) if entry.type == SessionInfoBody.type)
        last = next(infos, None)
        return ((last.body.get("name") or "").strip() or None) if last else None

    async def append(
        self,
        messages: Sequence[Message],
        events: Sequence[NewEvent] = (),
        outcomes: Sequence[ToolOutcome] = (),
        consumed: Sequence[UUID] = (),
    ) -> UUID:
        """Appends the messages in one transaction with the events and the outcomes; returns the id of the last.
        `consumed`: the items of the session's queues that they are, delivered thereby."""
        new = [self.copy(uuid7(), MessageBody.type, {"message": to_wire(message)}) for message in messages]
        written = await self.write(new, events, outcomes, consumed)
        return written[-1].id

    async def add(
        self, *bodies: Body, events: Sequence[NewEvent] = (), outcomes: Sequence[ToolOutcome] = ()
    ) -> Sequence[Entry]:
        """Appends entries in one transaction with the events and the outcomes, each below the leaf that the one
        before it left."""
        return await self.write([self.new_entry(body) for body in bodies], events, outcomes)

    def new_entry(self, body: Body) -> NewEntry:
        """An entry to `write`."""
        return self.copy(uuid7(), body.type, body.to_wire())

    def copy(self, id: UUID, kind: str, fields: Mapping[str, Any]) -> NewEntry:
        """An entry to `write` that has its id and its fields from elsewhere, marked as one of this attempt."""
        return NewEntry(id, kind, {**fields, **self._mark})

    async def write(
        self,
        new: Sequence[NewEntry],
        events: Sequence[NewEvent] = (),
        outcomes: Sequence[ToolOutcome] = (),
        consumed: Sequence[UUID] = (),
    ) -> Sequence[Entry]:
        """Appends entries as `add` does, with ids and fields that are settled; `consumed` as `append` has it."""
        written = await self.store.append(self.id, self.leaf, new, events, outcomes, consumed)
        self._keep(written)
        self.waiting = written.waiting
        self.leaf = chain(self.leaf, new)[-1].leaf if new else self.leaf
        return written

    async def move(self, target: UUID | None) -> None:
        """Makes `target` the leaf, so that what is appended next is a new branch there; None begins a new branch
        before the first entry. Raises SessionError `not_found`."""
        await self.add(self.leaf_at(target))

    def leaf_at(self, target: UUID | None) -> LeafBody:
        """What moves the leaf there, to be added. Raises SessionError `not_found`."""
        return LeafBody(target_id=None if target is None else str(self.node(target).id))

    async def label(self, target: UUID, text: str | None) -> None:
        """Names an entry; blank text clears its name. Raises SessionError `not_found`."""
        await self.add(LabelBody(target_id=str(self.node(target).id), label=(text or "").strip() or None))

    async def rename(self, name: str) -> None:
        """Names the session; a blank name clears it."""
        await self.add(SessionInfoBody(name=name.strip()))

    def _keep(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._entries[entry.id] = entry
            if entry.type != LEAF:
                self._children[entry.parent].append(entry)

    async def _begin(self) -> None:
        written = [entry for entry in self._entries.values() if self.own(entry)]
        opening = list(takewhile(_is_said, (entry for entry in written if entry.type == MessageBody.type)))
        if opening and all(entry.body.get(ATTEMPT) != self.attempt for entry in written):
            await self.move(opening[-1].id)


def _is_said(entry: Entry) -> bool:
    """Whether a person said it, who is not asked again."""
    return bool(entry.body["message"].get("role") == "user")


def labels_in(entries: Iterable[Entry]) -> dict[str, str]:
    """The names that the `label` entries among these give, by the id of their target; the last one of each holds."""
    labels = [entry.body for entry in entries if entry.type == LabelBody.type]
    named = {label["targetId"]: (label.get("label") or "").strip() for label in labels}
    return {target: name for target, name in named.items() if name}
