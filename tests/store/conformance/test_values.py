"""Values are stored faithfully, or refused by name with nothing written."""

import math
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from pilothouse.records.events import EventType, NewEvent
from pilothouse.records.failures import Failure, FailureCode
from pilothouse.records.runs import AttemptRef, NewStep, RunRef, StepId
from pilothouse.records.sessions import NewEntry, ToolOutcome
from pilothouse.records.states import AttemptState, RunState
from pilothouse.records.values import Inline, ValueRefused, digest
from pilothouse.store.errors import NotFound
from pilothouse.store.ports import RunStore
from pilothouse.store.transitions import RunClosing, Transition
from tests.store.samples import (
    BUILD,
    attempt_of,
    created,
    new_run,
    opening,
    refused,
    start,
    tool_call,
    with_turn,
)


def nested(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


FAITHFUL: dict[str, Any] = {
    "null": None,
    "NUL characters": "\0a\0",
    "an escaped NUL": "\\u0000",
    "a lone high surrogate": "\ud800",
    "a lone low surrogate": "a\udfffb",
    "surrogates the wrong way round": "\udc00\ud800",
    "keys of NUL and surrogates": {"\0": 1, "\ud800": 2},
    "quotes and backslashes": "\"'\\\n\r\t\b\f${{ x }} {{y}} %s %(a)s $1 ?",
    "astral, flags and right to left": "𝒳 🇨🇦 שלום \u202e\u2066",
    "2^53 + 1": 2**53 + 1,
    "2^60": 2**60,
    "the smallest integer": -(2**63),
    "the largest integer": 2**63 - 1,
    "minus zero": -0.0,
    "one as a float": 1.0,
    "the smallest float": 5e-324,
    "the largest float": 1.7976931348623157e308,
    "a tenth": 0.1,
    "empty things": ["", [], {}, {"": ""}],
    "keys that look alike": {"a": 1, "A": 2, "a ": 3, "\u00e9": 4, "e\u0301": 5, "1": 6, "true": 7},
    "booleans beside numbers": [True, 1, False, 0, 1.0, "1"],
    "the shapes that outputs have": {"value": {"blob": "sha256:x", "size": 1}, "blob": 1},
    "depth 150": nested(150),
    "10 MB of text": "x" * 10_000_000,
    "1 MB of numbers": list(range(150_000)),
}

REFUSED: dict[str, tuple[Any, str]] = {
    "not a number": (math.nan, "nan"),
    "infinity": ([1, {"a": -math.inf}], r"\[1\].a` is -inf"),
    "2^63": (2**63, "beyond 64 bits"),
    "depth 10,000": (nested(10_000), "nested more than 200"),
    "a key that is no string": ({1: "a"}, "keys must be strings"),
    "bytes": (b"a", "bytes"),
    "a set": ({1}, "set"),
}


def same(stored: Any, given: Any) -> bool:
    """Equal in value and in type, all the way down: 1, 1.0 and True are three values, so are 0.0 and -0.0."""
    if type(stored) is not type(given):
        return False
    if isinstance(given, dict):
        return list(stored) == list(given) and all(same(stored[key], given[key]) for key in given)
    if isinstance(given, list):
        return len(stored) == len(given) and all(map(same, stored, given))
    if isinstance(given, float):
        return stored == given and math.copysign(1, stored) == math.copysign(1, given)
    return bool(stored == given)


@pytest.mark.parametrize("value", FAITHFUL.values(), ids=FAITHFUL.keys())
async def test_a_value_comes_back_as_it_went_from_everywhere(store: RunStore, value: Any) -> None:
    run = (await store.create_run(new_run(closure={"c": value}, params={"p": value}))).ref
    await store.commit(run, 1, Transition(events=[NewEvent(EventType.TURN_RECORDED, data={"d": value})]))
    await store.commit(run, 1, Transition(run=RunClosing(RunState.SUCCEEDED, {"o": Inline(value)})))
    ended = (await store.snapshot(run)).run
    assert same(ended.closure, {"c": value})
    assert same(ended.params, {"p": value})
    assert same(dict(ended.outputs), {"o": Inline(value)}) or ended.outputs == {"o": Inline(value)}
    assert same((await store.events(run))[-1].data, {"d": value})


@pytest.mark.parametrize("value", FAITHFUL.values(), ids=FAITHFUL.keys())
async def test_a_value_comes_back_as_it_went_from_an_attempt(store: RunStore, value: Any) -> None:
    attempt = await attempt_of(store)
    session, turn = await with_turn(attempt)
    await attempt.intend(session, tool_call(turn))
    result = await attempt.record(session, ToolOutcome(turn, 0, {"m": value}))
    if isinstance(result, Inline):
        assert same(result.value, {"m": value})
    [entry] = await attempt.append(session, turn, [NewEntry(uuid4(), "message", {"b": value})])
    assert same(entry.body, {"b": value})
    await attempt.finish(AttemptState.SUCCEEDED, {"o": Inline(value)})
    [ended] = await store.attempts(attempt.ref.run)
    output = ended.outputs["o"]
    assert isinstance(output, Inline)
    assert same(output.value, value)


@pytest.mark.parametrize(("value", "reason"), REFUSED.values(), ids=REFUSED.keys())
async def test_a_value_that_json_cannot_hold_is_refused_everywhere(store: RunStore, value: Any, reason: str) -> None:
    attempt = await attempt_of(store)
    session, turn = await with_turn(attempt)
    await attempt.intend(session, tool_call(turn))
    run = attempt.ref.run
    event = NewEvent(EventType.TURN_RECORDED, data={"d": value})
    for write in (
        store.commit(run, 1, Transition(events=[event])),
        store.commit(run, 1, Transition(run=RunClosing(RunState.SUCCEEDED, {"o": Inline(value)}))),
        attempt.append(session, turn, [NewEntry(uuid4(), "message", {"b": value})]),
        attempt.append(session, turn, [], [event]),
        attempt.record(session, ToolOutcome(turn, 0, {"m": value})),
        attempt.finish(AttemptState.SUCCEEDED, {"o": Inline(value)}),
    ):
        async with refused(store, run, ValueRefused, reason):
            await write
    for new in (new_run(closure={"c": value}), new_run(params={"p": value})):
        with pytest.raises(ValueRefused, match=reason):
            await store.create_run(new)
        with pytest.raises(NotFound):
            await store.snapshot(RunRef(new.tenant, new.run))


async def test_a_failure_keeps_any_text_up_to_its_limit(store: RunStore) -> None:
    run = await created(store)
    message = "stderr: \0\ud800 \"quoted\" 'so' \\u0000 "
    for text in (message, "é" * 5_000):
        run = await created(store)
        failure = Failure(FailureCode.EXE, text, "Ex\0")
        await store.commit(run, 1, Transition(run=RunClosing(RunState.FAILED, failure=failure)))
        assert (await store.snapshot(run)).run.failure == Failure(FailureCode.EXE, text[:2_000], "Ex\0")


NAMES: dict[str, dict[str, Any]] = {
    "namespace": {"namespace": "team\0"},
    "workflow": {"workflow": "nightly\ud800"},
    "key": {"key": "\0"},
    "a step's path": {"steps": [NewStep(StepId("a\0"), "wait")]},
    "a step's kind": {"steps": [NewStep(BUILD, "wait\udc00")]},
}


@pytest.mark.parametrize("change", NAMES.values(), ids=NAMES.keys())
async def test_a_name_that_no_column_can_hold_is_refused(store: RunStore, change: dict[str, Any]) -> None:
    new = new_run(**change)
    with pytest.raises(ValueRefused, match="must"):
        await store.create_run(new)
    with pytest.raises(NotFound):
        await store.snapshot(RunRef(new.tenant, new.run))


ODD_NAME = "\"'\\ \\u0000 {,} é 𝒳\n$$ %s"


async def test_names_come_back_as_they_went(store: RunStore) -> None:
    step = StepId(ODD_NAME, 7)
    run = (await store.create_run(new_run(workflow=ODD_NAME, steps=[NewStep(step, ODD_NAME)]))).ref
    opened = replace(opening(step), nonce=ODD_NAME)
    told = NewEvent(EventType.STEP_STARTED, step)
    await store.commit(run, 1, Transition(steps=[start(step)], openings=[opened], events=[told]))
    snapshot = await store.snapshot(run)
    assert (snapshot.run.workflow, snapshot.steps[step].kind) == (ODD_NAME, ODD_NAME)
    assert (snapshot.attempts[step].nonce, (await store.events(run))[1].step) == (ODD_NAME, step)
    attempt = store.attempt_store(AttemptRef(run, opened.attempt, 1))
    session, turn = await with_turn(attempt)
    await attempt.append(session, turn, [NewEntry(uuid4(), ODD_NAME, {})])
    assert (await attempt.open_session(session)).entries[1].type == ODD_NAME
    await attempt.intend(session, tool_call(turn, call=ODD_NAME, tool=ODD_NAME))
    [row] = await attempt.tool_calls(session, turn)
    assert (row.call, row.tool) == (ODD_NAME, ODD_NAME)


@pytest.mark.parametrize("data", [b"", b"\0\xff", bytes(range(256)) * 40_000], ids=["none", "two", "10 MB"])
async def test_blobs_keep_their_bytes(store: RunStore, data: bytes) -> None:
    attempt = await attempt_of(store)
    tenant = attempt.ref.run.tenant
    for ref in (await store.put_blob(tenant, data), await attempt.put_blob(data), await attempt.put_blob(data)):
        assert (ref.digest, ref.size) == (digest(data), len(data))
    assert await store.get_blob(tenant, digest(data)) == data
    assert await attempt.get_blob(digest(data)) == data


@pytest.mark.parametrize("wrong", ["sha256:00", "", "\0", "sha256:\ud800", "'; DROP TABLE blobs; --"])
async def test_what_is_no_digest_finds_nothing(store: RunStore, wrong: str) -> None:
    attempt = await attempt_of(store)
    for read in (store.get_blob(attempt.ref.run.tenant, wrong), attempt.get_blob(wrong)):
        with pytest.raises(NotFound, match="no blob"):
            await read
