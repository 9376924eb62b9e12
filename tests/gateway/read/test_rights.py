"""Who may read: the caller's own token, his rights today, and the namespace as it is today."""

from collections.abc import Mapping
from uuid import uuid4

import pytest

from pilothouse.gateway.kubeapi import Identity
from pilothouse.store.postgres import PostgresRunStore
from tests.gateway.doubles import ANN, BOB, FakeKube
from tests.gateway.read.conftest import READER, Reader
from tests.gateway.read.runs import Made, full_run

PARTS = ("", "/attempts", "/events", "/changes", "/outputs/large", "/sessions")
LOG_PARTS = ("/attempts/{command}/log", "/sessions", "/sessions/{session}/entries")


def paths(made: Made, namespace: str = "team-a") -> list[str]:
    """Every path that shows something of the run."""
    parts = sorted({*PARTS, *LOG_PARTS})
    return [
        f"{namespace}/runs/{made.run.run}" + part.format(command=made.command, session=made.session) for part in parts
    ]


@pytest.fixture
async def made(postgres: PostgresRunStore, kube: FakeKube) -> Made:
    """Ann's run."""
    return await full_run(postgres, kube.namespaces["team-a"])


async def statuses(read: Reader, made: Made, token: str = ANN, namespace: str = "team-a") -> set[int]:
    return {(await read(path, token)).status_code for path in paths(made, namespace)}


async def test_who_has_the_rights_reads_all_and_who_has_none_nothing(read: Reader, made: Made) -> None:
    assert await statuses(read, made) == {200}
    assert await statuses(read, made, BOB) == {403}
    assert (await read("team-a/runs", BOB)).status_code == 403


LONG = "x" * 20_000

HEADERS = [
    ({}, 401),
    ({"X-Pilothouse-Token": ""}, 401),
    ({"X-Pilothouse-Token": "unknown"}, 401),
    ({"X-Pilothouse-Token": LONG}, 401),
    ({"Authorization": "Basic YW5uOng="}, 401),
    ({"Authorization": "Bearer"}, 401),
    ({"Authorization": f"Bearer {ANN}", "X-Pilothouse-Token": BOB}, 401),
    ({"Authorization": f"Bearer {BOB}", "X-Pilothouse-Token": ANN}, 401),
    ({"Authorization": "Basic YW5uOng=", "X-Pilothouse-Token": ANN}, 401),
    ({"Authorization": f"Bearer {ANN}"}, 200),
    ({"X-Pilothouse-Token": ANN}, 200),
    ({"Authorization": f"Bearer {ANN}", "X-Pilothouse-Token": ANN}, 200),
]


@pytest.mark.parametrize(("headers", "status"), HEADERS)
async def test_a_request_bears_one_token_in_either_header(
    read: Reader, made: Made, kube: FakeKube, headers: Mapping[str, str], status: int
) -> None:
    kube.tokens[LONG, None] = kube.tokens[ANN, None]
    for path in ("team-a/runs", *paths(made)):
        answer = await read.http.get(f"/read/v1/namespaces/{path}", headers=headers)
        assert answer.status_code == status
        assert answer.headers["cache-control"] == "no-store"


async def test_a_token_for_another_audience_is_nobody_s(read: Reader, made: Made, kube: FakeKube) -> None:
    """The tokens that Pods have for the store API: the API server knows them, but not for itself."""

    async def review(token: str, audience: str | None = None) -> Identity:
        asked.append(audience)
        return await FakeKube.review(kube, token, audience)

    asked: list[str | None] = []
    kube.review = review  # type: ignore[method-assign]
    assert await statuses(read, made) == {200}
    assert set(asked) == {None}


@pytest.mark.parametrize("right", READER)
async def test_each_right_is_asked_for_where_it_counts(read: Reader, made: Made, kube: FakeKube, right: str) -> None:
    kube.grants.remove(f"ann {right} team-a")
    refused = {
        path.removeprefix(f"team-a/runs/{made.run.run}")
        for path in ("team-a/runs", *paths(made))
        if (await read(path)).status_code == 403
    }
    every = {path.removeprefix(f"team-a/runs/{made.run.run}") for path in paths(made)}
    logs = {part.format(command=made.command, session=made.session) for part in LOG_PARTS}
    assert refused == {"get workflows": every, "list workflows": {"team-a/runs"}, "get pods/log": logs}[right]


