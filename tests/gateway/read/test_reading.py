"""What the read API gives of a run: all that people read of one, in pages, and nothing else."""

import hashlib
import json
from uuid import UUID, uuid4

import pytest

from pilothouse.gateway import long
from pilothouse.gateway.read import routes, wire
from pilothouse.records.runs import NewStep, StepId
from pilothouse.store.history import RunHistory
from pilothouse.store.postgres import PostgresRunStore
from tests.gateway.doubles import ANN, FakeKube
from tests.gateway.read.conftest import Reader
from tests.gateway.read.runs import LARGE, LOG, SECRETIVE, begun_run, full_run, tell
from tests.store.samples import everything, open_attempt


async def test_a_run_is_read_as_it_is_recorded(read: Reader, postgres: PostgresRunStore, tenant: UUID) -> None:
    made = await full_run(postgres, tenant)
    path, recorded = f"team-a/runs/{made.run.run}", await everything(postgres, made.run)
    body = (await read(path)).json()
    run, steps = wire.run_from_json(body["run"]), [wire.step_from_json(step) for step in body["items"]]
    snapshot = await postgres.snapshot(made.run)
    assert (run.ref, run.params, run.outputs) == (made.run, snapshot.run.params, snapshot.run.outputs)
    assert (run.failure, run.event_seq, run.finished_at) == (
        snapshot.run.failure,
        snapshot.run.event_seq,
        snapshot.run.finished_at,
    )
    shown = [(step.id, step.state, step.failure, step.finished_at) for step in snapshot.steps.values()]
    assert [(step.id, step.state, step.failure, step.finished_at) for step in steps] == shown
    attempts = [wire.attempt_from_json(made.run, item) for item in await read.items(f"{path}/attempts")]
    assert [(a.ref, a.state, a.log) for a in attempts] == [
        (a.ref, a.state, a.log) for a in await postgres.attempts(made.run)
    ]
    events = [wire.event_from_json(made.run, item) for item in await read.items(f"{path}/events")]
    assert events == recorded.events
    [session] = [wire.session_from_json(item) for item in await read.items(f"{path}/sessions")]
    entries = [wire.entry_from_json(item) for item in await read.items(f"{path}/sessions/{session.id}/entries")]
    [whole] = await postgres.sessions(made.run)
    assert (session.leaf, session.entries, tuple(entries)) == (whole.leaf, len(whole.entries), whole.entries)


async def test_what_a_reader_of_runs_is_not_shown_is_in_no_answer(
    read: Reader, postgres: PostgresRunStore, tenant: UUID
) -> None:
    made = await full_run(postgres, tenant)
    path = f"team-a/runs/{made.run.run}"
    told = [(await read(f"{path}{part}")).text for part in ("", "/attempts", "/events", "/sessions")]
    told.append((await read("team-a/runs")).text)
    assert SECRETIVE in json.dumps((await postgres.snapshot(made.run)).run.closure)
    assert not [text for text in told if SECRETIVE in text or "a step's output" in text]


