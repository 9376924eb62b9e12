"""Waiting for a run: woken by what happens, bounded in time and number, and never deaf to what came before."""

import asyncio
from uuid import UUID

import pytest

from pilothouse.gateway.read import routes
from pilothouse.store.postgres import PostgresRunStore
from tests.gateway.doubles import ANN, FakeKube
from tests.gateway.read.conftest import Reader
from tests.gateway.read.runs import begun_run, tell


async def test_a_wait_ends_with_the_next_event(read: Reader, postgres: PostgresRunStore, tenant: UUID) -> None:
    run = await begun_run(postgres, tenant)
    path = f"team-a/runs/{run.ref.run}"
    seq = (await read(f"{path}/changes")).json()["seq"]
    for count in (1, 3):
        waiting = asyncio.create_task(read(f"{path}/changes", since=seq, wait=20))
        await tell(postgres, run.ref, count)
        found = (await waiting).json()["seq"]
        assert found == seq + count
        assert [event["seq"] for event in await read.items(f"{path}/events", after=seq)] == [*range(seq + 1, found + 1)]
        seq = found


async def test_what_happened_before_the_wait_ends_it_at_once(
    read: Reader, postgres: PostgresRunStore, tenant: UUID
) -> None:
    run = await begun_run(postgres, tenant)
    await tell(postgres, run.ref, 2)
    assert (await read(f"team-a/runs/{run.ref.run}/changes", since=1, wait=20)).json() == {"seq": 3}


async def test_a_wait_in_vain_ends_and_tells_that_nothing_came(
    read: Reader, postgres: PostgresRunStore, tenant: UUID
) -> None:
    run = await begun_run(postgres, tenant)
    assert (await read(f"team-a/runs/{run.ref.run}/changes", since=1, wait=0)).json() == {"seq": 1}
    assert (await read(f"team-a/runs/{run.ref.run}/changes", since=1, wait=1)).json() == {"seq": 1}


async def test_more_who_wait_than_there_is_room_for_are_sent_away(
    read: Reader, postgres: PostgresRunStore, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "WAITERS", 1)
    run = await begun_run(postgres, tenant)
    path = f"team-a/runs/{run.ref.run}/changes"
    waiting = [asyncio.create_task(read(path, since=1, wait=20)) for _ in range(2)]
    done, [other] = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert [task.result().status_code for task in done] == [503]
    await tell(postgres, run.ref)
    assert (await other).json() == {"seq": 2}
    assert (await read(path, since=1, wait=20)).json() == {"seq": 2}


async def test_a_right_that_was_taken_away_ends_the_next_wait(
    read: Reader, postgres: PostgresRunStore, tenant: UUID, kube: FakeKube
) -> None:
    run = await begun_run(postgres, tenant)
    path = f"team-a/runs/{run.ref.run}/changes"
    assert (await read(path, ANN)).status_code == 200
    kube.grants.clear()
    assert (await read(path, ANN, since=1, wait=20)).status_code == 403
