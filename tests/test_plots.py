"""What results look like as pictures: what is drawn is what the result says."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from matplotlib.figure import Figure

from dphmm import (
    ArgumentError,
    Belief,
    Check,
    MarkovModel,
    Plan,
    Policy,
    PolicyGraph,
    Query,
    Release,
    Scenario,
    States,
    Stream,
    sensitivity_hull,
)

WALK = MarkovModel([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.0, 0.25, 0.75]])
LINE, PLANE = Query([[0], [2], [5]]), Query([[0, 0], [2, 0], [0, 3]])
LINKS = PolicyGraph(3, [(0, 1), (1, 2)])


@pytest.fixture
def axes():
    return Figure().subplots()


def town(model=WALK, links=LINKS) -> Scenario:
    places = States.on_plane(PLANE.values, labels=("home", "work", "park"))
    return Scenario(places, model, links, epsilon=1, start="home", unit="m")


# Hull


def test_a_hull_is_drawn_by_its_corners_in_order(axes):
    hull = sensitivity_hull(PLANE, LINKS)
    hull.plot(axes)
    (polygon,) = axes.patches
    corners = polygon.get_xy()[:-1]
    assert {tuple(corner) for corner in corners} == {tuple(one) for one in hull.vertices.tolist()}
    x, y = corners.T
    area = abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2
    assert area == pytest.approx(float(hull.volume), rel=1e-12)


@pytest.mark.parametrize("query", [LINE, Query([[0, 0], [1, 1], [3, 3]])])
def test_a_flat_hull_is_a_line(axes, query):
    hull = sensitivity_hull(query, PolicyGraph.complete(3))
    hull.plot(axes)
    line = axes.lines[0].get_xydata()
    assert np.abs(line[:, 0]).max() == np.abs(hull.vertices[:, 0]).max()


def test_what_cannot_be_drawn_is_refused(axes):
    hull = sensitivity_hull(Query(np.eye(3)), PolicyGraph.complete(3))
    with pytest.raises(ArgumentError, match=r"hull must have one or two dimensions .* got 3; ask"):
        hull.plot(axes)
    with pytest.raises(ArgumentError, match=r"values must have one or two dimensions .* got 3"):
        Belief.uniform(3).plot(np.eye(3), axes=axes)
    with pytest.raises(ArgumentError, match="axes must be those of matplotlib, got str"):
        sensitivity_hull(LINE, LINKS).plot("here")
    with pytest.raises(ArgumentError, match="labels must be 3, got 1"):
        Belief.uniform(3).plot(labels=["a"], axes=axes)
    with pytest.raises(ArgumentError, match="labels must be a sequence, got int"):
        Belief.uniform(3).plot(labels=3, axes=axes)


# Belief


def test_a_belief_is_bars_with_names_and_crosses_where_nobody_can_be(axes):
    Belief.certain(0, 3).predict(WALK).plot(labels=["home", "work", "park"], axes=axes)
    assert [bar.get_height() for bar in axes.patches] == [0.5, 0.5, 0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["home", "work", "park"]
    assert axes.lines[0].get_xdata().tolist() == [2]


def test_a_belief_on_a_line_marks_its_mean(axes):
    Belief.from_probabilities([0.5, 0.5, 0]).plot(LINE, axes=axes)
    (mean,) = [line for line in axes.lines if line.get_label() == "mean"]
    assert mean.get_xdata()[0] == 1
    tops = axes.collections[0].get_segments()
    assert [(x, y) for _, (x, y) in tops] == [(0, 0.5), (2, 0.5)]


def test_a_belief_in_the_plane_is_points(axes):
    belief = Belief.from_probabilities([0.75, 0.25, 0])
    belief.plot(PLANE.values, axes=axes)
    points = axes.collections[0]
    assert points.get_offsets().tolist() == PLANE.values.tolist()
    assert points.get_array().tolist() == [0.75, 0.25, 0]
    assert points.get_sizes()[2] == 0


# Release


def test_releases_share_axes_and_a_legend(axes):
    releases = [
        Release(t, np.array([3.0 + t]), np.array([3 + t]), np.array([2.5]), Fraction(1), "")
        for t in (1, 2)
    ]
    for release in releases:
        release.plot(axes)
    crosses = [line for line in axes.lines if line.get_marker() == "x"]
    assert [line.get_xydata().tolist() for line in crosses] == [[[1, 4]], [[2, 5]]]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["answer", "estimate"]


def test_a_release_in_the_plane_and_a_silent_one(axes):
    stream = Stream(WALK, Plan(LINKS, PLANE), epsilon=1, start=0)
    said = stream.release(1)
    said.plot(axes)
    (cross,) = [line for line in axes.lines if line.get_marker() == "x"]
    assert cross.get_xydata().tolist() == [said.answer.tolist()]
    silent = stream.skip()
    assert silent is None or silent.plot(axes)


# Statement and check


def test_a_statement_draws_each_cost_and_for_whom_it_holds(axes):
    stream = Stream(WALK, Plan(LINKS, PLANE), epsilon="0.5", start=0)
    for _ in range(3):
        stream.release(1)
    statement = stream.statement()
    statement.plot(axes)
    drawn = [bar.get_width() for bar in axes.patches]
    costs = (statement.linked, statement.worst_pair, statement.event, statement.window)
    assert drawn[: len(costs)] == pytest.approx([float(cost) for cost in costs])
    assert "epsilon\n" in axes.get_xlabel()
    assert statement.condition.lstrip(",; ").split()[0] in axes.get_xlabel()


def test_without_a_limit_a_statement_says_so(axes):
    plan = Plan(PolicyGraph(3, [(0, 1)]), PLANE, repair=None)
    stream = Stream(WALK, plan, epsilon=1, start=1)
    stream.release(1)
    statement = stream.statement()
    assert statement.worst_pair == float("inf")
    statement.plot(axes)
    assert "no limit" in [text.get_text() for text in axes.texts]


def test_a_learned_chain_has_bars_for_its_own_moves(axes):
    learned = MarkovModel.fit([[0, 1, 2, 1, 0, 0]], n_states=3)
    stream = Stream(learned, Plan(LINKS, PLANE), epsilon=1, start=0)
    stream.release(1)
    statement = stream.statement()
    assert statement.own is not None
    statement.plot(axes)
    assert "own moves" in axes.get_xlabel().replace("\n", " ")


def test_a_check_draws_every_step_and_marks_who_stays_exposed(axes):
    check = town().check(steps=3)
    assert isinstance(check, Check)
    check.plot(axes)
    ranges = axes.collections[0].get_segments()
    expected = [(one.time, one.least_protection, one.most_protection) for one in check.steps]
    assert [(x, low, high) for (x, low), (_, high) in ranges] == expected
    assert axes.lines[1].get_xdata().tolist() == []
    bare = town(links=Policy()).replace(repair=None, full_rank=False).check(steps=2)
    bare.plot(other := Figure().subplots())
    assert other.lines[1].get_xdata().tolist() == [s.time for s in bare.steps if s.exposed] != []


def test_a_new_figure_is_made_where_none_is_given():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    drawn = sensitivity_hull(LINE, LINKS).plot()
    assert drawn.figure.number in pyplot.get_fignums()
    pyplot.close(drawn.figure)
