"""Private release of what a Markov chain is doing, under a policy drawn as a graph."""

from dphmm.accounting import (
    PrivacyStatement,
    compose,
    constrained_epsilon,
    event_epsilon,
    privacy_statement,
    sequence_epsilon,
    window_epsilon,
)
from dphmm.batch import Batch, BatchRelease
from dphmm.belief import Belief
from dphmm.chains import SecondOrderModel, TimeVaryingModel
from dphmm.errors import (
    ArgumentError,
    BudgetError,
    CollapsedAnswersWarning,
    DataError,
    DphmmError,
    ExposureError,
    GeometryError,
    MissingExtraError,
    ScenarioError,
    StoreError,
    TooLargeError,
)
from dphmm.hull import SensitivityHull, sensitivity_hull
from dphmm.ledger import Entry, Ledger, as_epsilon
from dphmm.markov import MarkovModel
from dphmm.mechanisms import Mechanism
from dphmm.plan import Plan
from dphmm.policy import PolicyGraph
from dphmm.protection import degree_of_protection, exposed, is_protectable, unprotected
from dphmm.query import Query
from dphmm.repair import added_edges, protect
from dphmm.shapes import enlarged
from dphmm.snapshot import restore, snapshot
from dphmm.stream import Release, Stream

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "Batch",
    "BatchRelease",
    "Belief",
    "BudgetError",
    "CollapsedAnswersWarning",
    "DataError",
    "DphmmError",
    "Entry",
    "ExposureError",
    "GeometryError",
    "Ledger",
    "MarkovModel",
    "Mechanism",
    "MissingExtraError",
    "Plan",
    "PolicyGraph",
    "PrivacyStatement",
    "Query",
    "Release",
    "ScenarioError",
    "SecondOrderModel",
    "SensitivityHull",
    "StoreError",
    "Stream",
    "TimeVaryingModel",
    "TooLargeError",
    "added_edges",
    "as_epsilon",
    "compose",
    "constrained_epsilon",
    "degree_of_protection",
    "enlarged",
    "event_epsilon",
    "exposed",
    "is_protectable",
    "privacy_statement",
    "protect",
    "restore",
    "sensitivity_hull",
    "sequence_epsilon",
    "snapshot",
    "unprotected",
    "window_epsilon",
]
