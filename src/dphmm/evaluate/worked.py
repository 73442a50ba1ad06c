"""The paper's worked examples, each computed again beside the number that the paper prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np

from dphmm.cost.adversary import guarantee_against, largest_gains
from dphmm.cost.blowfish import Blowfish, Secret, counting_query
from dphmm.cost.local_noise import LocalRelease
from dphmm.geometry.hull import SensitivityHull
from dphmm.noise.mechanism import Mechanism
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.protection import degree_of_protection, exposed
from dphmm.policy.repair import protect
from dphmm.policy.sensitivity import sensitivity_hull
from dphmm.tables.datasets.running_example import RunningExample, running_example

__all__ = ["Worked", "patients", "work_out"]

HIDING = ("s2", "s4", "s5", "s6")
"""Below Definition 5.2: s2 has no neighbour left and is hidden all the same."""
EXPOSING = ("s3", "s4", "s5", "s6")
"""Example 6.1: s3 is exposed."""
LEFT = ("s2", "s3", "s5")
"""Example 5.2 and Figure 3: s5 is exposed."""


@dataclass(frozen=True)
class Worked:
    """One number of the paper, and ours."""

    where: str
    what: str
    printed: Any
    """What the paper says; None where it only draws."""
    ours: Any
    note: str = ""
    """Why they differ, or what ours rests on."""

    @property
    def holds(self) -> bool | None:
        """Whether both are the same, without a tolerance; None where the paper has no number."""
        return None if self.printed is None else bool(self.printed == self.ours)


def work_out(example: RunningExample | None = None) -> tuple[Worked, ...]:
    """Every worked example of the paper, in its order.

    Args:
        example: The running example, by default the one that is shipped.

    >>> all(one.holds or one.note for one in work_out() if one.holds is not None)
    True
    """
    example = running_example() if example is None else example
    return (
        *_model(example),
        *_hull(example),
        *_exposure(example),
        *_table(),
        *_repairs(example),
        *_knowledge(example),
    )


def _model(example: RunningExample) -> Iterator[Worked]:
    model, query = example.model, example.query
    start = model.known(example.number("s1")).probabilities
    yield Worked("Example 3.1", "p_t when s1 is known", (1, 0, 0, 0, 0, 0), _whole(start))
    printed = ((1, 0), (2, 1), (3, 0), (0, 1), (4, 2), (1, 2))
    yield Worked("Example 3.2", "f(s1) to f(s6)", printed, _points(query.points))
    after = model.reach(example.possible(["s1"]), 1)
    ours = "the moves are ours: the paper draws them"
    yield Worked("Figure 3c", "possible one step after s1", LEFT, example.named(after), ours)
    left = example.policy.restricted_to(after)
    yield Worked("Figure 3d", "edges that are left", ("s2–s3",), _edges(example, left))
    again = example.named(model.reach(after, 2))
    yield Worked("Example 6.1", "possible two steps after s1", EXPOSING, again, ours)


def _hull(example: RunningExample) -> Iterator[Worked]:
    where = "Example 5.1"
    hull = sensitivity_hull(example.query, example.policy)
    links = example.policy.edges
    apart = example.query.points[links[:, 0]] - example.query.points[links[:, 1]]
    printed = ((-4, -1), (-3, 0), (-1, -1), (-1, 1), (1, -1), (1, 1), (3, 0), (4, 1))
    yield Worked(where, "the columns of Δf", printed, tuple(sorted(_points([*apart, *-apart]))))
    yield Worked(where, "the l1 sensitivity", Fraction(5), hull.l1_sensitivity)
    yield Worked(where, "the corners of K", None, tuple(sorted(_points(hull.lattice_vertices))))
    yield Worked(where, "the area of K", None, hull.volume)
    yield Worked(where, "the area of the l1 ball", None, hull.l1_ball().volume)


def _exposure(example: RunningExample) -> Iterator[Worked]:
    where, possible = "Example 5.2", example.possible(LEFT)
    hull = sensitivity_hull(example.query, example.policy, possible)
    yield Worked(where, "the l1 sensitivity under {s2, s3, s5}", Fraction(2), hull.l1_sensitivity)
    for other in ("s3", "s2"):
        laplace = _loss(example, hull.l1_ball(), "s5", other)
        what = f"Laplace noise tells s5 from {other} by e^(ε times)"
        yield Worked(where, what, Fraction(3, 2), laplace)
    certain = _loss(example, hull, "s5", "s3")
    yield Worked(where, "K-norm noise tells s5 from s3 by e^(ε times)", inf, certain)
    found = example.named(exposed(example.query, example.policy, possible))
    yield Worked(where, "who is exposed", ("s5",), found)
    hiding = example.possible(HIDING)
    degree = degree_of_protection(example.query, example.policy, hiding)[example.number("s2")]
    yield Worked("below Definition 5.2", "DoP(s2) under {s2, s4, s5, s6}", 3, int(degree))


def patients() -> Blowfish:
    """Example 5.3: six records of three patients, and the counts of two diseases.

    The paper's table is not at hand; these rows have the answers that its appendix gives.
    """
    rows = (("Ann", "cancer"), ("Ann", "flu"), ("Bob", "cancer"), ("Bob", "diabetes"))
    secrets = tuple(Secret(*row) for row in (*rows, ("Cem", "cancer"), ("Cem", "diabetes")))
    counts = counting_query(
        secrets,
        [lambda secret: secret.value == "cancer", lambda secret: secret.value == "diabetes"],
    )
    return Blowfish(secrets, counts, edges=[(0, 1), (2, 3)])


def _table() -> Iterator[Worked]:
    where, table = "Example 5.3", patients()
    yield Worked(where, "the l1 sensitivity", Fraction(2), table.hull().l1_sensitivity)
    printed = tuple(Fraction(k) for k in (1, 0, 1, 2, 1, 2))
    existence = tuple(table.existence_epsilon(1))
    yield Worked(where, "the price of each record's existence, in ε", printed, existence)
    yield Worked(where, "the price in all, in ε", Fraction(2), table.overall_epsilon(1))
    for record, printed_by in (("s5", "K-norm and Laplace"), ("s6", "Laplace")):
        number = int(record[1]) - 1
        hides = {
            "K-norm": None in table.protected_by(number),
            "Laplace": None in table.protected_by(number, mechanism="laplace"),
        }
        found = " and ".join(name for name, protects in hides.items() if protects)
        yield Worked(where, f"what protects {record}'s existence", printed_by, found)


def _repairs(example: RunningExample) -> Iterator[Worked]:
    where, possible = "Example 6.1", example.possible(EXPOSING)
    found = example.named(exposed(example.query, example.policy, possible))
    yield Worked(where, "who is exposed under {s3, s4, s5, s6}", ("s3",), found)
    repaired = {other: _joined(example, other) for other in ("s4", "s5", "s6")}
    areas = tuple(hull.volume for hull in repaired.values())
    yield Worked(where, "the area of K with s3 joined to s4, s5, s6", None, areas)
    smallest = min(repaired, key=lambda other: repaired[other].volume)
    yield Worked(where, "whom the smallest area joins s3 to", "s4", smallest)
    errors = tuple(hull.mean_squared_error(1) for hull in repaired.values())
    yield Worked(where, "the mean squared error of each at ε = 1", None, errors)
    best = min(repaired, key=lambda other: repaired[other].mean_squared_error(1))
    note = "the paper minimises the area, which is not the error; `min_error` is our default"
    yield Worked(where, "whom the smallest error joins s3 to", "s4", best, note)
    chosen = protect(example.query, example.policy, possible, "min_area")
    printed = ("s3–s4", "s4–s5", "s4–s6", "s5–s6")
    yield Worked("Algorithm 3", "the protectable graph", printed, _edges(example, chosen))


def _knowledge(example: RunningExample) -> Iterator[Worked]:
    query, policy = example.query, example.policy
    hiding, narrowed = example.possible(HIDING), example.possible(["s2", "s6"])
    body = sensitivity_hull(query, policy, hiding)
    seen = guarantee_against(query, policy, body, 1, possible=hiding, known=narrowed)
    note = "who rules out s4 and s5 takes away what hid s2"
    what = "the price against somebody who also rules out s4 and s5, in ε"
    yield Worked("Appendix, Case I", what, Fraction(1), seen.epsilon, note)
    squares = example.possible(["s4", "s5", "s6"])
    mechanism = Mechanism(query, sensitivity_hull(query, policy, squares), Fraction(1))
    prior = [0, 0, 0.97, 0.01, 0.01, 0.01]
    most = float(largest_gains(mechanism, prior)[squares].max())
    note = "the paper says at most e^ε = 2.7; he was nearly sure of s3, and an answer ends that"
    what = "the most that somebody gains who also thinks of s3, a factor"
    yield Worked("Appendix, Case II", what, "at most 2.7", f"{most:.0f}", note)
    path = PolicyGraph(6, [[3, 5], [5, 4]])
    bodies = LocalRelease.local(query, path, 1, squares).hulls.values()
    ours = len({body.digest for body in bodies})
    note = "on the path s4–s6–s5; in the clique of Figure 3 all three have the same neighbours"
    what = "different bodies of LocalDP, by which an answer names its state"
    yield Worked("Appendix, LocalDP", what, None, ours, note)


def _joined(example: RunningExample, other: str) -> SensitivityHull:
    graph = example.policy.restricted_to(example.possible(EXPOSING))
    edge = [[example.number("s3"), example.number(other)]]
    return sensitivity_hull(example.query, graph.with_edges(edge))


def _loss(
    example: RunningExample, body: SensitivityHull, state: str, other: str
) -> Fraction | float:
    """By how many epsilons an answer at `state` can tell it from `other`."""
    points = example.query.points
    return body.norm(points[example.number(state)] - points[example.number(other)])


def _edges(example: RunningExample, graph: PolicyGraph) -> tuple[str, ...]:
    names = example.labels
    return tuple(sorted(f"{names[a]}–{names[b]}" for a, b in graph.edges.tolist()))


def _points(rows: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(value) for value in row) for row in np.asarray(rows).tolist())


def _whole(values: Sequence[float] | np.ndarray[Any, Any]) -> tuple[int, ...]:
    return tuple(int(value) for value in values)
