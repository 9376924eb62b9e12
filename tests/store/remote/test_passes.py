"""How a Pod gets its pass, keeps it good, and what it does where it gets none."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from pilothouse.records.runs import AttemptRef, RunRef
from pilothouse.store.errors import StoreUnavailable, StoreUnusable, Superseded
from pilothouse.store.remote import open_remote_store, passes
from tests.gateway.serving import CA
from tests.store.remote.doors import IDS, Door, door, problem

REF = AttemptRef(RunRef(UUID(int=1), UUID(int=2)), UUID(int=3), 4)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(passes, "time", clock)
    return clock


@pytest.fixture
async def at() -> AsyncIterator[Door]:
    async with door() as at:
        yield at


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    return write(tmp_path / "token", "projected-1\n")


def write(file: Path, text: str) -> Path:
    file.write_text(text)
    return file


async def test_the_gateway_says_which_attempt_it_is(at: Door, token_file: Path) -> None:
    async with open_remote_store(at.url, token_file, CA) as store:
        assert store.ref == REF
        await store.put_blob(b"x")
    assert at.asked == [("token", "projected-1"), ("put_blob", "attempt-1")]


async def test_a_pass_is_renewed_once_half_of_its_time_is_over_with_the_token_of_that_moment(
    at: Door, token_file: Path, clock: Clock
) -> None:
    async with open_remote_store(at.url, token_file, CA) as store:
        clock.now += 299
        await store.put_blob(b"x")
        write(token_file, "projected-2")  # as the kubelet does
        clock.now += 1
        await asyncio.gather(*(store.put_blob(b"x") for _ in range(5)))
    assert at.of("token") == ["projected-1", "projected-2"]
    assert at.of("put_blob") == ["attempt-1"] + ["attempt-2"] * 5


@pytest.mark.parametrize("status", [401, 403, 500, 503])
async def test_while_no_new_pass_can_be_had_the_old_one_goes_on_as_long_as_it_is_good(
    at: Door, token_file: Path, clock: Clock, status: int
) -> None:
    async with open_remote_store(at.url, token_file, CA) as store:
        at.answers["token"] = [problem(status, "KubeUnavailable"), problem(status, "KubeUnavailable")]
        clock.now += 300
        await store.put_blob(b"x")
        await store.put_blob(b"x")
        assert len(at.of("token")) == 2, "it is not asked for at every call"
        clock.now += 16
        await store.put_blob(b"x")
        assert at.of("put_blob") == ["attempt-1"] * 3
        clock.now += 16
        await store.put_blob(b"x")
        assert at.of("put_blob")[3:] == ["attempt-2"]


async def test_a_pass_that_is_over_is_not_used_again(at: Door, token_file: Path, clock: Clock) -> None:
    async with open_remote_store(at.url, token_file, CA) as store:
        clock.now += 600
        at.answers["token"] = [problem(503, "KubeUnavailable", "no API server")]
        with pytest.raises(StoreUnavailable, match="no API server"):
            await store.put_blob(b"x")
        assert at.of("put_blob") == []
        await store.put_blob(b"x")
        assert at.of("put_blob") == ["attempt-2"]


async def test_a_refused_pass_is_renewed_once_and_the_call_made_again(at: Door, token_file: Path) -> None:
    async with open_remote_store(at.url, token_file, CA) as store:
        at.refused.add("attempt-1")
        await store.put_blob(b"x")
        assert at.of("put_blob") == ["attempt-1", "attempt-2"]
        at.refused |= {"attempt-2", "attempt-3"}
        with pytest.raises(StoreUnavailable, match="refuses the token that it has just given"):
            await store.put_blob(b"x")
        assert at.of("put_blob") == ["attempt-1", "attempt-2", "attempt-2", "attempt-3"]


async def test_many_calls_with_a_refused_pass_renew_it_together(at: Door, token_file: Path) -> None:
    async with open_remote_store(at.url, token_file, CA) as store:
        at.refused.add("attempt-1")
        await asyncio.gather(*(store.put_blob(b"x") for _ in range(5)))
    assert len(at.of("token")) == 2


async def test_an_attempt_that_is_over_is_told_so_when_its_pass_is_renewed(
    at: Door, token_file: Path, clock: Clock
) -> None:
    async with open_remote_store(at.url, token_file, CA) as store:
        at.answers["token"] = [problem(403, "Superseded", "attempt 3 is not the open one")]
        clock.now += 300
        with pytest.raises(Superseded, match="attempt 3 is not the open one"):
            await store.put_blob(b"x")


async def test_a_pass_for_another_attempt_is_not_taken(at: Door, token_file: Path, clock: Clock) -> None:
    async with open_remote_store(at.url, token_file, CA) as store:
        at.attempt = {**IDS, "fence": 5}
        clock.now += 600
        with pytest.raises(StoreUnusable, match="another attempt than before"):
            await store.put_blob(b"x")
    assert at.of("put_blob") == []


@pytest.mark.parametrize(("status", "kind"), [(401, "Unauthenticated"), (403, "Forbidden")])
async def test_a_pod_that_is_not_admitted_is_told_so_at_once(
    at: Door, token_file: Path, status: int, kind: str
) -> None:
    at.answers["token"] = [problem(status, kind, "not here")]
    with pytest.raises(StoreUnusable, match=f"answered {status}: not here"):
        async with open_remote_store(at.url, token_file, CA):
            pytest.fail("admitted")


@pytest.mark.parametrize("text", ["", "two words", "line\nline", "n\u00e9"])
async def test_a_file_that_holds_no_token_is_named(at: Door, token_file: Path, text: str) -> None:
    write(token_file, text)
    with pytest.raises(StoreUnusable, match=f"{token_file} holds no token"):
        async with open_remote_store(at.url, token_file, CA):
            pytest.fail("opened")
    assert at.asked == []


async def test_a_file_that_is_not_there_is_named(at: Door, tmp_path: Path) -> None:
    token_file = tmp_path / "nothing"
    with pytest.raises(StoreUnusable, match=f"cannot be read from {token_file}"):
        async with open_remote_store(at.url, token_file, CA):
            pytest.fail("opened")


@pytest.mark.parametrize("status", [429, 502, 503])
async def test_a_gateway_that_cannot_serve_now_is_an_outage_of_opening_too(
    at: Door, token_file: Path, status: int
) -> None:
    at.answers["token"] = [problem(status)]
    with pytest.raises(StoreUnavailable):
        async with open_remote_store(at.url, token_file, CA):
            pytest.fail("opened")