async def test_a_right_to_one_workflow_is_good_for_its_runs_alone(
    read: Reader, made: Made, postgres: PostgresRunStore, kube: FakeKube
) -> None:
    other = await full_run(postgres, made.run.tenant, workflow="other")
    kube.grant("bob", "team-a", "get workflows nightly", "get pods/log")
    assert await statuses(read, made, BOB) == {200}
    assert [
        item["run"]["workflow"] for item in (await read("team-a/runs", BOB, workflow="nightly")).json()["items"]
    ] == ["nightly"]
    forbidden = [await read("team-a/runs", BOB, workflow="other"), await read("team-a/runs", BOB)]
    assert {answer.status_code for answer in forbidden} == {403}
    assert await statuses(read, other, BOB) == {403}


async def test_who_may_not_read_a_run_cannot_tell_whether_it_is_there(read: Reader, made: Made, kube: FakeKube) -> None:
    kube.grant("bob", "team-a", "get workflows another")
    there = await read(f"team-a/runs/{made.run.run}", BOB)
    missing = await read(f"team-a/runs/{uuid4()}", BOB)
    assert (there.status_code, there.content) == (missing.status_code, missing.content) == (403, there.content)
    assert "nightly" not in there.text
    for namespace in ("team-a", "no-such-namespace"):
        assert (await read(f"{namespace}/runs", BOB)).status_code == 403


async def test_what_is_missing_is_said_with_how_to_ask(read: Reader, made: Made, kube: FakeKube) -> None:
    kube.grants.clear()
    refused = [await read("team-a/runs"), await read("team-a/runs", workflow="w")]
    assert [answer.json() for answer in refused] == [
        {"type": "Forbidden", "message": lacking("list workflows.pilothouse.dev")},
        {"type": "Forbidden", "message": lacking("get workflows.pilothouse.dev/w")},
    ]
    kube.grant("ann", "team-a", "get workflows")
    answer = await read(f"team-a/runs/{made.run.run}/attempts/{made.command}/log")
    assert answer.json()["message"] == lacking("get pods/log", "get pods --subresource=log")


def lacking(right: str, asked: str = "") -> str:
    can_i = f"kubectl auth can-i {asked or right} -n team-a"
    return f"ann may not {right} in namespace team-a; `{can_i}` tells the same"


async def test_a_namespace_s_runs_are_not_read_through_another(read: Reader, made: Made, kube: FakeKube) -> None:
    kube.create_namespace("team-b")
    kube.grant("bob", "team-b", *READER)
    kube.grant("ann", "team-b", *READER)
    for token in (ANN, BOB):
        assert await statuses(read, made, token, "team-b") == {404}
        assert (await read("team-b/runs", token)).json() == {"items": []}
        assert (await read("team-b/runs", token, id=str(made.run.run))).json() == {"items": []}


async def test_a_namespace_made_anew_does_not_show_what_its_forerunner_ran(
    read: Reader, made: Made, postgres: PostgresRunStore, kube: FakeKube
) -> None:
    del kube.namespaces["team-a"]
    assert await statuses(read, made) == {404}
    assert await read.items("team-a/runs") == []
    new = await full_run(postgres, kube.create_namespace("team-a"))
    assert await statuses(read, made) == {404}
    assert await statuses(read, new) == {200}
    assert [item["run"]["id"] for item in await read.items("team-a/runs")] == [str(new.run.run)]


async def test_a_row_of_the_tenant_that_names_another_namespace_is_not_read(
    read: Reader, postgres: PostgresRunStore, kube: FakeKube
) -> None:
    made = await full_run(postgres, kube.namespaces["team-a"], namespace="elsewhere")
    assert await statuses(read, made) == {404}
    assert await read.items("team-a/runs") == []


async def test_while_the_cluster_cannot_be_asked_nothing_is_read(read: Reader, made: Made, kube: FakeKube) -> None:
    kube.away = True
    assert await statuses(read, made) == {503}
    assert (await read("team-a/runs")).json()["type"] == "KubeUnavailable"
    kube.away = False
    assert await statuses(read, made) == {200}
