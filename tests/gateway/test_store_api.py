"""What a request reaches: the attempt of its token, in the way that an attempt may, and nothing else."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import jwt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilothouse.gateway import tokens
from pilothouse.gateway.tokens import Bearer
from pilothouse.records.queues import QueueName
from pilothouse.records.states import AttemptState
from pilothouse.store.errors import StoreUnavailable, StoreUnusable
from pilothouse.store.remote.wire import LIMITS
from tests.gateway.desk import Desk, carried_attempt
from tests.store.samples import BUILD, TEST, everything, message, open_attempt, replaced, tool_call, with_turn

SESSION, TURN, ITEM = UUID(int=7), UUID(int=8), UUID(int=10)
EVENT = {"type": "TurnRecorded", "path": "build", "index": 0, "data": {}}
CALL = {"turn": str(TURN), "ordinal": 1, "call": "c", "tool": "t", "arguments": "e30=", "idempotent": False}
OUTCOME = {"turn": str(TURN), "ordinal": 0, "message": {}, "is_error": False}
ENTRY = {"id": str(UUID(int=9)), "type": "message", "body": {}}

GOOD: dict[str, dict[str, Any]] = {
    "open_session": {"session": str(SESSION)},
    "append": {
        "session": str(SESSION),
        "leaf": str(TURN),
        "entries": [ENTRY],
        "events": [EVENT],
        "outcomes": [OUTCOME],
        "consumed": [str(ITEM)],
    },
    "queued": {"session": str(SESSION)},
    "clear": {"session": str(SESSION), "queues": ["steer", "followUp"], "id": str(UUID(int=11))},
    "tool_calls": {"session": str(SESSION), "turn": str(TURN)},
    "intend": {"session": str(SESSION), "call": CALL, "events": [EVENT]},
    "record": {"session": str(SESSION), "outcome": OUTCOME, "events": [EVENT]},
    "get_blob": {"digest": "sha256:00"},
    "finish": {"state": "Succeeded", "outputs": {"a": {"value": 1}}, "failure": None},
}
"""A request of each method that takes JSON, as a client would send it."""

every_method = pytest.mark.parametrize("method", LIMITS)


async def prepared(desk: Desk) -> str:
    """The attempt's token, once its session has a turn with an intended call."""
    direct = desk.store.attempt_store(desk.ref)
    await direct.open_session(SESSION)
    await direct.append(SESSION, None, [replace(message(), id=TURN)])
    await direct.intend(SESSION, tool_call(TURN))
    await desk.store.session_store().enqueue(desk.ref.run.tenant, SESSION, QueueName.NEXT_TURN, {}, ITEM)
    return await desk.token()


def body_of(method: str) -> str:
    return json.dumps(GOOD[method]) if method in GOOD else "bytes"


@every_method
async def test_the_requests_of_these_tests_are_good(desk: Desk, method: str) -> None:
    answer = await desk.post(method, await prepared(desk), body_of(method))
    assert answer.status_code == (404 if method == "get_blob" else 200)


Forge = Callable[[Desk], Awaitable[str | None]]


async def unsigned(desk: Desk) -> str:
    _, payload, _ = (await desk.token()).split(".")
    none = jwt.encode({}, "", "none").split(".")[0]
    return f"{none}.{payload}."


async def expired(desk: Desk) -> str:
    long_ago = datetime.now(UTC) - timedelta(minutes=11)
    return tokens.issue(await desk.store.token_key(), Bearer(desk.ref, BUILD), long_ago)


async def with_another_attempt(desk: Desk) -> str:
    """The token of an attempt of the same run, with our signature."""
    other = await desk.minted(await open_attempt(desk.store, desk.ref.run, TEST))
    (header, payload, _), signature = other.split("."), (await desk.token()).split(".")[2]
    return f"{header}.{payload}.{signature}"


async def of_another_key(desk: Desk) -> str:
    return tokens.issue(bytes(range(32)), Bearer(desk.ref, BUILD))


async def no_token(desk: Desk) -> None:
    return None


async def the_projected(desk: Desk) -> str:
    return desk.projected


FORGED: dict[str, Forge] = {
    "no token": no_token,
    "the Pod's own token": the_projected,
    "an unsigned token": unsigned,
    "a token of another key": of_another_key,
    "an expired token": expired,
    "another attempt's id below our signature": with_another_attempt,
}


