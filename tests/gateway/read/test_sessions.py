"""Sessions through the gateway: who may read them, say something to their agents, and bring one along."""

import json
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from pilothouse.gateway.read import sessions
from pilothouse.records.queues import QueueName
from pilothouse.records.sessions import NewEntry, named_session
from pilothouse.records.states import AttemptState
from pilothouse.store.ports import AttemptStore
from pilothouse.store.postgres import PostgresRunStore
from tests.gateway.doubles import ANN, BOB, FakeKube
from tests.gateway.read.conftest import Reader
from tests.store.samples import attempt_of, message, with_turn

SESSION, ITEM = "team-a/sessions/{session}", str(uuid4())
MESSAGE = {"id": ITEM, "queue": "steer", "message": {"role": "user", "content": "stop"}}
FILE = {"name": "brought", "entries": []}

READS = ("team-a/sessions", SESSION, f"{SESSION}/entries", f"{SESSION}/messages")
WRITES: dict[str, tuple[str, dict[str, Any]]] = {
    "create sessions": ("team-a/sessions", FILE),
    "create sessions/messages": (f"{SESSION}/messages", MESSAGE),
    "delete sessions/messages": (f"{SESSION}/messages/cancel", {"ids": [ITEM]}),
}


@pytest.fixture
async def attempt(postgres: PostgresRunStore, tenant: UUID) -> AttemptStore:
    """At work on the session."""
    return await attempt_of(postgres, tenant)


@pytest.fixture
async def session(attempt: AttemptStore) -> UUID:
    return (await with_turn(attempt))[0]


async def write(read: Reader, right: str, session: UUID, token: str = ANN, namespace: str = "team-a") -> httpx.Response:
    """The write that the right is for."""
    path, body = WRITES[right]
    path = path.format(session=session).replace("team-a", namespace)
    return await read.post(path, json.dumps(body).encode(), token)


async def test_who_may_list_workflows_and_read_logs_reads_sessions(
    read: Reader, session: UUID, postgres: PostgresRunStore, tenant: UUID
) -> None:
    await postgres.session_store().enqueue(tenant, session, QueueName.NEXT_TURN, {"content": "later"})
    [head] = await read.items("team-a/sessions")
    assert (head["id"], head["entries"], head["waiting"]) == (str(session), 1, {"nextTurn": 1})
    assert (await read(f"team-a/sessions/{session}")).json() == head
    [entry] = await read.items(f"team-a/sessions/{session}/entries")
    assert entry["body"]["content"] == "a turn"
    [item] = await read.items(f"team-a/sessions/{session}/messages")
    assert item["message"] == {"content": "later"}
    assert (await read("team-a/tenant")).json() == {"tenant": str(tenant)}


@pytest.mark.parametrize("right", ["list workflows", "get pods/log"])
async def test_each_right_to_read_is_asked_for(read: Reader, session: UUID, kube: FakeKube, right: str) -> None:
    kube.grants.remove(f"ann {right} team-a")
    answers = [await read(path.format(session=session)) for path in READS]
    answers += [await read(path.format(session=uuid4())) for path in READS[1:]]
    assert {answer.status_code for answer in answers} == {403}
    assert len({answer.content for answer in answers}) == 1, "no answer tells what is there"


@pytest.mark.parametrize("right", WRITES)
async def test_a_write_takes_the_right_of_its_own(
    read: Reader, session: UUID, kube: FakeKube, postgres: PostgresRunStore, tenant: UUID, right: str
) -> None:
    """Not that to read, nor that to another write."""
    outside = postgres.session_store()
    kube.grant("ann", "team-a", *WRITES.keys() - {right}, *(f"{each} {uuid4()}" for each in WRITES))
    before = await outside.sessions(tenant)
    for each in (session, uuid4()):
        answer = await write(read, right, each)
        assert (answer.status_code, answer.json()["type"]) == (403, "Forbidden")
        assert f"ann may not {right.split()[0]} sessions.pilothouse.dev" in answer.json()["message"]
    assert await outside.sessions(tenant) == before
    kube.grant("ann", "team-a", right)
    assert (await write(read, right, session)).status_code == 200


