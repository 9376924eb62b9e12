"""The sentences with which a store refuses, the same from every implementation."""

from uuid import UUID

from pilothouse.records.queues import QueueName
from pilothouse.records.runs import AttemptRef, RunRef
from pilothouse.records.sessions import NewToolCall, ToolOutcome
from pilothouse.store.errors import (
    Conflict,
    Deposed,
    InvalidState,
    NotFound,
    QueueNotEmpty,
    SessionBusy,
    Superseded,
)
from pilothouse.store.transitions import AttemptClosing, AttemptOpening, StepChange


def no_run(run: RunRef) -> NotFound:
    return NotFound(f"tenant {run.tenant} has no run {run.run}")


def no_blob(digest: str) -> NotFound:
    return NotFound(f"this tenant has no blob {digest[:80]!r}")


def led_elsewhere(scope: str) -> Conflict:
    return Conflict(f"`{scope}` is driven by another process, which is alive; wait for it or end it")


def deposed(run: RunRef, epoch: int) -> Deposed:
    return Deposed(f"run {run.run} was written to by a leader newer than epoch {epoch}; stop driving it")


def step_refused(change: StepChange) -> Conflict:
    expected = ", ".join(sorted(change.expect))
    fence = "" if change.fence is None else f" with fence {change.fence}"
    return Conflict(f"step `{change.id}` cannot become {change.state}: it is not in {{{expected}}}{fence}")


def closing_refused(closing: AttemptClosing) -> Conflict:
    return Conflict(f"attempt {closing.attempt} cannot end: it is not open with fence {closing.fence}")


def opening_refused(opening: AttemptOpening) -> Conflict:
    return Conflict(
        f"step `{opening.step}` cannot open attempt {opening.attempt}: "
        f"it has an open one, or its fence is not {opening.after}, or that id is taken"
    )


def carrier_refused(ref: AttemptRef) -> Conflict:
    return Conflict(f"attempt {ref.attempt} has another carrier, or is not open with fence {ref.fence}")


def not_carried(carrier: str, namespace: str) -> NotFound:
    return NotFound(f"no attempt of namespace {namespace[:80]!r} is carried out by {carrier[:80]!r}")


def run_refused() -> Conflict:
    return Conflict("the run cannot end: it has ended before")


def superseded(ref: AttemptRef) -> Superseded:
    return Superseded(f"attempt {ref.attempt} with fence {ref.fence} is not the open one of its step")


def foreign_session(session: UUID) -> Conflict:
    return Conflict(f"session {session} belongs to another run")


def session_busy(session: UUID) -> SessionBusy:
    return SessionBusy(f"another attempt is at work on session {session}; wait until it has ended")


def no_session(session: UUID) -> NotFound:
    return NotFound(f"this attempt has opened no session {session}")


def unknown_session(session: UUID) -> NotFound:
    return NotFound(f"this tenant has no session {session}")


def session_there(name: str) -> Conflict:
    return Conflict(f"there is a session {name!r} already; import under another name")


def not_at_work(session: UUID, queue: QueueName) -> InvalidState:
    return InvalidState(
        f"no attempt is at work on session {session}, so nobody would read a message of `{queue}`; "
        f"put it into `{QueueName.NEXT_TURN}`"
    )


def item_there(session: UUID, item: UUID) -> Conflict:
    return Conflict(f"session {session} was given another message with the id {item}")


def items_gone(session: UUID) -> Conflict:
    return Conflict(f"not all these messages wait in session {session}: some were delivered or taken back; read again")


def queue_not_empty(ref: AttemptRef) -> QueueNotEmpty:
    return QueueNotEmpty(f"messages wait for attempt {ref.attempt}; deliver them before it succeeds")


def leaf_moved(session: UUID, leaf: UUID | None) -> Conflict:
    return Conflict(f"the leaf of session {session} is not {leaf}; read the session again")


def entry_there(session: UUID) -> Conflict:
    return Conflict(f"session {session} has an entry of the same id already")


def no_target(session: UUID, target: UUID) -> Conflict:
    return Conflict(f"session {session} has no entry {target} that its leaf could move to")


def no_turn(session: UUID, turn: UUID) -> NotFound:
    return NotFound(f"session {session} has no entry {turn} whose calls these could be")


def intent_refused(call: NewToolCall) -> Conflict:
    return Conflict(
        f"call {call.ordinal} of turn {call.turn} ({call.tool}) was intended before; "
        "it has a result, is not idempotent, or was another call"
    )


def no_intent(outcome: ToolOutcome) -> NotFound:
    return NotFound(f"call {outcome.ordinal} of turn {outcome.turn} was never intended")


def result_there(outcome: ToolOutcome) -> Conflict:
    return Conflict(f"call {outcome.ordinal} of turn {outcome.turn} has a result already")
