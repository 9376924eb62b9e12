"""The database away for a minute in the middle of a step: what runs goes on, and the run ends well."""

import time
from collections.abc import Sequence

import pytest

from e2e.faults.soak.course import IN_PODS, Course, lines
from e2e.faults.soak.toll import Toll
from e2e.faults.strikes import Strikes
from e2e.faults.subject import at_work, side_effect_of
from e2e.faults.witness import Witness
from e2e.poll import until
from e2e.release import Release
from e2e.rows import Rows

AWAY = 60
"""Seconds, from the moment at which no process of the server is left."""

WORK = 30
"""Seconds that a step in a Pod takes: the database is gone before, and away long after."""

CHAIN = [f"light-{number}" for number in range(256)]
"""Steps that take next to no time: as many as a workflow may have."""

CHAINS = 8
"""So many at a time, so that they take long enough to be struck."""

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]


@pytest.mark.parametrize("step", IN_PODS)
def test_a_step_goes_on_while_the_database_is_away(
    step: str, strikes: Strikes, release: Release, witness: Witness, tolls: list[Toll]
) -> None:
    course = Course.begin(witness, "struck", [step], seconds=WORK)
    at_work(course.applied, step)
    side_effect_of(course.applied, step)
    _, ended = lines(course.name, step)
    with strikes.database_away(AWAY):
        assert ended not in witness.heard()
        until(lambda: ended in witness.heard(), f"the step {step} goes on, and ends")
    _expect_the_end([course], witness, release, tolls, step)


def test_light_steps_wait_while_the_database_is_away(
    strikes: Strikes, release: Release, witness: Witness, tolls: list[Toll]
) -> None:
    courses = [Course.begin(witness, f"struck-{number}", CHAIN) for number in range(CHAINS)]
    last = courses[-1].applied
    rows = Rows(release, witness.kubectl.namespace or "", last.name)
    until(lambda: any(event.type == "StepSucceeded" for event in rows.events()), "the last chain is under way")
    with strikes.database_away(AWAY):
        assert last.condition("Finished").get("status") != "True"
    _expect_the_end(courses, witness, release, tolls, "light")


def _expect_the_end(
    courses: Sequence[Course], witness: Witness, release: Release, tolls: list[Toll], step: str
) -> None:
    """The database was asked to come back a moment ago."""
    back = time.monotonic()
    for course in courses:
        course.end()
    toll = Toll(f"database away {AWAY} s: {step}", kills=1, seconds=[time.monotonic() - back])
    tolls.append(toll)
    toll.judge(courses, witness.heard(), release)
    toll.demand_nothing()
