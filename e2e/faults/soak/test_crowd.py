"""Many runs at a time while a part is killed again and again: each of them ends as if nothing had happened."""

import random
import time

import pytest

from e2e.faults.soak.course import Course
from e2e.faults.soak.toll import Toll
from e2e.faults.strikes import Strikes
from e2e.faults.witness import Witness
from e2e.release import Release

SEED = 20261130

CROWD = 10

FIRE = 60
"""Seconds for which the part is killed again and again."""

PAUSE = (2.0, 6.0)
"""Seconds between two kills: at least, and at most."""

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]


@pytest.mark.parametrize("part", ["operator", "gateway", "postgres", "apiserver"])
def test_a_crowd_of_runs_survives_a_part_that_dies_again_and_again(
    part: str, strikes: Strikes, release: Release, witness: Witness, tolls: list[Toll]
) -> None:
    toll = Toll(f"{part}, again and again")
    tolls.append(toll)
    chance = random.Random(f"{SEED} {part}")  # noqa: S311 - the seed makes the moments ones that can be had again
    courses = [Course.begin(witness, f"struck-{number}") for number in range(CROWD)]
    end = time.monotonic() + FIRE
    while time.monotonic() < end:
        time.sleep(chance.uniform(*PAUSE))
        strikes.kill(part)
        toll.kills += 1
    ceased = time.monotonic()
    for course in courses:
        course.end()
    toll.seconds.append(time.monotonic() - ceased)
    strikes.whole()
    toll.judge(courses, witness.heard(), release)
    toll.demand_nothing()
