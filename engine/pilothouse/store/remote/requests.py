"""What the store API is asked, written by the client and read by the gateway.

Writing refuses what every store refuses, with the same words: the rows are made by the functions of `store/rows.py`.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable
from uuid import UUID

from pilothouse.records.events import EventType, NewEvent
from pilothouse.records.failures import Failure, FailureCode
from pilothouse.records.runs import StepId
from pilothouse.records.sessions import NewEntry, NewToolCall, ToolOutcome
from pilothouse.records.states import AttemptState
from pilothouse.records.values import BlobRef, Inline, Outputs, Stored, encode
from pilothouse.store.remote.wire import Fields, Text, dump
from pilothouse.store.rows import Row, attempt_outcome_row, event_row


def append_text(
    session: UUID,
    leaf: UUID | None,
    entries: Iterable[Row],
    events: Iterable[NewEvent],
    outcomes: Iterable[ToolOutcome],
    consumed: Iterable[UUID],
) -> Text:
    """`entries` are rows, as `entry_row` makes them."""
    return dump(
        {
            "session": session,
            "leaf": leaf,
            "entries": [_entry_text(row) for row in entries],
            "events": _events_text(events),
            "outcomes": [_outcome_text(outcome) for outcome in outcomes],
            "consumed": [str(item) for item in consumed],
        }
    )


def intend_text(session: UUID, row: Row, events: Iterable[NewEvent]) -> Text:
    """`row` is the call's, as `tool_call_row` makes it."""
    call = {name: row[name] for name in ("turn", "ordinal", "call", "tool", "idempotent")}
    call["arguments"] = b64encode(row["arguments"]).decode()
    return dump({"session": session, "call": dump(call), "events": _events_text(events)})


def record_text(session: UUID, outcome: ToolOutcome, events: Iterable[NewEvent]) -> Text:
    return dump({"session": session, "outcome": _outcome_text(outcome), "events": _events_text(events)})


def import_text(name: str, entries: Iterable[Row]) -> Text:
    """`entries` are rows, as `entry_row` makes them."""
    return dump({"name": name, "entries": [_entry_text(row) for row in entries]})


def enqueue_text(row: Row) -> Text:
    """`row` is the item's, as `item_row` makes it."""
    return dump(row | {"message": Text(row["message"])})


def finish_text(state: AttemptState, outputs: Outputs | None, failure: Failure | None) -> Text:
    row = attempt_outcome_row(state, outputs, failure)
    failed = Text(row["failure"]) if row["failure"] else None
    return dump({"state": row["state"], "outputs": Text(row["outputs"]), "failure": failed})


def read_entries(body: Fields) -> list[NewEntry]:
    return [NewEntry(item.uuid("id"), item.text("type"), item.object("body")) for item in body.each("entries")]


def read_events(body: Fields) -> list[NewEvent]:
    return [_event(item) for item in body.each("events")]


def read_outcomes(body: Fields) -> list[ToolOutcome]:
    return [read_outcome(item) for item in body.each("outcomes")]


def read_outcome(item: Fields) -> ToolOutcome:
    return ToolOutcome(item.uuid("turn"), item.number("ordinal"), item.object("message"), item.flag("is_error"))


def read_call(item: Fields) -> NewToolCall:
    return NewToolCall(
        turn=item.uuid("turn"),
        ordinal=item.number("ordinal"),
        call=item.text("call"),
        tool=item.text("tool"),
        arguments=read_bytes(item, "arguments"),
        idempotent=item.flag("idempotent"),
    )


def read_end(body: Fields) -> tuple[AttemptState, dict[str, Stored], Failure | None]:
    outputs = body.fields("outputs")
    return (
        body.read("state", AttemptState),
        {name: read_stored(outputs.fields(name)) for name in outputs},
        body.optional("failure", lambda name: _failure(body.fields(name))),
    )


def read_stored(item: Fields) -> Stored:
    if "blob" in item:
        return BlobRef(item.text("blob"), item.number("size"))
    return Inline(item.any("value"))


def read_bytes(item: Fields, name: str) -> bytes:
    return item.read(name, lambda text: b64decode(text, validate=True))


def _entry_text(row: Row) -> Text:
    return dump({"id": row["id"], "type": row["type"], "body": Text(row["body"])})


def _events_text(events: Iterable[NewEvent]) -> list[Text]:
    return [dump(row | {"data": Text(row["data"])}) for row in map(event_row, events)]


def _outcome_text(outcome: ToolOutcome) -> Text:
    message = Text(encode(dict(outcome.message)))
    return dump({"turn": outcome.turn, "ordinal": outcome.ordinal, "message": message, "is_error": outcome.is_error})


def _event(item: Fields) -> NewEvent:
    path = item.optional("path", item.text)
    step = None if path is None else StepId(path, item.number("index"))
    return NewEvent(item.read("type", EventType), step, item.object("data"))


def _failure(item: Fields) -> Failure:
    return Failure(item.read("code", FailureCode), item.text("message"), item.optional("reason", item.text) or "")
