"""Scenarios and their files: states, model, policy, budget, trips and the ledger on disk."""

from __future__ import annotations

from dphmm.scenario.clock import Clock
from dphmm.scenario.files import whole_file, write_whole
from dphmm.scenario.journal import Journal
from dphmm.scenario.models import PUBLIC_SOURCE, LearnedModel, read_model, write_model
from dphmm.scenario.releasing import Answer, Releaser
from dphmm.scenario.scenario import Scenario
from dphmm.scenario.settings import Policy, Settings, as_text
from dphmm.scenario.states import States
from dphmm.scenario.trips import Row, read_trips

__all__ = [
    "PUBLIC_SOURCE",
    "Answer",
    "Clock",
    "Journal",
    "LearnedModel",
    "Policy",
    "Releaser",
    "Row",
    "Scenario",
    "Settings",
    "States",
    "as_text",
    "read_model",
    "read_trips",
    "whole_file",
    "write_model",
    "write_whole",
]