@every_method
@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
async def test_without_a_good_token_nothing_is_reached(desk: Desk, method: str, forge: Forge) -> None:
    await prepared(desk)
    token = await forge(desk)
    before = await everything(desk.store, desk.ref.run)
    answer = await desk.post(method, token, body_of(method))
    assert answer.status_code == 401
    assert answer.json() == {
        "type": "Unauthenticated",
        "message": "this request bears no token that is accepted here",
    }
    assert await everything(desk.store, desk.ref.run) == before


@every_method
async def test_an_old_fence_reaches_nothing(desk: Desk, method: str) -> None:
    token = await prepared(desk)
    await replaced(desk.store, desk.ref)
    before = await everything(desk.store, desk.ref.run)
    answer = await desk.post(method, token, body_of(method))
    assert (answer.status_code, answer.json()["type"]) == (403, "Superseded")
    assert await everything(desk.store, desk.ref.run) == before


@every_method
async def test_the_attempt_is_the_tokens_whatever_the_request_names(desk: Desk, method: str) -> None:
    theirs, _ = await carried_attempt(desk.store, desk.kube)
    before = await everything(desk.store, theirs.run)
    names = {
        "tenant": str(theirs.run.tenant),
        "run": str(theirs.run.run),
        "attempt": str(theirs.attempt),
        "fence": theirs.fence,
        "ref": {"attempt": str(theirs.attempt)},
    }
    token = await prepared(desk)
    query = "&".join(f"{name}={value}" for name, value in names.items())
    body = json.dumps(names | GOOD[method]) if method in GOOD else "bytes"
    answer = await desk.post(f"{method}?{query}", token, body, **{"X-Attempt": str(theirs.attempt)})
    assert answer.status_code in (200, 404)
    assert await everything(desk.store, theirs.run) == before


async def test_the_ids_of_one_tenant_open_nothing_for_another(desk: Desk) -> None:
    theirs, _ = await carried_attempt(desk.store, desk.kube)
    their_store = desk.store.attempt_store(theirs)
    session, turn = await with_turn(their_store)
    await their_store.intend(session, tool_call(turn))
    blob = await their_store.put_blob(b"their secret")
    before = await everything(desk.store, theirs.run)
    token, asked = await desk.token(), {"session": str(session), "turn": str(turn)}
    outcome = OUTCOME | {"turn": str(turn)}
    answers = [
        await desk.post("get_blob", token, json.dumps({"digest": blob.digest})),
        await desk.post("tool_calls", token, json.dumps(asked)),
        await desk.post("record", token, json.dumps(asked | {"outcome": outcome, "events": []})),
        await desk.post("append", token, json.dumps(GOOD["append"] | {"session": str(session), "leaf": str(turn)})),
    ]
    assert [answer.status_code for answer in answers] == [404] * 4
    assert "secret" not in "".join(answer.text for answer in answers)
    own = await desk.post("open_session", token, json.dumps({"session": str(session)}))
    assert own.json() == {"leaf": None, "entries": []}, "the same id is another session in another tenant"
    assert await everything(desk.store, theirs.run) == before


FOREIGN_EVENTS = {
    "of another step": {"path": "test"},
    "of another item of the step": {"index": 1},
    "that the run ended": {"type": "RunSucceeded", "path": None, "index": None},
    "that its step succeeded": {"type": "StepSucceeded"},
    "that somebody asked for an end": {"type": "ShutdownRequested", "path": None, "index": None},
}


@pytest.mark.parametrize("change", FOREIGN_EVENTS.values(), ids=FOREIGN_EVENTS.keys())
@pytest.mark.parametrize("method", ["append", "intend", "record"])
async def test_an_attempt_tells_only_of_its_own_turns_and_tools(
    desk: Desk, method: str, change: dict[str, Any]
) -> None:
    token = await prepared(desk)
    before = await everything(desk.store, desk.ref.run)
    answer = await desk.post(method, token, json.dumps(GOOD[method] | {"events": [EVENT, EVENT | change]}))
    assert answer.status_code == 422
    assert answer.json() == {
        "type": "ValueRefused",
        "message": "an attempt of `build` tells of the turns and tools of that step alone",
    }
    assert await everything(desk.store, desk.ref.run) == before


@pytest.mark.parametrize("state", ["Open", "NeverStarted", "Lost", "Done"])
async def test_an_attempt_cannot_end_itself_as_only_its_driver_may(desk: Desk, state: str) -> None:
    answer = await desk.post("finish", await desk.token(), json.dumps(GOOD["finish"] | {"state": state}))
    assert (answer.status_code, answer.json()["type"]) == (400, "BadRequest")
    [attempt] = await desk.store.attempts(desk.ref.run)
    assert attempt.state is AttemptState.OPEN


