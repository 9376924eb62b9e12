"""`get`, `describe`, `logs` and `events` of a cluster: the same as of this machine, and every way it can fail."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from pilothouse.records.events import EventType, NewEvent
from pilothouse.records.runs import NewStep, Run, StepId
from pilothouse.records.sessions import NewEntry, named_session
from pilothouse.records.states import AttemptState, RunState, StepState
from pilothouse.store.postgres import PostgresRunStore
from pilothouse.store.transitions import AttemptClosing, RunClosing, StepChange, Transition
from pilothouse.workflows.commands import frames
from pilothouse_operator.names import pod_name
from tests.cli.cluster import Cluster, cluster_on
from tests.cli.command import Result
from tests.gateway.read.runs import begun_run, full_run, tell
from tests.store.fixtures import database, postgres, server_dsn
from tests.store.samples import BUILD, RUNNING, TEST, open_attempt, start

__all__ = ["database", "postgres", "server_dsn"]


@pytest.fixture
async def cluster(database: str, postgres: PostgresRunStore, tmp_path: Path) -> AsyncIterator[Cluster]:
    async with cluster_on(database, postgres, tmp_path, certificates=False) as cluster:
        yield cluster


def ageless(result: Result) -> str:
    """What was printed, without the column AGE, which goes on meanwhile, and its width."""
    assert result.status == 0, result.err
    return re.sub(r"(\d/\d) \S+", r"\1", re.sub(" +", " ", result.out))


COMMANDS = [
    ("get",),
    ("get", "-o", "json"),
    ("get", "nightly"),
    ("get", "nightly", "-o", "yaml"),
    ("describe", "nightly/1"),
    ("events", "nightly", "-o", "json"),
    ("logs", "nightly"),
    ("logs", "nightly", "build"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
async def test_a_cluster_is_read_as_this_machine_is(cluster: Cluster, command: tuple[str, ...]) -> None:
    await full_run(cluster.store, cluster.tenant)
    assert ageless(await cluster.cli(*command)) == ageless(await cluster.here(*command)) != ""


async def test_logs_of_steps_are_read_when_their_pods_are_gone(cluster: Cluster) -> None:
    await full_run(cluster.store, cluster.tenant, ("hello\x1b[2J", "second"))
    assert (await cluster.cli("logs", "nightly")).out.splitlines() == [
        "[build] one",
        "[build] two",
        "[test] user: hello\\x1b[2J",
        "[test] user: second",
    ]


async def test_runs_of_a_cluster_are_found_by_name_number_and_id(cluster: Cluster) -> None:
    ids = [str((await begun_run(cluster.store, cluster.tenant)).ref.run) for _ in range(3)]
    names = ("nightly", "nightly/1", ids[1], ids[1][:13])
    found = [(await cluster.cli("get", name, "-o", "json")).data["run"]["number"] for name in names]
    assert found == [3, 1, 2, 2]


@pytest.mark.parametrize(
    "missing",
    ["nope", "nightly/7", "nightly/x", "Not A Name", "0190abcd-1234", "01a22d9e-1f67-7403-bb42-07e1ad37ee4b/1"],
)
async def test_a_run_that_a_cluster_does_not_have_is_said_as_here(cluster: Cluster, missing: str) -> None:
    await begun_run(cluster.store, cluster.tenant)
    result = await cluster.cli("get", missing)
    says = f"there is no run `{missing}` in namespace team-a; see `pilothouse get`"
    assert (result.status, result.out, result.err) == (2, "", f"pilothouse: {says}\n")


async def test_an_id_s_beginning_that_several_runs_have_is_not_enough(cluster: Cluster) -> None:
    for tail in (1, 2):
        await begun_run(cluster.store, cluster.tenant, run=UUID(int=(0x0190ABCD << 96) + tail))
    result = await cluster.cli("get", "0190abcd")
    assert result.err == "pilothouse: several runs have an id that begins with 0190abcd: nightly/2, nightly/1\n"


async def test_an_id_needs_no_right_to_list_and_no_namespace_is_taken_for_another(cluster: Cluster) -> None:
    run = await begun_run(cluster.store, cluster.tenant)
    cluster.kube.grants.discard("ann list workflows team-a")
    assert (await cluster.cli("get", str(run.ref.run))).status == 0
    refused = await cluster.cli("get")
    assert "ann may not list workflows.pilothouse.dev in namespace team-a" in refused.err
    other = await cluster.cli("get", "nightly", "-n", "team-b")
    assert "ann may not get workflows.pilothouse.dev/nightly in namespace team-b" in other.err


async def test_a_session_that_runs_share_is_in_the_logs_of_each_with_its_own_part(cluster: Cluster) -> None:
    session, leaf = named_session(cluster.tenant, "notes"), None
    for text in ("one", "two"):
        run = (await begun_run(cluster.store, cluster.tenant)).ref
        attempt = cluster.store.attempt_store(await open_attempt(cluster.store, run, TEST))
        await attempt.open_session(session, "notes")
        said = {"role": "user", "content": [{"type": "text", "text": text}]}
        [entry] = await attempt.append(session, leaf, [NewEntry(uuid4(), "message", {"message": said})])
        leaf = entry.id
        await attempt.finish(AttemptState.SUCCEEDED)
    for number, text in ((1, "one"), (2, "two")):
        shown = (await cluster.cli("logs", f"nightly/{number}")).out
        assert shown.splitlines() == [f"[test] user: {text}"]
        assert (await cluster.here("logs", f"nightly/{number}")).out == shown


async def test_more_than_one_page_is_read_whole(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for constant in ("STEPS", "ATTEMPTS", "EVENTS", "SESSIONS", "ENTRIES"):
        monkeypatch.setattr(f"pilothouse.gateway.read.routes.{constant}", 2)
    made = await full_run(cluster.store, cluster.tenant, tuple("abcde"))
    assert [line[-1] for line in (await cluster.cli("logs", "nightly", "test")).out.splitlines()] == list("abcde")
    steps = [NewStep(StepId("s", index), "transform") for index in range(5)]
    many = await begun_run(cluster.store, cluster.tenant, steps=steps)
    await tell(cluster.store, many.ref, 5)
    assert len((await cluster.cli("get", "nightly/2", "-o", "json")).data["steps"]) == 5
    assert len((await cluster.cli("events", "nightly/2")).out.splitlines()) == 6
    assert made.run != many.ref


async def running(
    cluster: Cluster,
) -> tuple[Run, Callable[[bytes], None], Callable[[bytes | None], Awaitable[None]]]:
    """A run whose step `build` runs in a Pod; what the Pod prints, and how the run ends."""
    run = await begun_run(cluster.store, cluster.tenant, steps=[NewStep(BUILD, "runCommand")])
    ref = await open_attempt(cluster.store, run.ref)
    started = Transition(steps=[start()], events=[NewEvent(EventType.STEP_STARTED, BUILD)])
    await cluster.store.commit(run.ref, 1, started)
    [attempt] = await cluster.store.attempts(run.ref)
    pod = f"team-a/{pod_name(run.workflow, attempt)}"

    def printed(log: bytes) -> None:
        cluster.server.pods[pod] = log

    async def end(log: bytes | None) -> None:
        kept = None if log is None else await cluster.store.put_blob(cluster.tenant, log)
        closing = AttemptClosing(ref.attempt, ref.fence, AttemptState.SUCCEEDED, log=kept)
        steps = [StepChange(BUILD, RUNNING, StepState.SUCCEEDED)]
        told = [NewEvent(EventType.STEP_SUCCEEDED, BUILD), NewEvent(EventType.RUN_SUCCEEDED)]
        over = Transition(steps=steps, closings=[closing], run=RunClosing(RunState.SUCCEEDED), events=told)
        await cluster.store.commit(run.ref, 1, over)
        cluster.server.pods.clear()

    return run, printed, end


FRAMED = [
    frames.encode("start", {"pid": 1, "at": 1.0}),
    frames.encode("out", "one\ntw"),
    frames.encode("out", "o\nthree"),
]
PLAIN = [b"", b"one\ntw", b"o\nthree"]


@pytest.mark.parametrize("pieces", [FRAMED, PLAIN], ids=["our image", "a user's image"])
async def test_logs_follow_a_pod_and_go_on_in_what_is_kept(cluster: Cluster, pieces: list[bytes]) -> None:
    _, printed, end = await running(cluster)
    printed(b"".join(pieces[:2]))
    async with cluster.cli.begun("logs", "-f", "nightly") as logs:
        assert await logs.until_out("one") == "[build] one\n"
        await end(b"".join(pieces))
        rest = await logs.end()
    assert (rest.status, rest.out, rest.err) == (0, "[build] two\n[build] three\n", "")


async def test_events_are_followed_to_the_end_through_outages(cluster: Cluster) -> None:
    run, _, end = await running(cluster)
    gateway, cluster.server.gateway = cluster.server.gateway, None
    away = await cluster.cli("events", "-f", "nightly")
    assert (away.status, away.out) == (2, "")
    assert "no endpoints available for service" in away.err
    cluster.server.gateway = gateway
    async with cluster.cli.begun("events", "-f", "nightly") as events:
        await events.until_out("StepStarted")
        cluster.server.gateway = None
        await tell(cluster.store, run.ref)
        seen = len(cluster.server.seen)
        cluster.server.gateway = gateway
        assert (await events.until_out("ToolStarted")).count("\n") == 1
        cluster.kube.away = True
        await tell(cluster.store, run.ref)
        cluster.kube.away = False
        await end(None)
        rest = await events.end()
    assert [line.split()[2] for line in rest.out.splitlines()] == ["ToolStarted", "StepSucceeded", "RunSucceeded"]
    assert seen < len(cluster.server.seen)
