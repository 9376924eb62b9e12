"""`python -m bench.cluster`: measures on the cluster of `make cluster-up`. The exit status says nothing of targets."""

import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from bench.cluster import costs, times
from bench.cluster.api import Api, connected
from bench.cluster.argo import VERSION
from bench.cluster.argo.install import NAMESPACE, admit, install
from bench.cluster.contenders import argo, bare_container, bare_pod, ours
from bench.cluster.runs import place
from bench.cluster.writes import Ledger, Writer
from bench.measure import Figure, Ratio, print_figures, print_ratios, print_report, print_table
from e2e.cluster import clusters, engine, guard, image
from e2e.cluster.binaries import KUBERNETES
from e2e.cluster.clients import Helm, Kubectl
from e2e.cluster.layout import DEFAULT_NAME, NAME_VARIABLE, Layout
from e2e.release import Release


def main() -> None:
    layout = Layout.of(os.environ.get(NAME_VARIABLE, DEFAULT_NAME))
    guard.require_ours(layout)
    cluster, kubectl = clusters.of(layout), Kubectl(layout)
    release = Release(Helm(layout), kubectl, image.ensure(layout, engine.find_for_kind(), cluster))
    release.install()
    print_machine()
    with connected(layout.kubeconfig) as api:
        idle = measure_idle(api, release)
        install(kubectl, cluster)
        ratios, busy = measure_contenders(api, release)
    print("\nSummary\n")
    print_ratios(ratios)
    print()
    print_figures([*idle, *busy])


def print_machine() -> None:
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{platform.system()} {platform.release()} {platform.machine()}, {len(os.sched_getaffinity(0))} processors")
    print(f"load over 1, 5 and 15 minutes: {load}; on a busy machine only the ratios mean anything")
    print(f"Kubernetes {KUBERNETES}, Argo Workflows {VERSION}")


def measure_idle(api: Api, release: Release) -> Sequence[Figure]:
    operator = costs.operator_of(release)
    operator.ensure(release.kubectl)
    figures = costs.idle(release, Ledger(api, (operator,)))
    print("\nA minute without work\n")
    print_figures(figures)
    return figures


def measure_contenders(api: Api, release: Release) -> tuple[Sequence[Ratio], Sequence[Figure]]:
    kubectl, image_ = release.kubectl, release.image
    with ExitStack() as stack:
        contenders = (bare_pod(image_), bare_container(image_), ours(), argo(image_))
        places = [stack.enter_context(place(kubectl, api, each)) for each in contenders]
        bare, container, our_place, argo_place = places
        admit(kubectl.within(argo_place.namespace))
        single = times.one_at_a_time(bare, container, our_place, argo_place)
        print_report(single)
        many = times.at_once(bare, our_place, argo_place)
        print_report(many)
        memory = costs.loaded(release)
        operator = costs.operator_of(release)
        others = (Writer("controller", NAMESPACE, "argo"), Writer("executor", argo_place.namespace, "default"))
        for writer in others:
            writer.ensure(kubectl)
        our_writes = costs.writes(our_place, Ledger(api, (operator,)))
        print_writes(our_writes | costs.writes(argo_place, Ledger(api, others)))
    return [*single.ratios, *many.ratios], [
        *single.figures,
        *memory,
        costs.written(operator, our_writes),
    ]


def print_writes(each: Mapping[tuple[str, str], float]) -> None:
    print(f"\nAPI writes for one workflow, over {costs.RUNS} workflows one at a time\n")
    print_table(("writer", "of", "writes"), [(*key, f"{n:.1f}") for key, n in each.items()])


if __name__ == "__main__":
    main()
