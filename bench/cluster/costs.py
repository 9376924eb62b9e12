"""What the operator costs a cluster: memory, and writes to the API server."""

import time
from collections.abc import Mapping, Sequence

from bench.cluster.memory import resident
from bench.cluster.runs import Place
from bench.cluster.writes import Ledger, Writer, Written
from bench.measure import Figure, Target
from e2e.release import Release

RUNS = 10

_IDLE = 60
"""Seconds during which nothing is asked of the operator."""


def operator_of(release: Release) -> Writer:
    return Writer("operator", release.namespace, f"{release.name}-operator")


def idle(release: Release, ledger: Ledger) -> Sequence[Figure]:
    """A minute without work."""
    before = ledger.settled()
    time.sleep(_IDLE)
    written = sum(_grown(before, ledger.read()).values())
    operator, gateway = _pods(release)
    return (
        Figure("idle operator, resident", resident(release.own, operator).now, "MiB", Target(150, True, "MiB")),
        Figure("idle gateway, one of two, resident", resident(release.own, gateway).now, "MiB"),
        Figure("idle operator, API writes a minute", written, "", Target(0, unit="")),
    )


def loaded(release: Release) -> Sequence[Figure]:
    """Right after the runs. The peak is the most since the process began."""
    figures = []
    for what, pod in zip(("operator", "gateway, one of two"), _pods(release), strict=True):
        memory = resident(release.own, pod)
        figures.append(Figure(f"{what}, resident after the runs", memory.now, "MiB"))
        figures.append(Figure(f"{what}, peak", memory.peak, "MiB"))
    return figures


def writes(place: Place, ledger: Ledger) -> dict[tuple[str, str], float]:
    """API writes for one object, by writer and kind, the events included that come a while after its end."""
    before = ledger.settled()
    for number in range(RUNS):
        place.run(f"w{number}")
    grown = _grown(before, ledger.settled())
    place.clear()
    return {key: n / RUNS for key, n in grown.items()}


def written(writer: Writer, each: Mapping[tuple[str, str], float]) -> Figure:
    """All that one writer wrote for one workflow."""
    total = sum(n for (name, _), n in each.items() if name == writer.name)
    return Figure(f"{writer.name}'s API writes for a one-step workflow, events included", total, "", Target(6, unit=""))


def _grown(before: Written, after: Written) -> Mapping[tuple[str, str], int]:
    return {key: n - before[key] for key, n in after.items()}


def _pods(release: Release) -> tuple[str, str]:
    """The operator's Pod, and one of the gateway's."""
    return release.pods("operator")[0]["metadata"]["name"], release.pods("gateway")[0]["metadata"]["name"]