async def test_a_log_and_a_large_output_come_as_the_bytes_that_were_kept(
    read: Reader, postgres: PostgresRunStore, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pilothouse.gateway.read.blobs.PIECE", 7_000)
    made = await full_run(postgres, tenant)
    path = f"team-a/runs/{made.run.run}"
    log = await read(f"{path}/attempts/{made.command}/log")
    assert (log.content, log.headers["content-type"]) == (LOG, "application/octet-stream")
    assert log.headers["x-content-type-options"] == "nosniff"
    output = await read(f"{path}/outputs/large")
    ref = (await read(path)).json()["run"]["outputs"]["large"]
    assert output.json() == LARGE
    assert ref == {"blob": "sha256:" + hashlib.sha256(output.content).hexdigest(), "size": len(output.content)}
    for nothing in (f"{path}/outputs/small", f"{path}/outputs/none", f"{path}/attempts/{made.agent}/log"):
        assert (await read(nothing)).status_code == 404


async def test_a_blob_that_the_run_does_not_refer_to_is_not_served(
    read: Reader, postgres: PostgresRunStore, tenant: UUID
) -> None:
    made, other = await full_run(postgres, tenant), await full_run(postgres, tenant, workflow="other")
    secret = await postgres.put_blob(tenant, b"of this tenant, but of no run")
    path = f"team-a/runs/{made.run.run}"
    for name in (secret.digest, made.log):
        assert (await read(f"{path}/outputs/{name}")).status_code == 404
    for attempt in (other.command, uuid4()):
        assert (await read(f"{path}/attempts/{attempt}/log")).status_code == 404
    assert await read.items(f"{path}/sessions/{other.session}/entries") == []


async def test_runs_are_listed_newest_first_page_by_page(
    read: Reader, postgres: PostgresRunStore, tenant: UUID
) -> None:
    made = [await begun_run(postgres, tenant, workflow=name) for name in ("a", "b", "a", "b", "a")]
    await full_run(postgres, tenant, workflow="c")
    lines = [wire.line_from_json(item) for item in await read.items("team-a/runs")]
    assert [f"{line.run.workflow}/{line.run.number}" for line in lines] == ["c/1", "a/3", "b/2", "a/2", "b/1", "a/1"]
    assert [(line.settled, line.steps) for line in lines] == [(2, 2), *[(0, 2)] * 5]
    paged: list[str] = []
    before: dict[str, str] = {}
    while page := await read.items("team-a/runs", limit=4, **before):
        paged += [item["run"]["id"] for item in page]
        before = {"before": paged[-1]}
    assert paged == [str(line.run.ref.run) for line in lines]
    assert [item["run"]["number"] for item in await read.items("team-a/runs", workflow="a", limit=1)] == [3]
    [second] = await read.items("team-a/runs", workflow="a", number=2)
    assert second["run"]["id"] == str(made[2].ref.run)
    for beginning in (str(made[1].ref.run)[:11], str(made[1].ref.run).upper()):
        assert [item["run"]["number"] for item in await read.items("team-a/runs", id=beginning, workflow="b")] == [1]


@pytest.mark.parametrize(
    ("constant", "part", "count"), [("STEPS", "", 7), ("EVENTS", "/events", 8), ("ATTEMPTS", "/attempts", 2)]
)
async def test_a_list_that_grows_comes_in_pages(
    read: Reader,
    postgres: PostgresRunStore,
    tenant: UUID,
    monkeypatch: pytest.MonkeyPatch,
    constant: str,
    part: str,
    count: int,
) -> None:
    monkeypatch.setattr(routes, constant, 3)
    steps = [NewStep(StepId("s", index), "runCommand") for index in range(7)]
    run = await begun_run(postgres, tenant, steps=steps)
    await tell(postgres, run.ref, 7)
    for step in steps[:2]:
        await open_attempt(postgres, run.ref, step.id)
    found: list[object] = []
    while page := await read.items(f"team-a/runs/{run.ref.run}{part}", after=len(found)):
        assert len(page) <= 3
        found += page
    assert len(found) == len({json.dumps(item) for item in found}) == count
    assert len(await read.items(f"team-a/runs/{run.ref.run}{part}", limit=1_000)) == min(3, count)


async def test_entries_come_in_pages_of_a_bounded_size_and_a_large_one_alone(
    read: Reader, postgres: PostgresRunStore, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long, "FREE", 1_000)
    monkeypatch.setattr(routes, "ENTRIES", 3)
    made = await full_run(postgres, tenant, ("a" * 400, "b" * 400, "c" * 5_000, *"defgh"))
    path, after, pages = f"team-a/runs/{made.run.run}/sessions/{made.session}/entries", 0, []
    while page := await read.items(path, after=after):
        pages.append(len(page))
        after = page[-1]["seq"]
    assert pages == [2, 1, 3, 2]


BAD = [
    ("Team_A/runs", {}, "a namespace is at most 63 lower-case letters, digits and -"),
    ("team-a/runs", {"limit": "-1"}, "`limit` is no number from 0 to 2147483647"),
    ("team-a/runs", {"limit": "9" * 30}, "`limit` is no number from 0 to 2147483647"),
    ("team-a/runs", {"number": "٣"}, "`number` is no number from 0 to 2147483647"),
    ("team-a/runs", {"before": "x"}, "`before` is no id"),
    ("team-a/runs", {"id": "%"}, "`id` is the beginning of a run's id"),
    ("team-a/runs", {"workflow": "a/b"}, "`workflow` is no name that a Workflow can have"),
]


@pytest.mark.parametrize(("path", "query", "says"), BAD)
async def test_a_question_that_means_nothing_is_refused(
    read: Reader, path: str, query: dict[str, str], says: str
) -> None:
    answer = await read(path, **query)
    assert (answer.status_code, answer.json()["message"]) == (400, says)


async def test_reading_changes_nothing_and_nothing_but_reading_is_served(
    read: Reader, history: RunHistory, postgres: PostgresRunStore, tenant: UUID, kube: FakeKube
) -> None:
    made = await full_run(postgres, tenant)
    path = f"/read/v1/namespaces/team-a/runs/{made.run.run}"
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        answer = await read.http.request(method, path, headers={"Authorization": f"Bearer {ANN}"})
        assert answer.status_code == 405
