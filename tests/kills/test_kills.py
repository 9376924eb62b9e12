"""Kill -9 at the recorded transitions of a run: it ends right, and no side effect happens twice."""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from pilothouse.store.postgres import migrate
from tests.kills.trial import Kill, Outcome, points, trial
from tests.store.fixtures import in_database, run_sql

AT_ONCE = 4

WRITES = 34
"""Writes of a run that is not killed."""

FIXED = [Kill(1 + index % WRITES, ("before", "after")[(index + index // WRITES) % 2]) for index in range(40)]
"""Every write once, and the first ones at their other moment as well."""


@pytest.mark.feature("B44")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("share", range(10))
async def test_a_run_that_is_killed_at_a_write_is_resumed_and_ends_right(
    server_dsn: str, tmp_path: Path, share: int, capsys: pytest.CaptureFixture[str]
) -> None:
    kills = [[FIXED[share * AT_ONCE + index]] for index in range(AT_ONCE)]
    await _expect_right(await _trials(server_dsn, tmp_path, kills), capsys)


@pytest.mark.soak
async def test_hundreds_of_kills_lose_and_repeat_nothing(
    server_dsn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(20260101)  # noqa: S311 - a fixed seed, so that the same kills happen again
    count = len(await _points(server_dsn, tmp_path))
    assert count == WRITES
    kills = [_chain(chance, count) for _ in range(500)]
    await _expect_right(await _trials(server_dsn, tmp_path, kills), capsys)


def _chain(chance: random.Random, count: int) -> list[Kill]:
    """One kill, or a kill and then another one while the run is resumed."""
    number = chance.choice((1, 1, 2))
    return [Kill(chance.randint(1, count), chance.choice(("before", "after"))) for _ in range(number)]


async def _expect_right(outcomes: Sequence[Outcome], capsys: pytest.CaptureFixture[str]) -> None:
    wrong = [f"{[*map(str, outcome.kills)]}: {outcome.problem()}" for outcome in outcomes if outcome.problem()]
    struck = sum(outcome.struck for outcome in outcomes)
    unknown = sum(bool(outcome.unknown) for outcome in outcomes)
    with capsys.disabled():
        print(f"\nkills {struck}, runs {len(outcomes)}, said OutcomeUnknown {unknown}, wrong {len(wrong)}")  # noqa: T201
    assert wrong == []
    assert struck > 0


async def _trials(dsn: str, folder: Path, kills: Sequence[Sequence[Kill]]) -> list[Outcome]:
    room = asyncio.Semaphore(AT_ONCE)

    async def one(index: int, chain: Sequence[Kill]) -> Outcome:
        async with room:
            name = f"{folder.name}_{index}".lower().replace("-", "_")
            return await trial(folder / str(index), await _database(dsn, name), chain)

    return list(await asyncio.gather(*(one(index, chain) for index, chain in enumerate(kills))))


async def _points(dsn: str, folder: Path) -> list[str]:
    return await points(folder / "points", await _database(dsn, "points"))


async def _database(dsn: str, name: str) -> str:
    await run_sql(dsn, f'CREATE DATABASE "{name}"')
    made = in_database(dsn, name)
    await migrate(made)
    return made
