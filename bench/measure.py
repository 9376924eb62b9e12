"""Times, their ratios beside the targets, and how both are printed."""

import time
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass


async def timed(work: Awaitable[object]) -> float:
    """The seconds that the work takes."""
    started = time.perf_counter()
    await work
    return time.perf_counter() - started


@dataclass(frozen=True, slots=True)
class Series:
    """Times of one thing, in seconds."""

    what: str
    seconds: Sequence[float]

    @property
    def p50(self) -> float:
        return self._percentile(50)

    @property
    def p95(self) -> float:
        return self._percentile(95)

    def _percentile(self, percent: int) -> float:
        """The smallest time that so many percent of the times do not exceed (nearest rank)."""
        rank = -(-len(self.seconds) * percent // 100)
        return sorted(self.seconds)[rank - 1]


@dataclass(frozen=True, slots=True)
class Target:
    """The most that a figure may be, or what it must be less than where it is `strict`. The unit is mostly that of a
    ratio: how many times another's time ours may take."""

    most: float
    strict: bool = False
    unit: str = "x"

    def verdict(self, figure: float) -> str:
        met = figure < self.most if self.strict else figure <= self.most
        return "met" if met else "NOT MET"

    def __str__(self) -> str:
        return f"{'<' if self.strict else '<='} {self.most:g} {self.unit}".rstrip()


@dataclass(frozen=True, slots=True)
class Ratio:
    """Our time against another's, both in seconds and of the same run. Without a target it only informs."""

    what: str
    against: str
    ours: float
    theirs: float
    target: Target | None = None

    @property
    def row(self) -> tuple[str, ...]:
        ratio = self.ours / self.theirs
        if self.target is None:
            return self.what, self.against, f"{ratio:.2f} x", "none", ""
        return self.what, self.against, f"{ratio:.2f} x", str(self.target), self.target.verdict(ratio)


@dataclass(frozen=True, slots=True)
class Figure:
    """What is measured for itself, in a unit of its own. Without a target it only informs."""

    what: str
    value: float
    unit: str
    target: Target | None = None

    @property
    def row(self) -> tuple[str, ...]:
        figure = f"{self.value:.1f} {self.unit}".rstrip()
        if self.target is None:
            return self.what, figure, "none", ""
        return self.what, figure, str(self.target), self.target.verdict(self.value)


@dataclass(frozen=True, slots=True)
class Report:
    """What one benchmark found."""

    title: str
    series: Sequence[Series]
    ratios: Sequence[Ratio]
    figures: Sequence[Figure] = ()


def print_report(report: Report) -> None:
    times = [(s.what, str(len(s.seconds)), f"{s.p50 * 1e3:.2f}", f"{s.p95 * 1e3:.2f}") for s in report.series]
    print(f"\n{report.title}\n")
    print_table(("time in ms", "n", "p50", "p95"), times)
    print()
    print_ratios(report.ratios)
    if report.figures:
        print()
        print_figures(report.figures)


def print_ratios(ratios: Iterable[Ratio]) -> None:
    print_table(("ours", "against", "ratio", "target", ""), [ratio.row for ratio in ratios])


def print_figures(figures: Iterable[Figure]) -> None:
    print_table(("ours", "figure", "target", ""), [figure.row for figure in figures])


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns as wide as their longest cell; those of figures, which are all after the text, to the right."""
    table = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    figures = [any(row[at][:1].isdigit() for row in table[1:]) for at in range(len(head))]
    for row in table:
        cells = zip(row, widths, figures, strict=True)
        print("  " + "  ".join(c.rjust(w) if right else c.ljust(w) for c, w, right in cells).rstrip())
