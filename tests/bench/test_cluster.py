"""What the cluster benchmarks make of what a cluster tells them."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import httpx2
import pytest

from bench.cluster import contenders, costs, memory, times
from bench.cluster.api import Api, states
from bench.cluster.runs import Place
from bench.cluster.writes import Ledger, Writer
from bench.measure import Figure, Series, Target

OPERATOR = Writer("operator", "pilothouse", "pilothouse-operator")
METRICS = """\
# TYPE apiserver_flowcontrol_dispatched_requests_total counter
apiserver_flowcontrol_dispatched_requests_total{flow_schema="bench-operator-events",priority_level="workload-low"} 3
apiserver_flowcontrol_dispatched_requests_total{flow_schema="bench-operator-objects",priority_level="workload-low"} 15
apiserver_flowcontrol_dispatched_requests_total{flow_schema="system-nodes",priority_level="system"} 900
apiserver_flowcontrol_rejected_requests_total{flow_schema="bench-operator-events",priority_level="workload-low"} 7
"""


def event(type_: str, **object_: Any) -> str:
    return json.dumps({"type": type_, "object": object_})


def pod(name: str, phase: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"phase": phase}}


def running(container: dict[str, Any]) -> dict[str, Any]:
    """A Pod whose one container is in that state."""
    return {"metadata": {"name": "a"}, "status": {"phase": "Running", "containerStatuses": [{"state": container}]}}


def api(answer: Callable[[httpx2.Request], httpx2.Response]) -> Api:
    return Api(httpx2.Client(base_url="http://cluster", transport=httpx2.MockTransport(answer)))


def test_a_watch_gives_states_and_leaves_bookmarks_and_deletions_out() -> None:
    lines = [event("ADDED", n=1), event("BOOKMARK", n=2), event("MODIFIED", n=3), event("DELETED", n=4)]
    assert list(states(lines)) == [{"n": 1}, {"n": 3}]


def test_a_watch_that_the_server_ends_is_no_end_of_a_run() -> None:
    with pytest.raises(RuntimeError, match="too old resource version"):
        list(states([event("ERROR", code=410, message="too old resource version: 7 (9)")]))


def test_a_run_watches_before_it_creates_and_lasts_until_all_have_ended() -> None:
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        watches = "watch" in request.url.params
        asked.append("WATCH" if watches else request.method)
        if watches:
            assert request.url.params["resourceVersion"] == "7"
            lines = [event("ADDED", **pod("a", "Succeeded")), event("MODIFIED", **pod("b", "Succeeded"))]
            return httpx2.Response(200, text="\n".join(lines))
        return httpx2.Response(200, json={"metadata": {"resourceVersion": "7"}})

    place = Place(api(answer), contenders.bare_pod("image"), "here")
    assert place.run("a", "b") > 0
    assert asked == ["GET", "WATCH", "POST", "POST"]
    with pytest.raises(AssertionError, match="before c"):
        place.run("a", "c")


def test_a_run_that_goes_wrong_is_no_figure() -> None:
    with pytest.raises(AssertionError, match="went wrong"):
        contenders.argo("image").ended(pod("a", "Failed"))
    failed = [{"type": "Finished", "status": "True"}, {"type": "Ready", "status": "False"}]
    with pytest.raises(AssertionError, match="went wrong"):
        contenders.ours().ended({"status": {"conditions": failed}})


def test_a_container_has_ended_before_its_pod_is_called_so() -> None:
    ended = contenders.bare_container("image").ended
    assert not ended(pod("a", "Pending"))
    assert not ended(running({"running": {}}))
    assert ended(running({"terminated": {"exitCode": 0}}))
    with pytest.raises(AssertionError, match="went wrong"):
        ended(running({"terminated": {"exitCode": 1}}))


def test_all_contenders_run_the_same_command_in_the_same_image() -> None:
    bare = contenders.bare_pod("image:1").manifest("x")["spec"]["containers"][0]
    theirs = contenders.argo("image:1").manifest("x")["spec"]["templates"][0]["container"]
    our_step = contenders.ours().manifest("x")["spec"]["steps"][0]
    assert bare["command"] == theirs["command"] == our_step["runCommand"]["command"]
    assert bare["image"] == theirs["image"] == "image:1"


def test_writes_are_counted_by_writer_and_kind() -> None:
    other = Writer("other", "pilothouse", "other")
    counted = Ledger(api(lambda _: httpx2.Response(200, text=METRICS)), (OPERATOR, other)).read()
    assert counted == {
        ("operator", "events"): 3,
        ("operator", "leases"): 0,
        ("operator", "objects"): 15,
        ("other", "events"): 0,
        ("other", "leases"): 0,
        ("other", "objects"): 0,
    }


def test_the_writes_of_a_workflow_are_all_of_one_writers() -> None:
    each = {
        ("operator", "events"): 1.0,
        ("operator", "leases"): 0.0,
        ("operator", "objects"): 5.5,
        ("x", "events"): 9.0,
    }
    assert costs.written(OPERATOR, each).row[1:] == ("6.5", "<= 6", "NOT MET")


def test_memory_is_summed_over_processes() -> None:
    status = (
        "Name:\tpython\nVmHWM:\t  4096 kB\nVmRSS:\t  3072 kB\nName:\tpython\nVmHWM:\t  1024 kB\nVmRSS:\t  1024 kB\n"
    )
    assert memory.parse(status) == memory.Memory(now=4.0, peak=5.0)


def test_memory_of_no_process_is_no_figure() -> None:
    with pytest.raises(AssertionError, match="no process"):
        memory.parse("")


class Stub(Place):
    """A place whose runs take so many seconds each, the first one and no more a hundred times as long."""

    def run(self, *names: str) -> float:
        seconds = float(self.namespace)
        return seconds * 100 if names[0].startswith("r0-") else seconds

    def clear(self) -> None:
        pass


def places(*seconds: float) -> Sequence[Place]:
    kinds = (contenders.bare_pod("i"), contenders.bare_container("i"), contenders.ours(), contenders.argo("i"))
    nowhere = api(lambda _: httpx2.Response(500))
    return [Stub(nowhere, kind, str(each)) for kind, each in zip(kinds, seconds, strict=True)]


def test_the_report_sets_ours_against_the_bare_pod_and_against_argo() -> None:
    report = times.one_at_a_time(*places(2, 1, 3, 10))
    assert [ratio.row[2:] for ratio in report.ratios] == [("1.50 x", "<= 1.5 x", "met"), ("0.30 x", "< 0.5 x", "met")]
    assert [figure.row[1:] for figure in report.figures] == [("2000.0 ms", "none", "")]


def test_the_first_run_of_each_is_not_counted() -> None:
    assert [series.p95 for series in times.one_at_a_time(*places(2, 1, 3, 10)).series] == [2, 1, 3, 10]


@pytest.mark.parametrize(("value", "verdict"), [(150.0, "NOT MET"), (149.9, "met")])
def test_a_figure_is_held_against_its_own_bound(value: float, verdict: str) -> None:
    assert Figure("memory", value, "MiB", Target(150, True, "MiB")).row[2:] == ("< 150 MiB", verdict)


def test_percentiles_are_of_the_nearest_rank() -> None:
    assert (Series("x", [3, 1, 2]).p50, Series("x", [3, 1, 2]).p95) == (2, 3)