async def test_the_right_to_the_messages_of_one_session_is_good_for_that_one(
    read: Reader, session: UUID, attempt: AttemptStore, kube: FakeKube
) -> None:
    other, _ = await with_turn(attempt)
    kube.grant("bob", "team-a", f"create sessions/messages {session}")
    assert (await write(read, "create sessions/messages", session, BOB)).status_code == 200
    refused = await write(read, "create sessions/messages", other, BOB)
    said = refused.json()["message"]
    assert f"bob may not create sessions.pilothouse.dev/{other}/messages in namespace team-a" in said
    assert f"`kubectl auth can-i create sessions.pilothouse.dev/{other} --subresource=messages -n team-a`" in said
    assert list(await attempt.queued(other)) == []


async def test_who_only_writes_reads_nothing_but_the_tenant(read: Reader, session: UUID, kube: FakeKube) -> None:
    kube.grant("bob", "team-a", *WRITES)
    assert (await read("team-a/tenant", BOB)).status_code == 200
    assert {(await read(path.format(session=session), BOB)).status_code for path in READS} == {403}
    taken_back = await write(read, "delete sessions/messages", session, BOB)
    assert taken_back.status_code == 403, "its answer would show messages"
    for right, status in {
        f"create sessions/messages {session}": 200,
        "create sessions": 200,
        "get pods/log": 403,
    }.items():
        kube.grants = {grant for grant in kube.grants if not grant.startswith("bob")}
        kube.grant("bob", "team-a", right)
        assert (await read("team-a/tenant", BOB, session=session)).status_code == status, right
        assert (await read("team-a/tenant", BOB, session=uuid4())).status_code == (
            200 if right == "create sessions" else 403
        )


@pytest.mark.feature("A69")
async def test_a_message_is_accepted_once_and_can_be_taken_back(
    read: Reader, session: UUID, attempt: AttemptStore, kube: FakeKube
) -> None:
    kube.grant("ann", "team-a", *WRITES)
    first, again = [await write(read, "create sessions/messages", session) for _ in range(2)]
    assert first.json() == again.json()
    [item] = await attempt.queued(session)
    assert (str(item.id), item.queue, item.seq, dict(item.message)) == (ITEM, "steer", 1, MESSAGE["message"])
    assert first.json() == {"seq": 1, "at": item.at.isoformat()}
    [cancelled] = (await write(read, "delete sessions/messages", session)).json()["items"]
    assert cancelled["id"] == ITEM
    assert list(await attempt.queued(session)) == []


async def test_a_message_that_nobody_would_read_is_refused(
    read: Reader, session: UUID, attempt: AttemptStore, kube: FakeKube
) -> None:
    kube.grant("ann", "team-a", *WRITES)
    await attempt.finish(AttemptState.SUCCEEDED)
    answer = await write(read, "create sessions/messages", session)
    assert (answer.status_code, answer.json()["type"]) == (409, "InvalidState")
    assert f"no attempt is at work on session {session}" in answer.json()["message"]


async def test_a_session_is_brought_along_once(
    read: Reader, kube: FakeKube, postgres: PostgresRunStore, tenant: UUID
) -> None:
    kube.grant("ann", "team-a", "create sessions")
    one = message("one")
    entry = {"id": str(one.id), "type": one.type, "body": dict(one.body)}
    body = json.dumps({"name": "notes", "entries": [entry]}).encode()
    session = named_session(tenant, "notes")
    assert (await read.post("team-a/sessions", body)).json() == {"id": str(session)}
    [stored] = await postgres.session_store().entries(tenant, session)
    assert (stored.id, stored.body) == (one.id, one.body)
    again = await read.post("team-a/sessions", body)
    assert (again.status_code, again.json()["type"]) == (409, "Conflict")


async def test_a_namespace_s_sessions_are_not_reached_through_another(
    read: Reader, session: UUID, kube: FakeKube, postgres: PostgresRunStore, tenant: UUID
) -> None:
    kube.create_namespace("team-b")
    kube.grant("ann", "team-b", "list workflows", "get pods/log", *WRITES)
    assert (await read("team-b/sessions")).json() == {"items": []}
    for path in READS[1:]:
        assert (await read(path.format(session=session).replace("team-a", "team-b"))).status_code == 404
    for right in ("create sessions/messages", "delete sessions/messages"):
        assert (await write(read, right, session, namespace="team-b")).status_code == 404
    assert (await write(read, "create sessions", session, namespace="team-b")).status_code == 200
    assert list(await postgres.session_store().queued(tenant, session)) == []
    assert [head.id for head in await postgres.session_store().sessions(tenant)] == [session]


