"""Where a conversation stands when a process opens it, and what it must not do again."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise
from uuid import UUID

from pilothouse.agents.messages import (
    AssistantMessage,
    Message,
    MessageError,
    ToolResultMessage,
    from_wire,
)
from pilothouse.agents.session import SessionTree, message_of
from pilothouse.agents.turns import Turn
from pilothouse.records.failures import OUTCOME_UNKNOWN, Failure, FailureCode
from pilothouse.records.sessions import ToolCallRow
from pilothouse.store.keeping import load
from pilothouse.store.ports import AttemptStore


@dataclass(frozen=True, slots=True)
class Position:
    """The messages of the branch that this step wrote, and the turn that it ends in if it ends in one of these.
    `unknown` is a call of that turn that was begun, whose outcome was not recorded, and which must not be run again."""

    messages: tuple[Message, ...]
    turn: Turn | None = None
    unknown: ToolCallRow | None = None


def outcome_unknown(row: ToolCallRow) -> Failure:
    """The failure of a task that cannot go on, because running the call again could do harm."""
    text = (
        f"the call `{row.call}` of the tool `{row.tool}` was begun at {row.intended_at:%Y-%m-%dT%H:%M:%SZ} and its "
        "process ended before the outcome was recorded; the tool is not declared idempotent, so it is not run again"
    )
    return Failure(FailureCode.UNK, text, OUTCOME_UNKNOWN)


async def find_position(store: AttemptStore, tree: SessionTree) -> Position:
    """What was recorded of the branch."""
    own = [entry for entry in tree.branch() if tree.own(entry)]
    found = [(entry.id, message) for entry in own if (message := message_of(entry))]
    position = Position(tuple(message for _, message in found))
    turn = _last_turn(found)
    if turn is None or turn.message.stop_reason == "aborted":
        return position
    if turn.closed:
        return replace(position, turn=turn)
    rows = await store.tool_calls(tree.id, turn.id)
    unknown = next((row for row in rows if row.result is None and not row.idempotent), None)
    recorded = {row.ordinal: await _result(store, row) for row in rows if row.result is not None}
    return replace(position, turn=replace(turn, recorded=recorded), unknown=unknown)


def _last_turn(found: Sequence[tuple[UUID, Message]]) -> Turn | None:
    """The turn in which the branch ends, or None where something else was said after it."""
    results: list[ToolResultMessage] = []
    for entry, message in reversed(found):
        if isinstance(message, AssistantMessage):
            return Turn(entry, message, tuple(reversed(results)))
        if not isinstance(message, ToolResultMessage):
            return None
        results.append(message)
    return None


async def _result(store: AttemptStore, row: ToolCallRow) -> ToolResultMessage:
    stored = row.result
    if stored is None:
        raise MessageError(f"the call `{row.call}` has no result")
    body = await load(stored, store.get_blob)
    message = from_wire(body) if isinstance(body, dict) else None
    if not isinstance(message, ToolResultMessage):
        raise MessageError(f"the recorded result of the call `{row.call}` is no toolResult message")
    return message


def worked(tree: SessionTree) -> timedelta:
    """How long processes of this step have worked on the branch, by the database's clock. The time between one process
    and the next does not count."""
    steps = pairwise(filter(tree.own, tree.branch()))
    return sum((after.at - before.at for before, after in steps if after.attempt == before.attempt), timedelta())
