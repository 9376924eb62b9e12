"""Kill -9 of an agent's process at the recorded transitions of scripted sessions: no entry is lost, no effect happens
twice, each call has one result."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pilothouse.store.postgres import PostgresRunStore
from tests.agents.kills.plans import draw
from tests.agents.kills.process import Kill
from tests.agents.kills.trial import Ground, Traces, Trial, a_ground
from tests.agents.kills.verdict import Case

SEED = 20260202
SESSIONS, KILLS_EACH = 8, 5
MANY = 1_000
AT_ONCE = 2
"""Processes side by side."""


@pytest.fixture
async def ground(postgres: PostgresRunStore, database: str, tmp_path: Path) -> AsyncIterator[Ground]:
    async with a_ground(postgres, database, tmp_path, AT_ONCE) as made:
        yield made


@pytest.mark.feature("A69")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", range(SESSIONS))
async def test_an_agent_that_is_killed_at_a_write_goes_on_in_the_next_process(
    ground: Ground, number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """40 kills, the same ones each time."""
    chance = random.Random(SEED + number)  # noqa: S311 - a fixed seed, so that the same kills happen again
    trial = Trial(draw(chance))
    whole = await ground.play(trial)
    kills = chance.sample(everywhere(len(whole.points)), KILLS_EACH)
    _expect_right(await _cases(ground, [replace(trial, kills=(kill,)) for kill in kills], whole), capsys)


@pytest.mark.soak
@pytest.mark.feature("A69")
async def test_a_kill_at_every_write_of_many_sessions(ground: Ground, capsys: pytest.CaptureFixture[str]) -> None:
    """Before and after each write; and after every fourth death the next process is killed, too."""
    chance = random.Random(SEED)  # noqa: S311 - as above
    cases: list[Case] = []
    begun = time.monotonic()
    while sum(len(case.deaths) for case in cases) < MANY:
        trial = Trial(draw(chance))
        whole = await ground.play(trial)
        kills = everywhere(len(whole.points))
        chains = [(kill,) if chance.random() < 0.75 else (kill, chance.choice(kills)) for kill in kills]
        cases += await _cases(ground, [replace(trial, kills=chain) for chain in chains], whole)
    _expect_right(cases, capsys)
    with capsys.disabled():
        print(f"{time.monotonic() - begun:.0f} seconds")  # noqa: T201


def everywhere(writes: int) -> list[Kill]:
    """Both moments of each write."""
    return [Kill(number, moment) for number in range(1, writes + 1) for moment in ("before", "after")]


async def _cases(ground: Ground, trials: Sequence[Trial], whole: Traces) -> list[Case]:
    room = asyncio.Semaphore(AT_ONCE)

    async def one(trial: Trial) -> Case:
        async with room:
            return Case(await ground.play(trial), whole)

    async with asyncio.TaskGroup() as group:
        played = [group.create_task(one(trial)) for trial in trials]
    return [trial.result() for trial in played]


def _expect_right(cases: Sequence[Case], capsys: pytest.CaptureFixture[str]) -> None:
    kills = sum(len(case.deaths) for case in cases)
    figures = {
        "kills": kills,
        "sessions killed": len(cases),
        "lost": sum(len(case.lost) for case in cases),
        "repeated": sum(len(case.repeated) for case in cases),
        "made again as they may be": sum(case.again for case in cases),
        "messages said meanwhile": sum(len(case.end.said) for case in cases),
        "said OutcomeUnknown": sum(case.end.unknown for case in cases),
    }
    with capsys.disabled():
        print("\n" + ", ".join(f"{name} {count}" for name, count in figures.items()))  # noqa: T201
    wrong = [line for case in cases for line in case.wrong()]
    assert not wrong, "\n".join(wrong)
    assert all(case.deaths for case in cases)
