"""Parts killed with -9 at many moments of a run: every run ends as if nothing had happened."""

import random
import time
from collections.abc import Iterator, Sequence
from statistics import median

import pytest

from e2e.faults.soak.course import Course
from e2e.faults.soak.toll import Toll
from e2e.faults.strikes import Strikes
from e2e.faults.witness import Witness
from e2e.release import Release

SEED = 20261130

KILLS = 10
"""Runs of which each is struck at another moment."""

PARTS = (
    ("operator",),
    ("gateway",),
    ("postgres",),
    ("apiserver",),
    ("etcd",),
    ("scheduler",),
    ("controller-manager",),
    ("kubelet",),
    ("containerd",),
    ("operator", "postgres"),
    ("operator", "apiserver"),
    ("gateway", "postgres"),
)

BLINDING = {"containerd"}
"""A container's output passes through it, and what is said while it is dead can be gone for good."""

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]


@pytest.mark.parametrize("parts", PARTS, ids="+".join)
def test_a_run_survives_a_kill_at_any_moment(
    parts: Sequence[str], strikes: Strikes, release: Release, witness: Witness, tolls: list[Toll]
) -> None:
    toll = Toll("+".join(parts), blinding=not BLINDING.isdisjoint(parts))
    tolls.append(toll)
    courses, usual = _undisturbed(witness)
    print(f"\n{toll.what}: seed {SEED}, an undisturbed run takes {usual:.1f} s")
    for number, moment in enumerate(_moments(usual, toll.what)):
        strikes.whole()
        begun = time.monotonic()
        courses.append(Course.begin(witness, f"struck-{number}"))
        time.sleep(max(0.0, begun + moment - time.monotonic()))
        strikes.kill(*parts)
        courses[-1].end()
        toll.kills += len(parts)
        toll.seconds.append(time.monotonic() - begun - usual)
        print(f"  killed after {moment:.1f} s, ended {toll.seconds[-1]:.1f} s late", flush=True)
    strikes.whole()
    toll.judge(courses, witness.heard(), release)
    toll.demand_nothing()


def _undisturbed(witness: Witness) -> tuple[list[Course], float]:
    """A few runs that nothing disturbs, and the seconds that one of them takes."""
    courses, seconds = [], []
    for number in range(3):
        begun = time.monotonic()
        courses.append(Course.begin(witness, f"undisturbed-{number}"))
        courses[-1].end()
        seconds.append(time.monotonic() - begun)
    return courses, median(seconds)


def _moments(length: float, seed: str) -> Iterator[float]:
    """Seconds after the begin of a run: one moment in each of the equal parts of its length."""
    chance = random.Random(f"{SEED} {seed}")  # noqa: S311 - the seed makes the moments ones that can be had again
    return ((number + chance.random()) / KILLS * length for number in range(KILLS))
