"""What Prometheus scrapes. Counters are kept as requests end; gauges are read when somebody asks."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from .house import House

# From a local decision to a long generation.
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0)
_BREAKER = {"closed": 0, "half-open": 1, "open": 2}


class Requests(Collector):
    """Requests counted and timed. Plain numbers: one thread keeps them, and a lock for each costs more than the sum."""

    def __init__(self) -> None:
        self._ended: Counter[tuple[str, int]] = Counter()
        self._within: dict[str, list[int]] = {}
        self._sum_s: defaultdict[str, float] = defaultdict(float)

    def note(self, path: str, status: int, seconds: float) -> None:
        """A request has ended."""
        self._ended[path, status] += 1
        within = self._within.get(path)
        if within is None:
            within = self._within[path] = [0] * (len(SECONDS) + 1)
        within[bisect_left(SECONDS, seconds)] += 1
        self._sum_s[path] += seconds

    def collect(self) -> Iterator[Metric]:
        ended = CounterMetricFamily("turnout_requests", "Requests by route and status.", labels=("path", "status"))
        for (path, status), count in self._ended.items():
            ended.add_metric((path, str(status)), count)
        yield ended
        said = "From the first byte of a request to the last of its answer."
        took = HistogramMetricFamily("turnout_request_seconds", said, labels=("path",))
        limits = [*map(str, SECONDS), "+Inf"]
        for path, within in self._within.items():
            took.add_metric((path,), list(zip(limits, accumulate(within), strict=True)), self._sum_s[path])
        yield took


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Requests()
        self.registry.register(self.requests)
        self.note = self.requests.note
        self.log = Gauge("turnout_log", "The journal's counters.", ("count",), registry=self.registry)
        self.lost = Gauge("turnout_decisions_lost", "Decisions the log could not take.", registry=self.registry)
        self.active = Gauge("turnout_requests_active", "Requests under way.", registry=self.registry)
        self.refused = Gauge("turnout_requests_refused", "Requests refused for want of room.", registry=self.registry)
        self.lag = Gauge("turnout_loop_lag_seconds", "How late the event loop is.", registry=self.registry)
        self.breaker = Gauge(
            "turnout_breaker", "0 closed, 1 half open, 2 open.", ("slot", "model"), registry=self.registry
        )
        self.retries = Gauge("turnout_retries_refused", "Retries beyond the budget.", registry=self.registry)

    def render(self, house: House) -> bytes:
        if house.store is not None:
            counts = house.store.counts()
            for name in ("recorded", "committed", "repeated", "rejected", "torn", "failures", "backlog_bytes"):
                self.log.labels(name).set(getattr(counts, name))
            self.lost.set(counts.lost)
        self.active.set(house.admission.active)
        self.refused.set(house.admission.refused)
        self.lag.set(house.admission.lag)
        self.retries.set(house.gateway.retries.refused)
        for name, slot in house.models.slots.slots.items():
            self.breaker.labels(name, slot.id).set(_BREAKER[house.models.breaker(slot).state])
        return generate_latest(self.registry)
