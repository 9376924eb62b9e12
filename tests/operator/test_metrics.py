"""What Prometheus is told, in its text format."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pilothouse.store.errors import StoreUnavailable
from pilothouse_operator.metrics import Metrics
from tests.operator.desk import Desk
from tests.operator.kubelet import framed
from tests.operator.strikes import Strike


def told(metrics: Metrics) -> dict[str, float]:
    """Each sample by its name and its labels."""
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
    }


def test_the_queue_and_the_ages_are_asked_when_someone_looks() -> None:
    depth, ages = [3], {"Workflow": 1.5, "Pod": 0.0}
    metrics = Metrics(lambda: depth[0], lambda: ages)
    assert told(metrics)["pilothouse_queue_depth"] == 3
    depth[0], ages["Workflow"] = 5, 9.0
    found = told(metrics)
    assert found["pilothouse_queue_depth"] == 5
    assert found["pilothouse_watch_event_age_seconds Workflow"] == 9
    assert found["pilothouse_watch_event_age_seconds Pod"] == 0


def test_a_look_is_timed_and_a_failed_one_counted() -> None:
    metrics = Metrics(lambda: 0, dict)
    with metrics.looking("Workflow"):
        pass
    with pytest.raises(ValueError, match="boom"), metrics.looking("Workflow"):
        raise ValueError("boom")
    found = told(metrics)
    assert found["pilothouse_reconcile_seconds_count Workflow"] == 2
    assert found["pilothouse_reconcile_failures_total Workflow"] == 1


def test_two_operators_have_metrics_of_their_own() -> None:
    first, second = Metrics(lambda: 0, dict), Metrics(lambda: 0, dict)
    first.leading(True)
    assert (told(first)["pilothouse_leading"], told(second)["pilothouse_leading"]) == (1, 0)


async def test_an_operator_counts_what_it_does(desk: Desk) -> None:
    await desk.begin()
    desk.workflow()
    await desk.settle()
    desk.kubelet.succeed("a")
    await desk.settle()
    found = told(desk.operator.metrics)
    assert found["pilothouse_leading"] == 1
    assert found["pilothouse_runs_ended_total Succeeded"] == 1
    assert 2 <= found["pilothouse_reconcile_seconds_count Workflow"] <= 20
    assert found["pilothouse_queue_depth"] == 0
    await desk.end()
    assert told(desk.operator.metrics)["pilothouse_leading"] == 0


async def test_a_run_is_counted_once_also_where_an_outage_hides_its_end(desk: Desk) -> None:
    """Its last write is there, and the answer to it is lost."""
    strike = Strike(moment="after", error=lambda: StoreUnavailable("the answer is lost"))
    desk.store_given = strike.store(desk.store)
    await desk.begin()
    desk.workflow()
    await desk.settle()
    desk.kubelet.start("a")
    await desk.settle()
    strike.number = len(strike.points) + 3
    desk.kubelet.end("a", framed())
    await desk.later(100)
    assert strike.points[strike.number - 1] == "commit:RunSucceeded"
    assert desk.condition("Ready") == ("True", "Succeeded")
    assert told(desk.operator.metrics)["pilothouse_runs_ended_total Succeeded"] == 1
