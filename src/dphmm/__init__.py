"""Private release of what a Markov chain is doing, under a policy drawn as a graph."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dphmm.chain.belief import Belief
from dphmm.chain.calendar import Calendar
from dphmm.chain.chains import TimeVaryingModel
from dphmm.chain.lagging import FixedLag
from dphmm.chain.markov import Chain, MarkovModel
from dphmm.chain.memory import MemoryModel
from dphmm.cost.charges import Charge
from dphmm.cost.history import History
from dphmm.cost.ledger import Entry, Ledger
from dphmm.cost.limit import Limit
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
    ServiceError,
    StoreError,
    TooLargeError,
    UnknownLawWarning,
)
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from dphmm.geometry.shapes import enlarge
from dphmm.noise.mechanism import Mechanism
from dphmm.noise.randomness import KeyedRandomness, Randomness, SecureRandomness, SeededRandomness
from dphmm.noise.staircase import best_gamma
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Plan
from dphmm.policy.protection import degree_of_protection, exposed, is_protectable, unprotected
from dphmm.policy.repair import added_edges, protect
from dphmm.policy.sensitivity import sensitivity_hull
from dphmm.release.answers import BatchRelease
from dphmm.release.batch import Batch
from dphmm.release.lagging import Estimates
from dphmm.release.said import Release
from dphmm.release.schedule import Schedule
from dphmm.release.standing import Standing
from dphmm.release.stream import Stream

if TYPE_CHECKING:
    from dphmm.audit import audit_sampler
    from dphmm.books.journal import Journal
    from dphmm.books.memory import MemoryBook
    from dphmm.books.store import Store
    from dphmm.chain.momentum import MomentumModel
    from dphmm.chain.pairs import SecondOrderModel
    from dphmm.client import AsyncClient, Client
    from dphmm.cost.adversary import (
        attack,
        guarantee_against,
        largest_gains,
        private_identification_rate,
        private_score,
        suspect_probabilities,
    )
    from dphmm.cost.blowfish import Blowfish, Secret, counting_query
    from dphmm.cost.bracket import (
        sequence_bracket,
    )
    from dphmm.cost.charges import (
        constrained_epsilon,
        worst_pair,
    )
    from dphmm.cost.composition import (
        compose,
    )
    from dphmm.cost.leakage import (
        Leakage,
        realised_leakage,
        temporal_leakage,
    )
    from dphmm.cost.local_noise import LocalRelease
    from dphmm.cost.privacy_loss import (
        PrivacyLoss,
        privacy_loss,
    )
    from dphmm.cost.realised import (
        realised_odds,
    )
    from dphmm.cost.sequences import (
        paper_sequence_epsilon,
        sequence_epsilon,
    )
    from dphmm.cost.statement import (
        PrivacyStatement,
        privacy_statement,
    )
    from dphmm.cost.whereabouts import (
        Whereabouts,
        whereabouts,
    )
    from dphmm.cost.windows import (
        event_epsilon,
        window_epsilon,
    )
    from dphmm.evaluate import compare
    from dphmm.noise.bound import least_error
    from dphmm.noise.reference import reference_knorm
    from dphmm.scenario.budgeting import BudgetDesign, find_budget, find_schedule
    from dphmm.scenario.checking import Check
    from dphmm.scenario.designing import Design, find_epsilon, find_radius
    from dphmm.scenario.judging import Judgement
    from dphmm.scenario.private import learn_private
    from dphmm.scenario.scenario import Scenario
    from dphmm.scenario.settings import Policy
    from dphmm.scenario.spending import Spending
    from dphmm.tables import datasets
    from dphmm.tables.clock import Clock
    from dphmm.tables.states import States

__version__ = "0.2.0"

__all__ = [
    "ArgumentError",
    "AsyncClient",
    "Batch",
    "BatchRelease",
    "Belief",
    "Blowfish",
    "BudgetDesign",
    "BudgetError",
    "Calendar",
    "Chain",
    "Charge",
    "Check",
    "Client",
    "Clock",
    "CollapsedAnswersWarning",
    "DataError",
    "Design",
    "DphmmError",
    "Entry",
    "Estimates",
    "ExposureError",
    "FixedLag",
    "GeometryError",
    "History",
    "Journal",
    "Judgement",
    "KeyedRandomness",
    "Leakage",
    "Ledger",
    "Limit",
    "LocalRelease",
    "MarkovModel",
    "Mechanism",
    "MemoryBook",
    "MemoryModel",
    "MissingExtraError",
    "MomentumModel",
    "Plan",
    "Policy",
    "PolicyGraph",
    "PrivacyLoss",
    "PrivacyStatement",
    "Query",
    "Randomness",
    "Release",
    "Scenario",
    "ScenarioError",
    "Schedule",
    "SecondOrderModel",
    "Secret",
    "SecureRandomness",
    "SeededRandomness",
    "SensitivityHull",
    "ServiceError",
    "Spending",
    "Standing",
    "States",
    "Store",
    "StoreError",
    "Stream",
    "TimeVaryingModel",
    "TooLargeError",
    "UnknownLawWarning",
    "Whereabouts",
    "added_edges",
    "attack",
    "audit_sampler",
    "best_gamma",
    "compare",
    "compose",
    "constrained_epsilon",
    "counting_query",
    "datasets",
    "degree_of_protection",
    "enlarge",
    "event_epsilon",
    "exposed",
    "find_budget",
    "find_epsilon",
    "find_radius",
    "find_schedule",
    "guarantee_against",
    "is_protectable",
    "largest_gains",
    "learn_private",
    "least_error",
    "paper_sequence_epsilon",
    "privacy_loss",
    "privacy_statement",
    "private_identification_rate",
    "private_score",
    "protect",
    "realised_leakage",
    "realised_odds",
    "reference_knorm",
    "sensitivity_hull",
    "sequence_bracket",
    "sequence_epsilon",
    "suspect_probabilities",
    "temporal_leakage",
    "unprotected",
    "whereabouts",
    "window_epsilon",
    "worst_pair",
]

_LATER = {
    "AsyncClient": "dphmm.client",
    "Blowfish": "dphmm.cost.blowfish",
    "BudgetDesign": "dphmm.scenario.budgeting",
    "Check": "dphmm.scenario.checking",
    "Client": "dphmm.client",
    "Clock": "dphmm.tables.clock",
    "Design": "dphmm.scenario.designing",
    "Journal": "dphmm.books.journal",
    "Judgement": "dphmm.scenario.judging",
    "Leakage": "dphmm.cost.leakage",
    "LocalRelease": "dphmm.cost.local_noise",
    "MemoryBook": "dphmm.books.memory",
    "MomentumModel": "dphmm.chain.momentum",
    "Policy": "dphmm.scenario.settings",
    "PrivacyLoss": "dphmm.cost.privacy_loss",
    "PrivacyStatement": "dphmm.cost.statement",
    "Scenario": "dphmm.scenario.scenario",
    "SecondOrderModel": "dphmm.chain.pairs",
    "Secret": "dphmm.cost.blowfish",
    "Spending": "dphmm.scenario.spending",
    "States": "dphmm.tables.states",
    "Store": "dphmm.books.store",
    "Whereabouts": "dphmm.cost.whereabouts",
    "attack": "dphmm.cost.adversary",
    "audit_sampler": "dphmm.audit",
    "compose": "dphmm.cost.composition",
    "constrained_epsilon": "dphmm.cost.charges",
    "counting_query": "dphmm.cost.blowfish",
    "event_epsilon": "dphmm.cost.windows",
    "find_budget": "dphmm.scenario.budgeting",
    "find_epsilon": "dphmm.scenario.designing",
    "find_radius": "dphmm.scenario.designing",
    "find_schedule": "dphmm.scenario.budgeting",
    "guarantee_against": "dphmm.cost.adversary",
    "largest_gains": "dphmm.cost.adversary",
    "learn_private": "dphmm.scenario.private",
    "least_error": "dphmm.noise.bound",
    "paper_sequence_epsilon": "dphmm.cost.sequences",
    "privacy_loss": "dphmm.cost.privacy_loss",
    "privacy_statement": "dphmm.cost.statement",
    "private_identification_rate": "dphmm.cost.adversary",
    "private_score": "dphmm.cost.adversary",
    "realised_leakage": "dphmm.cost.leakage",
    "realised_odds": "dphmm.cost.realised",
    "reference_knorm": "dphmm.noise.reference",
    "sequence_bracket": "dphmm.cost.bracket",
    "sequence_epsilon": "dphmm.cost.sequences",
    "suspect_probabilities": "dphmm.cost.adversary",
    "temporal_leakage": "dphmm.cost.leakage",
    "whereabouts": "dphmm.cost.whereabouts",
    "window_epsilon": "dphmm.cost.windows",
    "worst_pair": "dphmm.cost.charges",
}
"""Names that a release does not need, and where they are: imported when somebody asks."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Names of `_LATER`, two packages, and the rooms themselves, imported at first use."""
        if name in _LATER:
            found = getattr(import_module(_LATER[name]), name)
        elif name == "compare":
            found = import_module("dphmm.evaluate.compare")
        elif name == "datasets":
            found = import_module("dphmm.tables.datasets")
        elif name in ("books", "scenario", "tables"):
            found = import_module(f"dphmm.{name}")
        else:
            raise AttributeError(f"module 'dphmm' has no attribute {name!r}")
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