async def test_a_namespace_made_anew_is_not_taken_for_the_one_that_was_meant(
    read: Reader, session: UUID, kube: FakeKube, postgres: PostgresRunStore, tenant: UUID
) -> None:
    kube.grant("ann", "team-a", *WRITES)
    new = kube.create_namespace("team-a")
    answers = [await read(path.format(session=session), tenant=tenant) for path in READS]
    answers.append(await read.post(f"team-a/sessions?tenant={tenant}", json.dumps(FILE).encode()))
    assert {answer.status_code for answer in answers} == {404}
    assert {answer.json()["message"] for answer in answers} == {
        "namespace team-a is not there, or is not the one that it was"
    }
    assert list(await postgres.session_store().sessions(new)) == []
    assert (await read("team-a/sessions", tenant=new)).json() == {"items": []}


async def test_pages_of_sessions_and_entries(
    read: Reader, attempt: AttemptStore, session: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "SESSIONS", 2)
    monkeypatch.setattr(sessions, "ENTRIES", 2)
    others = [str((await with_turn(attempt))[0]) for _ in range(2)]
    first = [item["id"] for item in await read.items("team-a/sessions", limit=100)]
    assert first == others[::-1]
    assert [item["id"] for item in await read.items("team-a/sessions", before=first[-1])] == [str(session)]
    leaf = (await attempt.open_session(session)).leaf
    await attempt.append(session, leaf, [message(), message()])
    path = f"team-a/sessions/{session}/entries"
    assert [entry["seq"] for entry in await read.items(path)] == [1, 2]
    assert [entry["seq"] for entry in await read.items(path, after=2)] == [3]
    assert await read.items(path, after=3) == []


async def test_an_entry_that_needs_room_is_a_page_alone(read: Reader, attempt: AttemptStore, session: UUID) -> None:
    large = NewEntry(uuid4(), "message", {"content": "x" * 2_000_000})
    leaf = (await attempt.open_session(session)).leaf
    await attempt.append(session, leaf, [large, message()])
    path = f"team-a/sessions/{session}/entries"
    seen = [[entry["seq"] for entry in await read.items(path, after=after)] for after in range(3)]
    assert seen == [[1], [2], [3]]


BODIES = [
    (b"", 400, "the body is not a JSON object"),
    (b"[]", 400, "the body is not a JSON object"),
    (b"{}", 400, "`queue` must be a str"),
    (json.dumps(MESSAGE | {"queue": "later"}).encode(), 400, "`queue` cannot be read"),
    (json.dumps(MESSAGE | {"id": "7"}).encode(), 400, "`id` cannot be read"),
    (json.dumps(MESSAGE | {"message": "hi"}).encode(), 400, "`message` must be a dict"),
    (b"[" * 100_000, 400, "the body is not a JSON object"),
]


@pytest.mark.parametrize(("body", "status", "says"), BODIES)
async def test_a_body_that_is_no_message_is_refused(
    read: Reader, session: UUID, kube: FakeKube, body: bytes, status: int, says: str
) -> None:
    kube.grant("ann", "team-a", *WRITES)
    answer = await read.post(f"team-a/sessions/{session}/messages", body)
    assert (answer.status_code, says in answer.json()["message"]) == (status, True), answer.text


@pytest.mark.parametrize("right", WRITES)
async def test_no_body_is_larger_than_its_route_takes(
    read: Reader, session: UUID, kube: FakeKube, monkeypatch: pytest.MonkeyPatch, right: str
) -> None:
    kube.grant("ann", "team-a", *WRITES)
    monkeypatch.setattr(sessions, "SMALL", 100)
    monkeypatch.setattr(sessions, "LARGE", 200)
    limit = 100 if right.startswith("delete") else 200
    path = WRITES[right][0].format(session=session)
    for size, status in ((limit, 400), (limit + 1, 413)):
        assert (await read.post(path, b" " * size)).status_code == status


async def test_while_the_cluster_cannot_be_asked_nothing_is_said(
    read: Reader, session: UUID, attempt: AttemptStore, kube: FakeKube
) -> None:
    kube.grant("ann", "team-a", *WRITES)
    kube.away = True
    assert {(await write(read, right, session)).status_code for right in WRITES} == {503}
    assert list(await attempt.queued(session)) == []
