"""Private release of what a Markov chain is doing, under a policy drawn as a graph."""

from dphmm.audit import audit_sampler
from dphmm.books.journal import Journal
from dphmm.books.memory import MemoryBook
from dphmm.books.store import Store
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
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from dphmm.geometry.shapes import enlarge
from dphmm.noise.mechanism import Mechanism
from dphmm.noise.randomness import KeyedRandomness, SecureRandomness, SeededRandomness
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Plan
from dphmm.policy.protection import degree_of_protection, exposed, is_protectable, unprotected
from dphmm.policy.repair import added_edges, protect
from dphmm.policy.sensitivity import sensitivity_hull
from dphmm.release.batch import Batch, BatchRelease
from dphmm.release.said import Release
from dphmm.release.standing import Standing
from dphmm.release.stream import Stream
from dphmm.scenario.checking import Check
from dphmm.scenario.scenario import Scenario
from dphmm.scenario.settings import Policy
from dphmm.tables.clock import Clock
from dphmm.tables.states import States

__version__ = "0.2.0"

__all__ = [
    "ArgumentError",
    "Batch",
    "BatchRelease",
    "Belief",
    "BudgetError",
    "Check",
    "Clock",
    "CollapsedAnswersWarning",
    "DataError",
    "DphmmError",
    "Entry",
    "ExposureError",
    "GeometryError",
    "Journal",
    "KeyedRandomness",
    "Ledger",
    "MarkovModel",
    "Mechanism",
    "MemoryBook",
    "MissingExtraError",
    "Plan",
    "Policy",
    "PolicyGraph",
    "PrivacyStatement",
    "Query",
    "Release",
    "Scenario",
    "ScenarioError",
    "SecondOrderModel",
    "SecureRandomness",
    "SeededRandomness",
    "SensitivityHull",
    "Standing",
    "States",
    "Store",
    "StoreError",
    "Stream",
    "TimeVaryingModel",
    "TooLargeError",
    "added_edges",
    "audit_sampler",
    "compose",
    "constrained_epsilon",
    "degree_of_protection",
    "enlarge",
    "event_epsilon",
    "exposed",
    "is_protectable",
    "privacy_statement",
    "protect",
    "sensitivity_hull",
    "sequence_epsilon",
    "unprotected",
    "window_epsilon",
]
