"""Wrong arguments: every public function refuses them in the house's words, by their name."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest

from dphmm.chain.belief import Belief
from dphmm.chain.chains import TimeVaryingModel
from dphmm.chain.every import EveryModel
from dphmm.chain.markov import MarkovModel
from dphmm.chain.memory import MemoryModel
from dphmm.chain.pairs import SecondOrderModel
from dphmm.cost import (
    Charge,
    History,
    compose,
    constrained_epsilon,
    event_epsilon,
    paper_sequence_epsilon,
    path_epsilon,
    privacy_statement,
    realised_odds,
    sequence_bracket,
    sequence_epsilon,
    window_epsilon,
    worst_pair,
)
from dphmm.cost.adversary import (
    attack,
    guarantee_against,
    largest_gains,
    private_identification_rate,
    private_score,
    suspect_probabilities,
)
from dphmm.cost.blowfish import Blowfish, Secret, counting_query
from dphmm.cost.local_noise import LocalRelease, local_hull
from dphmm.errors import ArgumentError, expect
from dphmm.geometry.exact import as_epsilon, exact, whole
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from dphmm.geometry.shapes import enlarge
from dphmm.geometry.states import state_number
from dphmm.noise.mechanism import Mechanism, body_for
from dphmm.noise.reference import reference_knorm
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.protection import degree_of_protection, exposed, is_protectable, unprotected
from dphmm.policy.repair import added_edges, protect
from dphmm.policy.sensitivity import sensitivity_hull
from tests import paper

QUERY = Query(paper.VALUES)
POLICY = PolicyGraph.by_category(paper.CATEGORIES)
MODEL = MarkovModel(paper.TRANSITION)
HULL = sensitivity_hull(QUERY, POLICY)
CHARGE = Charge(QUERY, HULL, 1)
HISTORY = History(MODEL, [[CHARGE]] * 3, start=0)
BELIEF = Belief.uniform(6)
NOISE = Mechanism(QUERY, HULL, 1)
TURNS = TimeVaryingModel([MODEL, MODEL])
TERM = {"zeros": "guesses", "anywhere": 0.1, "density": [0.5, 0.5]}
PAIRS = SecondOrderModel.fit([[0, 1, 0, 0, 1, 0, 0]], n_states=2, zeros="facts")
SEEN = np.zeros((2, 6))
FOUND = attack(SEEN, model=MODEL, start=3)
TRUTH = [4, 5]
RNG = np.random.default_rng(0)
SECRETS = [Secret("Ann", "flu"), Secret("Ann", "cancer")]
COUNTS = counting_query(SECRETS, [lambda secret: secret.value == "cancer"])
TABLE = Blowfish(SECRETS, COUNTS, edges=[(0, 1)])
LOCAL = LocalRelease.local(QUERY, POLICY, 1, [1, 2])

GOOD = {
    as_epsilon: {"epsilon": 1},
    exact: {"number": 1},
    Query: {"values": [0, 1], "step": 1, "name": "place"},
    QUERY.in_units: {"lattice": [1, 2]},
    QUERY.on_lattice: {"answers": [1, 2]},
    QUERY.nearest_states: {"states": [0], "possible": [1]},
    SensitivityHull.from_vertices: {"vertices": [[1, 2]], "step": 1},
    SensitivityHull.from_lattice: {"vectors": np.array([[1, 2]]), "step": 1},
    HULL.mean_squared_error: {"epsilon": 1},
    HULL.norm: {"vector": [1, 2]},
    HULL.contains: {"vector": [1, 2]},
    HULL.lattice_norm: {"vector": np.array([1, 2])},
    HULL.lattice_norms: {"vectors": np.array([[1, 2]])},
    HULL.lattice_contains: {"vectors": np.array([[1, 2]])},
    HULL.largest_lattice_norm: {"points": np.array([[1, 2]])},
    enlarge: {"hull": HULL},
    Belief.certain: {"state": 0, "n_states": 6},
    Belief.uniform: {"n_states": 6},
    Belief.from_probabilities: {"probabilities": [0.5, 0.5]},
    Belief.from_log_probabilities: {"log_probabilities": [0.0, 0.0]},
    Belief.known: {"start": 0, "n_states": 6},
    BELIEF.predict: {"model": MODEL},
    BELIEF.condition: {"log_likelihood": np.zeros(6)},
    BELIEF.mean: {"values": np.zeros(6)},
    MarkovModel: {"transition": [[1.0]]},
    MODEL.at: {"time": 1},
    TURNS.at: {"time": 1},
    MODEL.successors: {"possible": [0]},
    MarkovModel.fit: {
        "sequences": [[0, 1]],
        "n_states": 2,
        "smoothing": 0.5,
        "support": np.eye(2),
        **TERM,
    },
    MarkovModel.from_counts: {"counts": np.eye(2), "smoothing": 0.5, "support": np.eye(2), **TERM},
    MODEL.filter: {"observations": SEEN, "start": 3, "time": 0},
    MODEL.smooth: {"observations": SEEN, "start": 3, "time": 0},
    MODEL.decode: {"observations": SEEN, "start": 3, "time": 0},
    MODEL.score: {"observations": SEEN, "start": 3, "time": 0},
    MODEL.sample: {"length": 3, "rng": RNG, "start": 3, "time": 0},
    MODEL.fit_em: {
        "sequences": [SEEN],
        "start": 3,
        "n_iter": 1,
        "tolerance": 1e-6,
        "smoothing": 0.5,
    },
    TimeVaryingModel: {"models": [MODEL, MODEL], "schedule": [0, 1]},
    TimeVaryingModel.fit: {
        "sequences": [[0, 1, 0]],
        "n_states": 2,
        "n_models": 2,
        "schedule": [0, 1],
        "first_times": [0],
        "smoothing": 0.5,
        "support": np.eye(2),
        **TERM,
    },
    SecondOrderModel: {
        "transition": PAIRS.transition,
        "pairs": PAIRS.pairs,
        "n_places": 2,
    },
    MemoryModel: {
        "transition": PAIRS.transition,
        "current": PAIRS.current,
        "fresh": PAIRS.memory.fresh,
        **{"anywhere": 0.1, "density": [0.5, 0.5]},
    },
    PAIRS.filter: {"observations": np.zeros((2, 2)), "start": 0, "time": 0},
    PAIRS.place_belief: {"belief": Belief.uniform(4)},
    MODEL.every: {"steps": 2},
    EveryModel: {"base": PAIRS, "steps": 2},
    SecondOrderModel.fit: {"sequences": [[0, 1, 0]], "n_states": 2, "smoothing": 0.5, **TERM},
    PAIRS.encode: {"sequence": [0, 1, 0]},
    body_for: {"mechanism": "knorm", "shape": "hull"},
    Mechanism: {"query": QUERY, "body": HULL, "epsilon": 1},
    NOISE.sample_lattice: {"state": 0, "randomness": None, "context": (), "possible": [0, 1]},
    NOISE.sample_lattice_many: {"state": 0, "size": 2, "randomness": None},
    NOISE.lattice_log_likelihood: {"lattice": [1, 2]},
    NOISE.lattice_log_probability: {"lattice": [1, 2]},
    reference_knorm: {
        "query": QUERY,
        "body": HULL,
        "epsilon": 1,
        "state": 0,
        "rng": RNG,
        "size": 2,
        "isotropic": False,
    },
    PolicyGraph: {"n_states": 3, "edges": [(0, 1)], "cliques": [[0, 1]]},
    PolicyGraph.complete: {"n_states": 3},
    PolicyGraph.by_category: {"labels": "abca"},
    PolicyGraph.within_distance: {"query": QUERY, "radius": 1},
    PolicyGraph.one_step: {"model": MODEL},
    PolicyGraph.from_networkx: {"graph": POLICY.to_networkx()},
    POLICY.neighbors: {"state": 0},
    POLICY.has_edge: {"a": 0, "b": 1},
    POLICY.restricted_to: {"possible": [0, 1]},
    POLICY.with_edges: {"edges": [(0, 1)]},
    POLICY.without_edges: {"edges": [(1, 2)]},
    sensitivity_hull: {"query": QUERY, "policy": POLICY, "possible": [1, 2]},
    degree_of_protection: {"query": QUERY, "policy": POLICY, "possible": [1, 2], "hull": HULL},
    exposed: {"query": QUERY, "policy": POLICY, "possible": [1, 2], "hull": HULL},
    is_protectable: {"query": QUERY, "policy": POLICY, "possible": [1, 2], "hull": HULL},
    unprotected: {"query": QUERY, "policy": POLICY, "possible": [1, 2], "hull": HULL},
    protect: {
        "query": QUERY,
        "policy": POLICY,
        "possible": [0, 1, 2],
        "method": "nearest",
        "full_rank": True,
        "body": SensitivityHull.l1_ball,
        "partners": {0: 1},
    },
    added_edges: {
        "query": QUERY,
        "policy": POLICY,
        "possible": [0, 1, 2],
        "method": "nearest",
        "full_rank": True,
        "body": SensitivityHull.l1_ball,
        "partners": {0: 1},
    },
    Charge: {"query": QUERY, "hull": HULL, "epsilon": 1},
    constrained_epsilon: {"query": QUERY, "hull": HULL, "epsilon": 1, "possible": [1, 2]},
    worst_pair: {"query": QUERY, "hull": HULL, "epsilon": 1, "possible": [1, 2]},
    compose: {"charges": [CHARGE], "possible": [1, 2]},
    History: {
        "model": MODEL,
        "charges": [[CHARGE]],
        "start": 0,
        "possible": [[1, 2]],
        "time": 0,
    },
    History.of: {
        "query": QUERY,
        "model": MODEL,
        "hulls": [HULL],
        "epsilon": 1,
        "start": 0,
        "possible": [[1, 2]],
        "time": 0,
    },
    HISTORY.states: {"step": 0},
    HISTORY.moves: {"step": 1},
    sequence_epsilon: {"history": HISTORY},
    paper_sequence_epsilon: {"history": HISTORY},
    event_epsilon: {"history": HISTORY},
    window_epsilon: {"history": HISTORY, "width": 1},
    sequence_bracket: {"history": HISTORY},
    path_epsilon: {"history": HISTORY, "path": [1, 2, 2], "other": [2, 2, 2]},
    privacy_statement: {
        "history": HISTORY,
        "width": 1,
        "prior": np.full((3, 6), 1 / 6),
        "posterior": np.full((3, 6), 1 / 6),
        "adaptive": False,
    },
    realised_odds: {"prior": [0.5, 0.5], "posterior": [0.5, 0.5]},
    counting_query: {"secrets": SECRETS, "conditions": [lambda secret: True]},
    Blowfish: {
        "secrets": SECRETS,
        "query": COUNTS,
        "edges": [(0, 1)],
        "null_edges": [0],
        "possible": [0, 1],
    },
    TABLE.graph: {"neighbors": "both"},
    TABLE.hull: {"neighbors": "both"},
    TABLE.body: {"mechanism": "knorm", "neighbors": "both"},
    TABLE.existence_epsilon: {"epsilon": 1, "mechanism": "knorm", "neighbors": "both"},
    TABLE.overall_epsilon: {
        "epsilon": 1,
        "mechanism": "knorm",
        "neighbors": "both",
        "protect": "bounded",
    },
    TABLE.protected_by: {"secret": 0, "mechanism": "knorm", "neighbors": "both"},
    guarantee_against: {
        "query": QUERY,
        "policy": POLICY,
        "body": HULL,
        "epsilon": 1,
        "possible": [1, 2],
        "known": [1],
    },
    largest_gains: {"mechanism": NOISE, "prior": 0},
    attack: {"observations": SEEN, "model": MODEL, "start": 3},
    private_score: {"found": FOUND, "truth": TRUTH, "query": QUERY, "model": MODEL, "start": 3},
    suspect_probabilities: {
        "observations": SEEN,
        "suspects": [(MODEL, 3), (MODEL, 1)],
        "prior": [0.5, 0.5],
    },
    private_identification_rate: {"probabilities": [[0.5, 0.5]], "owners": [0]},
    local_hull: {"query": QUERY, "policy": POLICY, "state": 1, "possible": [1, 2]},
    LocalRelease: {"query": QUERY, "epsilon": 1, "hulls": {1: HULL}},
    LocalRelease.local: {"query": QUERY, "policy": POLICY, "epsilon": 1, "possible": [1, 2]},
    LocalRelease.shared: {"query": QUERY, "body": HULL, "epsilon": 1, "possible": [1, 2]},
    LOCAL.sample_lattice: {"state": 1, "randomness": None},
    LOCAL.lattice_candidates: {"lattice": [1, 2]},
}

WRONG = [None, "text", 1.5, -1, float("nan"), object(), [["a", "b"]], [], QUERY, POLICY, HULL]


class AcceptedError(Exception):
    """A value that is fine for an argument after all."""


def accept(function, arguments):
    function(**arguments)
    raise AcceptedError


@pytest.mark.parametrize("function", GOOD, ids=lambda function: function.__qualname__)
def test_the_arguments_below_are_right(function):
    function(**GOOD[function])


@pytest.mark.parametrize(
    ("function", "argument"),
    [
        pytest.param(function, argument, id=f"{function.__qualname__}-{argument}")
        for function, arguments in GOOD.items()
        for argument in arguments
    ],
)
def test_a_wrong_argument_is_refused_by_its_name(function, argument):
    # Two arguments that do not fit each other may be told by either name.
    names = "|".join(GOOD[function])
    for wrong in WRONG:
        with suppress(AcceptedError), pytest.raises(ArgumentError, match=rf"^({names})\b.* must"):
            accept(function, {**GOOD[function], argument: wrong})


# The cases that were found


def test_swapped_arguments_are_named():
    with pytest.raises(ArgumentError, match="query must be a Query, got PolicyGraph"):
        exposed(POLICY, QUERY)
    with pytest.raises(ArgumentError, match="query must be a Query, got SensitivityHull"):
        Mechanism(HULL, QUERY, 1)
    with pytest.raises(ArgumentError, match="hull must be a SensitivityHull, got Query"):
        constrained_epsilon(QUERY, QUERY, 1)
    with pytest.raises(ArgumentError, match="found must be an Attack, got list"):
        private_score([], TRUTH, QUERY, model=MODEL, start=3)


def test_a_float_epsilon_is_its_decimal():
    assert Mechanism(QUERY, HULL, 0.5).epsilon == Fraction(1, 2)
    assert Mechanism(QUERY, HULL, 0.1).epsilon == Fraction(1, 10)
    assert LocalRelease(QUERY, 0.1, {1: HULL}).epsilon == Fraction(1, 10)


def test_a_message_names_the_argument_that_was_given():
    for function, argument in (
        (lambda: PolicyGraph.within_distance(QUERY, "far"), "radius"),
        (lambda: Query([0, 1], step="coarse"), "step"),
        (lambda: HULL.norm(["a", 1]), "vector"),
        (lambda: HULL.mean_squared_error("some"), "epsilon"),
    ):
        with pytest.raises(ArgumentError, match=f"^{argument} must be finite and rational, got"):
            function()


# The checkers


def test_a_whole_number_is_an_integer_and_no_truth():
    assert whole(np.int32(3), "size") == 3
    assert whole(-3, "time", None) == -3
    for wrong in (True, 3.0, "3", None):
        with pytest.raises(ArgumentError, match=r"^size must be a whole number, got"):
            whole(wrong, "size", 1)
    with pytest.raises(ArgumentError, match=r"^size must be at least 1, got 0$"):
        whole(0, "size", 1)


def test_a_state_is_never_shown():
    assert state_number(np.int64(2), 3) == 2
    for wrong in (41, -41):
        with pytest.raises(ArgumentError, match="state must be one of the 3 states") as caught:
            state_number(wrong, 3)
        assert "41" not in str(caught.value)
    for wrong in (True, "41", 41.0, None):
        with pytest.raises(ArgumentError, match="state must be a state's number") as caught:
            state_number(wrong, 3)
        assert "41" not in str(caught.value)


def test_expect_names_the_argument_and_both_types():
    expect(QUERY, Query, "query")
    with pytest.raises(ArgumentError, match=r"^query must be a Query, got NoneType$"):
        expect(None, Query, "query")
    with pytest.raises(ArgumentError, match=r"^error must be an ArgumentError, got int$"):
        expect(1, ArgumentError, "error")
