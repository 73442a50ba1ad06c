"""Scenarios and their files: states, model, policy, budget, trips and the ledger on disk."""

from __future__ import annotations

from dphmm.geometry.exact import as_text
from dphmm.scenario.models import PUBLIC_SOURCE, LearnedModel, read_model, write_model
from dphmm.scenario.scenario import Scenario
from dphmm.scenario.settings import Policy, Settings
from dphmm.tables.clock import Clock
from dphmm.tables.files import whole_file, write_whole
from dphmm.tables.states import States
from dphmm.tables.trips import Row, read_trips

__all__ = [
    "PUBLIC_SOURCE",
    "Clock",
    "LearnedModel",
    "Policy",
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
