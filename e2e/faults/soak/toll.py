"""What one kind of strike cost the runs that it met, told as a line of a table."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from e2e.faults.soak.course import Course, expected
from e2e.release import Release

_COLUMNS = "{:<32}{:>6}{:>7}{:>6}{:>10}{:>9}{:>7}{:>7}{:>7}"

HEAD = _COLUMNS.format("what", "kills", "runs", "lost", "repeated", "unknown", "wrong", "p50 s", "max s")


@dataclass
class Toll:
    """`seconds`: how much longer a struck run took than an undisturbed one; where many were struck at once, or the
    database was away, from the end of that to that of the last run, with the work that was left. `lost` and `repeated`
    are side effects; `wrong` says what else is amiss with a run. `blinding`: what is struck takes with it what a
    command said, so that a run may end as one of unknown outcome, with no effect of its later steps."""

    what: str
    blinding: bool = False
    kills: int = 0
    runs: int = 0
    seconds: list[float] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def judge(self, courses: Sequence[Course], heard: Counter[str], release: Release) -> None:
        """Takes in runs that have ended, and all that the witness heard of them; each should have done everything
        once, and have succeeded."""
        blind = [course for course in courses if self.blinding and course.unknown()]
        wanted = expected(courses) - (expected(blind) - heard)
        self.runs += len(courses)
        self.unknown += [course.name for course in blind]
        self.lost += sorted((wanted - heard).elements())
        self.repeated += sorted((heard - wanted).elements())
        self.wrong += [problem for course in courses if course not in blind and (problem := course.problem(release))]

    def demand_nothing(self) -> None:
        """Fails if anything was lost, repeated or wrong."""
        assert (self.lost, self.repeated, self.wrong) == ([], [], [])

    def __str__(self) -> str:
        p50, most = (f"{of(self.seconds):.1f}" if self.seconds else "" for of in (median, max))
        found = map(len, (self.lost, self.repeated, self.unknown, self.wrong))
        return _COLUMNS.format(self.what, self.kills, self.runs, *found, p50, most)


def table(tolls: Iterable[Toll]) -> Sequence[str]:
    return [HEAD, *map(str, tolls)]
