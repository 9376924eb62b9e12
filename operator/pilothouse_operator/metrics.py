"""What Prometheus is told of the operator."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector


class Metrics:
    """`depth` and `ages` are asked when someone looks: the queue's length, and seconds since each kind's last event."""

    def __init__(self, depth: Callable[[], int], ages: Callable[[], Mapping[str, float]]) -> None:
        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "pilothouse_reconcile_seconds", "Duration of one look at an object.", ["kind"], registry=self._registry
        )
        self._failures = Counter(
            "pilothouse_reconcile_failures", "Looks that failed and are tried again.", ["kind"], registry=self._registry
        )
        self._runs = Gauge("pilothouse_runs_unfinished", "Runs that have not ended.", registry=self._registry)
        self._ended = Counter("pilothouse_runs_ended", "Runs that ended, by state.", ["state"], registry=self._registry)
        self._leading = Gauge("pilothouse_leading", "1 while this operator acts.", registry=self._registry)
        queue = Gauge("pilothouse_queue_depth", "Objects that wait to be looked at.", registry=self._registry)
        queue.set_function(depth)
        self._registry.register(_Ages(ages))

    @contextmanager
    def looking(self, kind: str) -> Iterator[None]:
        """Around one look."""
        begun = time.perf_counter()
        try:
            yield
        except Exception:
            self._failures.labels(kind).inc()
            raise
        finally:
            self._seconds.labels(kind).observe(time.perf_counter() - begun)

    def unfinished(self, runs: int) -> None:
        self._runs.set(runs)

    def ended(self, state: str) -> None:
        self._ended.labels(state).inc()

    def leading(self, now: bool) -> None:
        self._leading.set(now)

    def text(self) -> bytes:
        """In Prometheus' text format."""
        return generate_latest(self._registry)


class _Ages(Collector):
    def __init__(self, ages: Callable[[], Mapping[str, float]]) -> None:
        self._ages = ages

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            "pilothouse_watch_event_age_seconds", "Time since the last event of a watch.", labels=["kind"]
        )
        for kind, age in self._ages().items():
            family.add_metric([kind], age)
        yield family
