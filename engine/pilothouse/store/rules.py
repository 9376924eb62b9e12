"""Rules that every implementation of the ports applies alike."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from pilothouse.records.sessions import NewEntry, named_session
from pilothouse.records.states import Shutdown
from pilothouse.records.values import ValueRefused

SECONDS_LIMIT = 100 * 366 * 86_400
"""The longest time from now that a deadline or a wake time may lie ahead: a hundred years."""

LEAF = "leaf"
"""The type of an entry that only moves the leaf."""

SESSION_NAME_LIMIT = 253
"""Characters of a session's name."""

_BY_STRENGTH = (Shutdown.STOP, Shutdown.CANCEL, Shutdown.TERMINATE)


def weaker_than(verb: Shutdown) -> tuple[Shutdown, ...]:
    """The verbs that `verb` overrides: Terminate overrides Cancel, which overrides Stop."""
    return _BY_STRENGTH[: _BY_STRENGTH.index(verb)]


def plain(text: str, where: str) -> str:
    """The text, if a text column can hold it. Raises ValueRefused for a NUL or a lone surrogate."""
    if "\0" in text:
        raise ValueRefused(f"`{where}` contains a NUL character; names and ids must not")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueRefused(f"`{where}` contains a lone surrogate; names and ids must be valid Unicode") from None
    return text


def named(tenant: UUID, name: str) -> UUID:
    """The session of that name. Raises ValueRefused for what can be none."""
    if not 0 < len(plain(name, "name")) <= SESSION_NAME_LIMIT:
        raise ValueRefused(f"`name` has {len(name)} characters; a session's name has 1 to {SESSION_NAME_LIMIT}")
    return named_session(tenant, name)


def session_name(tenant: UUID, session: UUID, name: str | None) -> str | None:
    """The name, if there is none or if it is that session's. Raises ValueRefused."""
    if name is not None and session != named(tenant, name):
        raise ValueRefused(f"session {session} is not the one that this tenant names {name!r}")
    return name


def seconds(value: float | None, where: str) -> float | None:
    """The duration, if a time that far ahead can be written down. Raises ValueRefused."""
    if value is not None and not (math.isfinite(value) and 0 <= value <= SECONDS_LIMIT):
        raise ValueRefused(f"`{where}` is {value} seconds; it must lie between 0 and {SECONDS_LIMIT}")
    return value


@dataclass(frozen=True, slots=True)
class Link:
    """An entry, the leaf that it hangs below, and the leaf that it leaves behind."""

    entry: NewEntry
    parent: UUID | None
    leaf: UUID | None

    @property
    def target(self) -> UUID | None:
        """The entry that a `leaf` entry moves the leaf to; it must be there."""
        return self.leaf if self.entry.type == LEAF else None


def chain(leaf: UUID | None, entries: Sequence[NewEntry]) -> list[Link]:
    """The entries, each below the leaf that the one before it left. A `leaf` entry's `targetId` of null
    moves the leaf before the first entry. Raises ValueRefused where `targetId` is no id."""
    links = []
    for entry in entries:
        link = Link(entry, leaf, _target(entry) if entry.type == LEAF else entry.id)
        links.append(link)
        leaf = link.leaf
    return links


def _target(entry: NewEntry) -> UUID | None:
    target = entry.body.get("targetId", "")
    if target is None:
        return None
    try:
        return UUID(target)
    except (ValueError, AttributeError, TypeError):
        raise ValueRefused(f"`targetId` of a leaf entry must be an entry's id or null, not {target!r}") from None
