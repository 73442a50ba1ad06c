"""Private release of what a Markov chain is doing, under a policy drawn as a graph."""

from dphmm.chain.belief import Belief
from dphmm.chain.chains import SecondOrderModel, TimeVaryingModel
from dphmm.chain.markov import MarkovModel
from dphmm.cost import (
    PrivacyStatement,
    compose,
    constrained_epsilon,
    event_epsilon,
    privacy_statement,
    sequence_epsilon,
    window_epsilon,
)
from dphmm.cost.ledger import Entry, Ledger
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
from dphmm.geometry.exact import as_epsilon
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from dphmm.geometry.shapes import enlarge
from dphmm.noise.mechanism import Mechanism
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Plan
from dphmm.policy.protection import degree_of_protection, exposed, is_protectable, unprotected
from dphmm.policy.repair import added_edges, protect
from dphmm.policy.sensitivity import sensitivity_hull
from dphmm.release.batch import Batch, BatchRelease
from dphmm.release.snapshot import restore, snapshot
from dphmm.release.stream import Release, Stream

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
    "enlarge",
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
