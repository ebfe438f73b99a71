"""Metrics for Prometheus. Requests are counted when they end; gauges are read when they are scraped."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

if TYPE_CHECKING:
    from .server import Server

# Buckets from a local decision to a long generation.
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0)
_BREAKER = {"closed": 0, "half-open": 1, "open": 2}


class Metrics:
    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ended = Counter("turnout_requests", "Requests by route and status.", ("path", "status"), registry=registry)
        text = "From the first byte of a request to the last of its answer."
        took = Histogram("turnout_request_seconds", text, ("path",), registry=registry, buckets=SECONDS)
        # By path and status. Cached, because the library takes long to find a metric by its labels.
        self.of = cache(lambda path, status: (ended.labels(path, status), took.labels(path)))
        self.log = Gauge("turnout_log", "The journal's counters.", ("count",), registry=registry)
        self.lost = Gauge("turnout_decisions_lost", "Decisions the log could not take.", registry=registry)
        self.active = Gauge("turnout_requests_active", "Requests under way.", registry=registry)
        self.refused = Gauge("turnout_requests_refused", "Requests refused for want of room.", registry=registry)
        self.lag = Gauge("turnout_loop_lag_seconds", "How late the event loop is.", registry=registry)
        self.breaker = Gauge("turnout_breaker", "0 closed, 1 half open, 2 open.", ("slot", "model"), registry=registry)
        self.retries = Gauge("turnout_retries_refused", "Retries beyond the budget.", registry=registry)

    def render(self, server: Server) -> bytes:
        if server.runtime.store is not None:
            counts = server.runtime.store.counts()
            for name in ("recorded", "committed", "repeated", "rejected", "torn", "failures", "backlog_bytes"):
                self.log.labels(name).set(getattr(counts, name))
            self.lost.set(counts.lost)
        self.active.set(server.admission.active)
        self.refused.set(server.admission.refused)
        self.lag.set(server.admission.lag)
        self.retries.set(server.runtime.models.retries.refused)
        for name, slot in server.runtime.models.slots.slots.items():
            self.breaker.labels(name, slot.id).set(_BREAKER[server.runtime.models.breaker(slot).state])
        return generate_latest(self.registry)
