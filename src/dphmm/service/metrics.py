"""What may be counted: requests, answers and epsilon; never a time, a size or a state.

Prometheus' own process figures are left out: processor time depends on how long noise took
to draw. So are lengths of queues. Where several processes serve one port, Prometheus' own files
for that hold the counts of all of them, also of those that have ended.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from dphmm import __version__
from dphmm.books import Store
from dphmm.errors import require
from dphmm.service.batches import Batched
from dphmm.service.sharing import FOLDER, Shared

__all__ = ["Metrics"]


class Metrics:
    """The counters of a service, and how it is."""

    def __init__(self, store: Store, shared: Shared | None = None) -> None:
        prometheus = require("prometheus_client", "service")
        self._prometheus = prometheus
        self._registry = prometheus.CollectorRegistry()
        self._store, self._shared = store, shared
        self._began = time.time()
        self._ready = False

        def counter(name: str, text: str, labels: tuple[str, ...] = ()) -> Any:
            return prometheus.Counter(name, text, labels, registry=self._registry)

        self.requests = counter(
            "dphmm_requests_total", "Requests by route and status.", ("route", "status")
        )
        self.answers = counter(
            "dphmm_answers_total", "Answers, new ones and repeated ones.", ("repeated",)
        )
        self.refusals = counter("dphmm_budget_refusals_total", "Releases beyond a budget.")
        self.epsilon = counter("dphmm_epsilon_total", "The sum of epsilon over new answers.")
        for repeated in ("no", "yes"):
            self.answers.labels(repeated)

    def answered(self, epsilon: Fraction, repeated: bool) -> None:
        """Count one answer."""
        self.answers.labels("yes" if repeated else "no").inc()
        if not repeated:
            self.epsilon.inc(float(epsilon))

    def answered_many(self, done: Batched) -> None:
        """Count the answers of a batch."""
        self.answers.labels("no").inc(done.new)
        self.answers.labels("yes").inc(done.repeated)
        self.refusals.inc(done.refused)
        self.epsilon.inc(float(done.epsilon))

    def text(self, ready: bool) -> bytes:
        """All counters and gauges in Prometheus' format."""
        self._ready = ready
        registry = self._registry
        if self._shared is not None:
            multiprocess = require("prometheus_client.multiprocess", "service")
            registry = self._prometheus.CollectorRegistry()
            multiprocess.MultiProcessCollector(registry, os.environ[FOLDER])
        counted = bytes(self._prometheus.generate_latest(registry))
        gauges = self._prometheus.CollectorRegistry()
        gauges.register(self)
        return counted + bytes(self._prometheus.generate_latest(gauges))

    def collect(self) -> Iterator[Any]:
        """The gauges as they are now, for Prometheus' library."""
        core = require("prometheus_client.core", "service")
        database = self._store.database
        info = core.GaugeMetricFamily(
            "dphmm_info", "What runs here.", labels=("version", "database")
        )
        info.add_metric((__version__, database.dialect), 1)
        yield info

        def gauge(name: str, text: str, value: float) -> Any:
            return core.GaugeMetricFamily(name, text, value=value)

        yield gauge("dphmm_ready", "Whether the store can be written.", float(self._ready))
        yield gauge("dphmm_start_time_seconds", "When this process began.", int(self._began))
        workers = 1 if self._shared is None else len(self._shared.pids())
        yield gauge("dphmm_workers", "Processes that answer requests.", workers)
        if database.dialect == "sqlite":
            free = shutil.disk_usage(Path(database.name).absolute().parent).free
            text = "Room on the store's disk, in whole megabytes."
            yield gauge("dphmm_disk_free_megabytes", text, free >> 20)
