"""What comes of a gateway is judged before it is believed, and a change is heard of when it happens."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from pilothouse.cli.access import Answer, Target, open_access
from pilothouse.cli.command import CommandError
from pilothouse.cli.questions import Questions
from pilothouse.cli.remote import RemoteRuns
from pilothouse.records.runs import Attempt, Run, RunRef
from pilothouse.records.values import BlobRef, ValueRefused
from pilothouse.store.errors import Conflict, InvalidState, NotFound, StoreUnavailable, StoreUnusable
from pilothouse.store.postgres import PostgresRunStore
from tests.cli.cluster import Cluster, cluster_on
from tests.gateway.read.runs import begun_run, full_run, tell
from tests.store.fixtures import database, postgres, server_dsn
from tests.store.samples import message, open_attempt

__all__ = ["database", "postgres", "server_dsn"]

RUN = RunRef(UUID(int=1), UUID(int=2))


@pytest.fixture
async def cluster(database: str, postgres: PostgresRunStore, tmp_path: Path) -> AsyncIterator[Cluster]:
    async with cluster_on(database, postgres, tmp_path, certificates=False) as cluster:
        yield cluster


@pytest.fixture
async def runs(cluster: Cluster) -> AsyncIterator[RemoteRuns]:
    async with open_access(Target(kubeconfig=Path(cluster.kubeconfig()))) as access:
        yield RemoteRuns(Questions(access), access.namespace)


@dataclass
class Canned:
    """An Access whose gateway always answers the same."""

    answer: Answer
    namespace: str = "team-a"
    asked: list[str] = field(default_factory=list)

    async def get(self, path: str, query: Mapping[str, str]) -> Answer:
        self.asked.append(path)
        return self.answer

    async def post(self, path: str, query: Mapping[str, str], body: bytes) -> Answer:
        return await self.get(path, query)

    async def output(self, run: Run, attempt: Attempt) -> bytes:
        return b""


async def test_a_change_is_heard_of_when_it_happens(cluster: Cluster, runs: RemoteRuns) -> None:
    run = (await begun_run(cluster.store, cluster.tenant)).ref
    async with runs.changes(run) as changes:
        waiting = asyncio.ensure_future(anext(changes))
        for _ in range(3):
            await tell(cluster.store, run)
            await waiting
            waiting = asyncio.ensure_future(anext(changes))
        waiting.cancel()


async def test_a_change_between_two_looks_is_heard_of(cluster: Cluster, runs: RemoteRuns) -> None:
    run = (await begun_run(cluster.store, cluster.tenant)).ref
    async with runs.changes(run) as changes:
        await tell(cluster.store, run)
        await anext(changes)


async def test_a_conversation_that_grows_is_read_on_and_not_twice(cluster: Cluster, runs: RemoteRuns) -> None:
    run = (await begun_run(cluster.store, cluster.tenant)).ref
    attempt, session, leaf = cluster.store.attempt_store(await open_attempt(cluster.store, run)), uuid4(), None
    await attempt.open_session(session)
    for _ in range(3):
        entries = [message("one"), message("two")]
        await attempt.append(session, leaf, entries)
        leaf = entries[-1].id
        assert await runs.sessions(run) == await cluster.store.sessions(run)
    assert len((await runs.sessions(run))[0].entries) == 6


async def test_a_blob_is_had_by_what_refers_to_it_alone(cluster: Cluster, runs: RemoteRuns) -> None:
    made = await full_run(cluster.store, cluster.tenant)
    with pytest.raises(NotFound, match="no run that was read refers to sha256:"):
        await runs.get_blob(cluster.tenant, made.log)
    await runs.attempts(made.run)
    assert await runs.get_blob(cluster.tenant, made.log) == await cluster.store.get_blob(cluster.tenant, made.log)


async def test_a_blob_that_arrives_changed_is_not_believed() -> None:
    questions = Questions(Canned(Answer(200, b"damaged")))
    with pytest.raises(StoreUnavailable, match="arrived damaged or cut short"):
        await questions.blob("x", "sha256:" + "0" * 64)
    ref = BlobRef("sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae", 3)
    assert await Questions(Canned(Answer(200, b"foo"))).blob("x", ref.digest) == b"foo"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b'{"items": [{}]}', b"[" * 100_000, b'{"items": 7}'])
async def test_an_answer_that_means_nothing_is_no_answer(body: bytes) -> None:
    runs = RemoteRuns(Questions(Canned(Answer(200, body))), "team-a")
    with pytest.raises(StoreUnusable, match="none that this version understands"):
        await runs.lines()


REFUSALS = [
    (404, "NotFound", NotFound, "why"),
    (409, "Conflict", Conflict, "why"),
    (409, "InvalidState", InvalidState, "why"),
    (422, "ValueRefused", ValueRefused, "why"),
    (401, "Unauthenticated", CommandError, "the gateway does not accept the token"),
    (403, "Forbidden", CommandError, "why"),
    (400, "BadRequest", CommandError, "why"),
    (404, "NoSuchRoute", CommandError, "the gateway is of another version"),
    (503, "StoreUnavailable", StoreUnavailable, "the gateway cannot serve now: why"),
    (503, "SomethingNew", StoreUnavailable, "the gateway cannot serve now: why"),
    (500, "InternalError", StoreUnavailable, "the gateway cannot serve now: why"),
]


@pytest.mark.parametrize(("status", "kind", "error", "says"), REFUSALS)
async def test_a_refusal_is_raised_as_what_it_means(status: int, kind: str, error: type[Exception], says: str) -> None:
    body = f'{{"type": "{kind}", "message": "why"}}'.encode()
    with pytest.raises(error, match=says):
        await RemoteRuns(Questions(Canned(Answer(status, body))), "team-a").attempts(RUN)
