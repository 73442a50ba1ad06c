"""Other libraries' objects in and out, with the real libraries."""

from __future__ import annotations

import importlib
from datetime import UTC, datetime
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import networkx
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dphmm
from dphmm import ArgumentError, Belief, MarkovModel, MissingExtraError, Plan, PolicyGraph, Query
from dphmm.client.arrows import as_arrow

MODEL = MarkovModel([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.0, 0.25, 0.75]])
LEARNED = MarkovModel.fit([[0, 1, 2, 2, 1, 0]], n_states=3)


# hmmlearn


@pytest.fixture(scope="module")
def hmm() -> Any:
    return pytest.importorskip("hmmlearn.hmm")


def test_a_fitted_hmmlearn_model_scores_alike_here(hmm: Any) -> None:
    rng = np.random.default_rng(3)
    path = MODEL.sample(300, rng=rng, start=0)
    seen = (np.array([0.0, 4.0, 9.0])[path] + rng.normal(0, 0.7, 300))[:, None]
    theirs = hmm.GaussianHMM(n_components=3, n_iter=30, random_state=1).fit(seen)
    ours = MarkovModel.from_hmmlearn(theirs, zeros="facts")
    rows = theirs._compute_log_likelihood(seen)
    first = Belief.from_probabilities(theirs.startprob_)
    start, evidence = first._condition(rows[0], "rows[0]")
    assert evidence + ours.score(rows[1:], start=start) == pytest.approx(
        theirs.score(seen), rel=1e-9
    )
    _, path = theirs.decode(seen)
    assert ours.decode(rows[1:], start=start)[1].tolist() == path[1:].tolist()


@pytest.mark.parametrize("model", [MODEL, LEARNED], ids=["stated", "learned"])
def test_a_model_goes_to_hmmlearn_and_back(hmm: Any, model: MarkovModel) -> None:
    theirs = model.to_hmmlearn(start=0, n_features=2)
    theirs.emissionprob_ = np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    seen = np.array([[0], [0], [1], [1], [0]])
    rows = np.log(theirs.emissionprob_.T[seen[:, 0]])
    assert theirs.score(seen) == pytest.approx(model.score(rows, start=0), rel=1e-12)
    back = MarkovModel.from_hmmlearn(theirs, zeros="facts")
    whole = model.outgoing.toarray() + model.jumps
    np.testing.assert_allclose(back.transition.toarray(), whole, rtol=1e-15, atol=0)


def test_what_hmmlearn_learned_rules_nothing_out(hmm: Any) -> None:
    theirs = MODEL.to_hmmlearn(start=0)
    assert MarkovModel.from_hmmlearn(theirs).anywhere == 0.01
    assert not MarkovModel.from_hmmlearn(theirs).has_stated_zeros
    assert MarkovModel.from_hmmlearn(theirs, zeros="facts").has_stated_zeros


def test_hmmlearn_models_that_are_none(hmm: Any) -> None:
    with pytest.raises(ArgumentError, match="model must be an hmmlearn model with transmat_, got"):
        MarkovModel.from_hmmlearn(hmm.GaussianHMM())
    with pytest.raises(ArgumentError, match=r"kind must be a class of hmmlearn\.hmm, got 'Such'"):
        MODEL.to_hmmlearn(0, kind="Such")
    wrong = SimpleNamespace(transmat_=[[0.5, 0.4], [0.5, 0.5]])
    with pytest.raises(ArgumentError, match=r"must have rows that sum to one, got 0\.9 in row 0"):
        MarkovModel.from_hmmlearn(wrong)


# dynamax


def in_single_precision(arrays: dict[str, Any]) -> Any:
    """What dynamax keeps of the arrays, by the names of its own parameters."""
    matrix = np.asarray(arrays["transition_matrix"], dtype=np.float32)
    return SimpleNamespace(transitions=SimpleNamespace(transition_matrix=matrix))


def test_parameters_go_to_dynamax_and_back() -> None:
    arrays = LEARNED.to_dynamax(start=0)
    np.testing.assert_allclose(arrays["initial_probs"], arrays["transition_matrix"][0], rtol=1e-15)
    back = MarkovModel.from_dynamax(in_single_precision(arrays), zeros="facts")
    np.testing.assert_allclose(back.transition.toarray(), arrays["transition_matrix"], rtol=1e-6)
    assert MarkovModel.from_dynamax(in_single_precision(arrays)).anywhere == 0.01
    with pytest.raises(ArgumentError, match="parameters must be those of a dynamax HMM"):
        MarkovModel.from_dynamax(arrays)