BAD_OUTPUTS = {
    "a blob whose size is text": {"blob": "sha256:00", "size": "9"},
    "a blob without a size": {"blob": "sha256:00"},
    "a blob whose digest is a number": {"blob": 7, "size": 9},
    "neither": {},
    "no object": [],
}


@pytest.mark.parametrize("output", BAD_OUTPUTS.values(), ids=BAD_OUTPUTS.keys())
async def test_an_output_that_its_readers_could_not_read_is_refused(desk: Desk, output: Any) -> None:
    answer = await desk.post("finish", await desk.token(), json.dumps(GOOD["finish"] | {"outputs": {"a": output}}))
    assert answer.status_code == 400


MEANINGLESS = {
    "nothing": b"",
    "no JSON": b"{",
    "no UTF-8": b'{"session":"\xff"}',
    "a list": b"[]",
    "too deep": b"[" * 100_000,
    "a number too long": b'{"session":' + b"9" * 100_000 + b"}",
    "an empty object": b"{}",
    "an id that is none": b'{"session":"x","turn":"y"}',
    "an id that is a number": b'{"session":7,"turn":8}',
}


@pytest.mark.parametrize("method", GOOD)
@pytest.mark.parametrize("body", MEANINGLESS.values(), ids=MEANINGLESS.keys())
async def test_what_means_nothing_is_refused_and_changes_nothing(desk: Desk, method: str, body: bytes) -> None:
    token = await prepared(desk)
    before = await everything(desk.store, desk.ref.run)
    answer = await desk.post(method, token, body)
    assert (answer.status_code, answer.json()["type"]) == (400, "BadRequest")
    assert await everything(desk.store, desk.ref.run) == before


PLACES = [
    (method, path)
    for method, body in GOOD.items()
    for path in [(name,) for name in body]
    + [("entries", 0, name) for name in ENTRY if method == "append"]
    + [("outcomes", 0, name) for name in OUTCOME if method == "append"]
    + [("events", 0, name) for name in EVENT if "events" in body]
    + [("call", name) for name in CALL if "call" in body]
    + [("outcome", name) for name in OUTCOME if "outcome" in body]
]
"""Every member of every request."""

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@pytest.mark.parametrize("behind", ["memory", "postgres"], indirect=True)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(place=st.sampled_from(PLACES), value=JSON_VALUES)
async def test_any_value_in_any_place_is_served_or_refused_by_name(
    desk: Desk, place: tuple[str, tuple[Any, ...]], value: Any
) -> None:
    method, path = place
    token = await desk.minted(desk.ref)
    body = json.loads(json.dumps(GOOD[method]))
    inner = body
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    answer = await desk.post(method, token, json.dumps(body))
    assert answer.status_code in (200, 400, 403, 404, 409, 422), answer.text
    if answer.status_code != 200:
        assert set(answer.json()) == {"type", "message"}


@pytest.mark.parametrize("error", [StoreUnavailable, StoreUnusable])
async def test_an_outage_says_only_that_it_is_one(
    desk: Desk, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await desk.token()

    def away(ref: object) -> None:
        raise error("the server at 10.1.2.3 refuses the password of pilothouse")

    monkeypatch.setattr(desk.store, "attempt_store", away)
    answer = await desk.post("put_blob", token, b"x")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert answer.json() == {"type": "StoreUnavailable", "message": "the store is away; try again"}


async def test_a_defect_of_ours_tells_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    token = await desk.token()

    def broken(ref: object) -> None:
        raise RuntimeError("row of tenant B")

    monkeypatch.setattr(desk.store, "attempt_store", broken)
    answer = await desk.post("put_blob", token, b"x")
    assert answer.status_code == 500
    assert answer.json() == {"type": "InternalError", "message": "the gateway failed; its log says where"}


@pytest.mark.parametrize("ask", [("GET", "put_blob"), ("POST", "nothing"), ("DELETE", "open_session"), ("POST", "")])
async def test_there_is_nothing_else_there(desk: Desk, ask: tuple[str, str]) -> None:
    verb, path = ask
    answer: httpx.Response = await desk.client.request(verb, path)
    assert answer.status_code in (404, 405)
    assert answer.json() == {"type": "NoSuchRoute", "message": "the gateway has no such route"}
