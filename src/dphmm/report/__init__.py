"""Pages for people: a scenario and its releases, with plots, prices and plain sentences."""

from __future__ import annotations

from dphmm.report.designs import design_page
from dphmm.report.facts import LAG, TrackFacts
from dphmm.report.ground import Ground
from dphmm.report.page import drawn_besides, scenario_page
from dphmm.report.private import PrivateErrors, Truth, private_errors, read_truth

__all__ = [
    "LAG",
    "Ground",
    "PrivateErrors",
    "TrackFacts",
    "Truth",
    "design_page",
    "drawn_besides",
    "private_errors",
    "read_truth",
    "scenario_page",
]