def test_dynamax_itself_takes_them_and_scores_alike() -> None:
    # It brings jax and a gigabyte: not in the lock.
    models = pytest.importorskip(
        "dynamax.hidden_markov_model", reason="dynamax is not installed: pip install dynamax"
    )
    shown = np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    theirs = models.CategoricalHMM(3, 1, 2)
    numbers = importlib.import_module("jax.numpy").asarray(shown[:, None, :])
    parameters, _ = theirs.initialize(emission_probs=numbers, **MODEL.to_dynamax(0))
    seen = np.array([[0], [0], [1], [1], [0]])
    score = MODEL.score(np.log(shown.T[seen[:, 0]]), start=0)
    assert float(theirs.marginal_log_prob(parameters, seen)) == pytest.approx(score, rel=1e-5)
    back = MarkovModel.from_dynamax(parameters, zeros="facts")
    np.testing.assert_allclose(back.transition.toarray(), MODEL.transition.toarray(), rtol=1e-6)


# networkx


@given(st.integers(1, 6), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.125]))
def test_a_chain_goes_to_networkx_and_back(n: int, seed: int, anywhere: float) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 3, (n, n)) + np.eye(n)
    model = MarkovModel(counts / counts.sum(axis=1, keepdims=True), anywhere=anywhere)
    back = MarkovModel.from_networkx(model.to_networkx())
    np.testing.assert_allclose(
        back.transition.toarray(), model.transition.toarray(), rtol=1e-12, atol=0
    )
    assert back.anywhere == model.anywhere
    np.testing.assert_array_equal(back.density, model.density)


def test_a_walk_on_an_undirected_graph_goes_both_ways() -> None:
    model = MarkovModel.from_networkx(networkx.path_graph(3))
    assert model.transition.toarray().tolist() == [[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]]
    assert model.has_stated_zeros


def test_graphs_that_are_no_chains() -> None:
    with pytest.raises(ArgumentError, match="graph must be a networkx graph, got list"):
        MarkovModel.from_networkx([])
    with pytest.raises(ArgumentError, match=r"graph must have the nodes 0\.\.1, got other names"):
        MarkovModel.from_networkx(networkx.DiGraph([("a", "b")]))
    with pytest.raises(ArgumentError, match="weight above 0 out of every node, got none at node 1"):
        MarkovModel.from_networkx(networkx.DiGraph([(0, 1)]))
    below = networkx.DiGraph()
    below.add_edge(0, 0, weight=-1)
    with pytest.raises(ArgumentError, match="graph must not be negative"):
        MarkovModel.from_networkx(below)


def test_a_policy_goes_to_networkx_and_back() -> None:
    policy = PolicyGraph.by_category(["a", "b", "a", "b", "a"])
    back = PolicyGraph.from_networkx(policy.to_networkx())
    np.testing.assert_array_equal(back.edges, policy.edges)


# OpenDP

QUERY = Query([[0, 0], [1, 0], [2, 0], [5, 5]], step="0.5")
POLICY = PolicyGraph(4, [(0, 1), (1, 2)])


@pytest.fixture(scope="module")
def dp() -> Any:
    prelude = pytest.importorskip("opendp.prelude")
    prelude.enable_features("contrib", "honest-but-curious")
    yield prelude
    prelude.disable_features("contrib", "honest-but-curious")


