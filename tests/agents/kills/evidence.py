"""What can be seen of a session once a process has ended: in the store's rows, and in the world."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg

from pilothouse.records.events import Event
from pilothouse.records.failures import OUTCOME_UNKNOWN
from pilothouse.records.runs import Attempt
from pilothouse.records.sessions import Entry, Session
from pilothouse.store.ports import RunStore
from tests.agents.desk import Desk
from tests.agents.kills.ledger import Ledger
from tests.agents.kills.parts import timeless

_CALLS = "SELECT call, result IS NOT NULL FROM tool_calls WHERE session = %s"


@dataclass(frozen=True)
class Row:
    """A tool call that was begun."""

    call: str
    done: bool


@dataclass(frozen=True)
class Evidence:
    """`asked`: of each request to the model its turn, the digest of what it showed, and whether that was legal.
    `said`: what was said to the agent while it was at work; `waiting`: what of it was not delivered."""

    attempt: Attempt
    entries: Sequence[Entry]
    branch: Sequence[Mapping[str, Any]]
    rows: Sequence[Row]
    events: Sequence[Event]
    effects: Counter[str]
    asked: Sequence[tuple[int, str, bool]]
    kept: frozenset[str]
    said: frozenset[str]
    waiting: Sequence[str]

    @property
    def answers(self) -> int:
        """How many answers of the model are recorded."""
        return sum(message["role"] == "assistant" for message in self.branch)

    @property
    def open(self) -> frozenset[str]:
        """The calls that were begun and have no result."""
        return frozenset(row.call for row in self.rows if not row.done)

    @property
    def unknown(self) -> bool:
        """Whether the attempt ended because the outcome of a call is not known."""
        failure = self.attempt.failure
        return failure is not None and failure.reason == OUTCOME_UNKNOWN


async def gather(store: RunStore, dsn: str, desk: Desk, ledger: Ledger) -> Evidence:
    opened = await store.sessions(desk.run)
    session = opened[0] if opened else Session(desk.session, None)
    return Evidence(
        attempt=(await store.attempts(desk.run))[-1],
        entries=session.entries,
        branch=_branch(session),
        rows=await _rows(dsn, desk.session),
        events=await desk.events(),
        effects=ledger.effects(),
        asked=[(turn, shown, legal) for turn, shown, legal in ledger.facts("asked")],
        kept=frozenset(ledger.facts("kept")),
        said=frozenset(ledger.facts("said")),
        waiting=await desk.waiting() if opened else [],
    )


def _branch(session: Session) -> list[dict[str, Any]]:
    """The messages from the first one to the leaf."""
    by_id = {entry.id: entry for entry in session.entries}
    path, at = [], session.leaf
    while at is not None:
        path.append(by_id[at])
        at = by_id[at].parent
    return [timeless(entry.body["message"]) for entry in reversed(path)]


async def _rows(dsn: str, session: UUID) -> list[Row]:
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        found = await connection.execute(_CALLS, (session,))
        return [Row(*row) for row in await found.fetchall()]
