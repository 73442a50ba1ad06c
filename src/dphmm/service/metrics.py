"""What may be counted: requests, answers and epsilon; never a time, a size or a state.

Prometheus' own process figures are left out: processor time depends on how long noise took
to draw.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dphmm.errors import require
from dphmm.service.batches import Batched

__all__ = ["Metrics"]


class Metrics:
    """The counters of one process."""

    def __init__(self) -> None:
        prometheus = require("prometheus_client", "service")
        self._prometheus = prometheus
        self._registry = prometheus.CollectorRegistry()

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

    def text(self) -> bytes:
        """All counters in Prometheus' format."""
        return bytes(self._prometheus.generate_latest(self._registry))