@pytest.mark.parametrize("mechanism", ["knorm", "staircase", "laplace"])
def test_the_privacy_map_bounds_the_exact_loss_of_every_pair(dp: Any, mechanism: str) -> None:
    """OpenDP asks: if states are d_in apart, are the answers' laws map(d_in) apart at most?"""
    # Half a link lies between 0 and 1, where a staircase loses as much as on a whole one.
    plan = Plan(PolicyGraph(4, [(0, 2), (1, 2)]), QUERY, mechanism=mechanism)
    measurement = plan.to_opendp("0.5")
    step = plan.at([0, 1, 2, 3])
    law = step.mechanism(Fraction(1, 2))
    grid = np.stack(np.meshgrid(np.arange(-30, 31), np.arange(-30, 31)), axis=-1).reshape(-1, 2)
    logs = np.array([law.lattice_log_probability(point) for point in grid.tolist()])
    for a in range(4):
        for b in range(4):
            apart = step.body.norm(QUERY.values[a] - QUERY.values[b])
            loss = measurement.map(float(apart))
            assert np.abs(logs[:, a] - logs[:, b]).max() <= loss + 1e-9
            assert measurement.check(float(apart), loss)
            if mechanism == "knorm" and a != b:
                assert np.abs(logs[:, a] - logs[:, b]).max() == pytest.approx(loss, rel=1e-9)
                assert not measurement.check(float(apart), loss * 0.999)
    for a, b in step.policy.edges.tolist():
        assert step.body.norm(QUERY.values[a] - QUERY.values[b]) <= 1


def test_losses_are_rounded_up(dp: Any) -> None:
    measurement = Plan(POLICY, QUERY).to_opendp("0.3")
    assert Fraction(measurement.map(1)) > Fraction(3, 10)
    assert measurement.map(0) == 0
    assert measurement.map(np.inf) == np.inf


def test_openDP_composes_measurements_of_ours(dp: Any) -> None:  # noqa: N802
    measurement = Plan(POLICY, QUERY).to_opendp("0.5", possible=[0, 1, 2])
    both = dp.c.make_composition([measurement, measurement])
    assert both.map(1) == 1.0
    first, second = both(1)
    assert len(first) == len(second) == 2
    assert all(number * 2 == int(number * 2) for number in (*first, *second))


def test_an_impossible_state_is_answered_as_the_nearest_possible_one(dp: Any) -> None:
    # At this price another answer than the state's own has a chance below e**-100.
    measurement = Plan(POLICY, QUERY).to_opendp(1000, possible=[0, 1, 2])
    assert measurement(3) == QUERY.values[2].tolist()


def test_the_distance_is_that_of_what_is_answered(dp: Any) -> None:
    """2 lies between 0 and 1 but is answered as 1, so it is as far from 0 as that one."""
    plan = Plan(PolicyGraph(3, [(0, 1)]), Query([0, 10, 6]))
    measurement = plan.to_opendp(1, possible=[0, 1])
    step = plan.at([True, True, False])
    assert step.query.nearest_states(np.array([2]), step.possible).tolist() == [1]
    logs = step.mechanism(Fraction(1)).lattice_log_probability([0])
    assert measurement.map(0.6) < logs[0] - logs[1] <= measurement.map(1)
    assert "of what two states are answered around" in str(measurement.input_metric)


def test_openDP_is_told_nothing_of_a_wrong_state(dp: Any) -> None:  # noqa: N802
    measurement = Plan(POLICY, QUERY).to_opendp(1)
    with pytest.raises(Exception, match="state") as caught:
        measurement(98_765)
    assert "98765" not in str(caught.value)
    with pytest.raises(Exception, match="d_in must be a norm of 0 or more, got -1"):
        measurement.map(-1)
    with pytest.raises(ArgumentError, match="plan must have delta 0 for a measurement, got 1/10"):
        Plan(POLICY, QUERY, delta="0.1").to_opendp(1)


def test_openDP_wants_to_be_told_that_this_code_is_trusted(dp: Any) -> None:  # noqa: N802
    dp.disable_features("honest-but-curious")
    try:
        with pytest.raises(dp.OpenDPException, match="honest-but-curious"):
            Plan(POLICY, QUERY).to_opendp(1)
    finally:
        dp.enable_features("honest-but-curious")


# Tables

TIMES = [datetime(2024, 1, 1, 0, minute, tzinfo=UTC) for minute in (0, 3, 1)]
TABLE = pl.DataFrame(
    {"person": ["a", "a", "b"], "time": TIMES, "latitude": [0.0, 0.1, 0.2], "longitude": [0.3] * 3}
)


def points(crs: int | None, name: str) -> Any:
    geopandas = pytest.importorskip("geopandas")
    plain = TABLE.to_pandas()
    where = geopandas.points_from_xy(plain["longitude"], plain["latitude"], crs=crs and 4326)
    plain = plain[["person", "time"]].assign(**{name: where})
    made = geopandas.GeoDataFrame(plain, geometry=name)
    return made.to_crs(crs) if crs else made


