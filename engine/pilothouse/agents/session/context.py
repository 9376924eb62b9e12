"""What of a branch is the conversation: the last summary, what was kept beside it, and all that came after.

Everything here is a function of the branch, so it is the same in each process that opens the session.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

from pilothouse.agents.messages import CustomMessage, Message
from pilothouse.agents.session.entries import (
    BranchSummaryBody,
    CompactionBody,
    CustomBody,
    CustomMessageBody,
    MessageBody,
    body_of,
)
from pilothouse.agents.session.state import SessionState, state_of
from pilothouse.agents.session.times import milliseconds_of
from pilothouse.records.sessions import Entry

Projector: TypeAlias = Callable[[CustomBody], Sequence[Message]]
"""Makes messages of a `custom` entry. It must be a pure function."""

Projectors: TypeAlias = Mapping[str, Projector]
"""By the `customType` of the entries."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some messages of the context and the entry that they stem from; None for what an earlier compaction kept in
    itself."""

    messages: tuple[Message, ...]
    entry: UUID | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """The context in its parts. `kept` was said before the last compaction, `later` after it."""

    compaction: CompactionBody | None
    summary: tuple[Message, ...]
    kept: Sequence[Part]
    later: Sequence[Part]

    @property
    def old(self) -> tuple[Message, ...]:
        """What the model saw already before the last compaction, and the summary of the rest."""
        return (*self.summary, *messages_of(self.kept))

    @property
    def messages(self) -> tuple[Message, ...]:
        return (*self.old, *messages_of(self.later))


@dataclass(frozen=True, slots=True)
class SessionContext:
    """The conversation and the state that the branch ends in. The first `compacted` messages were there before the
    last compaction or are its summary, so the usage that they report is that of a context which is gone."""

    messages: tuple[Message, ...]
    state: SessionState
    compacted: int = 0


def build_context(branch: Sequence[Entry], projectors: Projectors | None = None) -> SessionContext:
    """The context of a branch, from its root to its leaf. Raises SessionError for an entry that cannot be read."""
    parts = parts_of(branch, projectors or {})
    return SessionContext(parts.messages, state_of(branch), len(parts.old))


def messages_of(parts: Iterable[Part]) -> tuple[Message, ...]:
    return tuple(message for part in parts for message in part.messages)


def parts_of(branch: Sequence[Entry], projectors: Projectors) -> Parts:
    last = next((at for at in reversed(range(len(branch))) if branch[at].type == CompactionBody.type), None)
    compaction = None if last is None else body_of(branch[last])
    if last is None or not isinstance(compaction, CompactionBody):
        return Parts(None, (), (), _parts(branch, projectors))
    if compaction.retained_tail is not None:
        kept = [Part((message,)) for message in compaction.retained_tail]
    else:
        kept = _parts(_from(branch[:last], compaction.first_kept_entry_id), projectors)
    summary = _custom(
        "compactionSummary", branch[last], summary=compaction.summary, tokensBefore=compaction.tokens_before
    )
    return Parts(compaction, (summary,), kept, _parts(branch[last + 1 :], projectors))


def project(entry: Entry, projectors: Projectors) -> tuple[Message, ...]:
    """The messages that one entry adds to the conversation; a compaction adds none of its own here."""
    match body_of(entry):
        case MessageBody(message=message):
            return (message,)
        case CustomMessageBody() as body:
            fields = body.to_wire()
            return (_custom("custom", entry, **{name: fields[name] for name in _CUSTOM if name in fields}),)
        case BranchSummaryBody(summary=summary, from_id=origin) if summary.strip():
            return (_custom("branchSummary", entry, summary=summary, fromId=origin),)
        case CustomBody(custom_type=kind) as body if kind in projectors:
            return tuple(projectors[kind](body))
        case _:
            return ()


_CUSTOM = ("customType", "content", "display", "details")


def _parts(entries: Iterable[Entry], projectors: Projectors) -> list[Part]:
    return [Part(project(entry, projectors), entry.id) for entry in entries]


def _from(entries: Sequence[Entry], first: str | None) -> Sequence[Entry]:
    at = next((at for at, entry in enumerate(entries) if str(entry.id) == first), len(entries))
    return [entry for entry in entries[at:] if entry.type != CompactionBody.type]


def _custom(role: str, entry: Entry, **fields: object) -> CustomMessage:
    return CustomMessage.model_validate({"role": role, **fields, "timestamp": milliseconds_of(entry)})
