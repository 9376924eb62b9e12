"""From creation to end: one at a time, and forty at once. The contenders take turns, so that each meets the machine's
drift."""

from bench.cluster.runs import Place
from bench.measure import Figure, Ratio, Report, Series, Target

RUNS = 10
ROUNDS = 2
AT_ONCE = 40


def one_at_a_time(bare: Place, container: Place, ours: Place, argo: Place) -> Report:
    """Each contender runs once unmeasured, so that nobody pays for a first time."""
    places = (bare, container, ours, argo)
    seconds = _in_turn(places, RUNS + 1, 1)
    pod, inner, workflow, other = (
        Series(place.contender.what, times[1:]) for place, times in zip(places, seconds, strict=True)
    )
    added = (workflow.p50 - inner.p50) * 1e3
    return Report(
        f"One at a time: {RUNS} of each, from creation to end",
        (pod, inner, workflow, other),
        (
            Ratio("one-step workflow, p50", "bare Pod, p50", workflow.p50, pod.p50, Target(1.5)),
            Ratio("one-step workflow, p50", "Argo's, p50", workflow.p50, other.p50, Target(0.5, strict=True)),
        ),
        (Figure("what a Pod step adds to a bare Pod, to its container's end, p50", added, "ms"),),
    )


def at_once(bare: Place, ours: Place, argo: Place) -> Report:
    places = (ours, bare, argo)
    seconds = _in_turn(places, ROUNDS, AT_ONCE)
    workflows, pods, others = (
        Series(f"{place.contender.what}, {AT_ONCE} at once", times)
        for place, times in zip(places, seconds, strict=True)
    )
    return Report(
        f"{AT_ONCE} at once: {ROUNDS} times each, from the first one's creation to the last one's end",
        (pods, workflows, others),
        (
            Ratio(f"{workflows.what}, p50", "bare Pods, p50", workflows.p50, pods.p50),
            Ratio(f"{workflows.what}, p50", "Argo's, p50", workflows.p50, others.p50, Target(0.35, strict=True)),
        ),
    )


def _in_turn(places: tuple[Place, ...], rounds: int, number: int) -> list[list[float]]:
    """The seconds of each place's rounds, with so many objects in each."""
    seconds: list[list[float]] = [[] for _ in places]
    for round_ in range(rounds):
        for place, taken in zip(places, seconds, strict=True):
            taken.append(place.run(*(f"r{round_}-{n}" for n in range(number))))
            place.clear()
    return seconds