@pytest.mark.parametrize("crs", [None, 4326, 32631])
def test_geopandas_comes_back_with_its_points_names_and_coordinates(crs: int | None) -> None:
    from dphmm import datasets

    table = points(crs, "where")
    steps = datasets.resample(table, "1 min")
    assert type(steps) is type(table)
    assert steps.columns.tolist() == ["person", "time", "where"]
    assert steps.crs == table.crs
    for axis in ("x", "y"):
        ends = (getattr(one.geometry, axis).to_numpy() for one in (steps, table))
        np.testing.assert_allclose(*ends, rtol=0, atol=1e-6)
    states = datasets.to_states(
        table, datasets.Grid.rectangle(9, 9, 1.0), datasets.LocalPlane(0, 0)
    )
    assert type(states).__module__.startswith("pandas")


def scenario(**more: Any) -> dphmm.Scenario:
    states = dphmm.States(("s0", "s1"), {"latitude": [0.0, 0.2], "longitude": [0.3, 0.3]})
    return dphmm.Scenario(
        states, MarkovModel([[0.5, 0.5], [0.5, 0.5]]), dphmm.Policy(complete=True), epsilon=1,
        step="0.001", clock=dphmm.Clock("1 min"), **more,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "geopandas", "arrow"])
def test_releases_come_back_as_the_table_that_was_given(kind: str) -> None:
    tables: dict[str, Any] = {
        "polars": lambda: TABLE,
        "lazy": TABLE.lazy,
        "pandas": TABLE.to_pandas,
        "geopandas": lambda: points(32631, "geometry"),
        "arrow": TABLE.to_arrow,
    }
    given = tables[kind]()
    answers = scenario().release(given)
    assert type(answers) is type(given)
    if kind == "geopandas":
        assert answers.geometry.notna().all()
        assert answers.crs == given.crs
    rows = answers.collect() if kind == "lazy" else answers
    assert len(rows) == 3


def test_a_silent_step_has_no_point() -> None:
    pytest.importorskip("geopandas")
    quiet = scenario(when=dphmm.Schedule(every=2))
    answers = quiet.release(points(4326, "geometry"))
    silent = answers["epsilon"].astype(float) == 0
    assert silent.any()
    assert answers.geometry[silent].isna().all()
    assert answers.geometry[~silent].notna().all()


def test_rows_for_a_service_may_have_points_beside_them() -> None:
    table = points(4326, "geometry").assign(state="s0")
    made = as_arrow(table, ("person", "time", "state"))
    assert made.schema.names == ["person", "time", "state"]
    assert made.num_rows == 3


def test_scikit_mobility_goes_in_and_comes_out() -> None:
    skmob = pytest.importorskip(
        "skmob", reason="scikit-mobility is not installed: it asks for old versions of pandas"
    )
    from dphmm import datasets

    plain = TABLE.to_pandas().rename(
        columns={"person": "uid", "time": "datetime", "latitude": "lat", "longitude": "lng"}
    )
    given = skmob.TrajDataFrame(plain)
    steps = datasets.resample(given, "1 min")
    assert type(steps) is type(given)
    assert sorted(steps.columns) == ["datetime", "lat", "lng", "uid"]
    answers = scenario().release(given)
    assert type(answers) is type(given)
    assert {"lat", "lng", "estimate_latitude", "epsilon"} <= {*answers.columns}


# One sentence when it is missing


@pytest.mark.parametrize(
    ("module", "extra", "call"),
    [
        ("hmmlearn", "hmmlearn", lambda: MODEL.to_hmmlearn(0)),
        ("networkx", "graphs", MODEL.to_networkx),
        ("opendp", "opendp", lambda: Plan(POLICY, QUERY).to_opendp(1)),
        ("matplotlib", "plot", Belief.uniform(2).plot),
    ],
)
def test_what_is_missing_is_said_in_one_sentence(
    module: str, extra: str, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == module:
            raise ImportError(name)
        return real(name, *rest, **more)

    real = importlib.import_module
    monkeypatch.setattr("dphmm.errors.import_module", refuse)
    with pytest.raises(MissingExtraError, match=rf"{module} is not .*'dphmm\[{extra}\]'"):
        call()
