"""Repairing a policy so that nobody is exposed: the paper's Algorithms 1 and 3, and better.

Exposed states are taken lowest first; each is linked to one other possible state, and
exposure is looked at again after every new edge. Which partner is the method's choice:

* `nearest` (Algorithm 1): the nearest answer;
* `min_area` (Algorithm 3): the smallest volume of the hull;
* `min_error`: the smallest mean squared error, which is what volume was meant to stand for;
* `optimal`: the smallest mean squared error over all choices of partners together;
* `optimal_volume`: the smallest volume over all of them, the optimum of section 6.1.

Ties go to the lowest state. With `full_rank` edges are then added by the same rule until the span
of the hull holds every difference between possible states; else some pairs are told apart.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from dphmm import kernels
from dphmm._types import IntArray, Mask, ObjectArray
from dphmm.errors import (
    ArgumentError,
    ExposureError,
    TooLargeError,
    expect,
    expect_function,
    expect_one_of,
)
from dphmm.geometry.hull import SensitivityHull, check_body
from dphmm.geometry.lattice import exact_product, largest, row_labels, span_transform
from dphmm.geometry.query import Query
from dphmm.geometry.states import possible_mask
from dphmm.policy.extending import best_extension
from dphmm.policy.graph import PolicyGraph, check_policy
from dphmm.policy.progress import tell
from dphmm.policy.protection import count_hidden
from dphmm.policy.sensitivity import sensitivity_hull

__all__ = ["RepairMethod", "added_edges", "protect"]

RepairMethod: TypeAlias = Literal["nearest", "min_area", "min_error", "optimal", "optimal_volume"]

BY_VOLUME = ("min_area", "optimal_volume")
"""Methods that want a small hull; the others want a small error."""
Body: TypeAlias = Callable[[SensitivityHull], SensitivityHull]

MAX_ASSIGNMENTS = 1_000_000
"""`optimal` refuses to search more choices of partners than this."""


def protect(
    query: Query,
    policy: PolicyGraph,
    possible: ArrayLike | None = None,
    method: RepairMethod = "min_error",
    full_rank: bool = True,
    body: Body | None = None,
    partners: Mapping[int, int] | PolicyGraph | None = None,
) -> PolicyGraph:
    """The policy on the possible states with the edges that protect every one of them.

    A lone possible state is returned as it is, since nothing can hide it.

    Args:
        query: What is asked: the answer of every state.
        policy: The graph of states that must look alike, over the states of the query.
        possible: A mask over the states, or the numbers of the possible ones; all are by default.
        method: How an exposed state gets its partner: "min_error", "nearest" (Algorithm 1),
            "min_area" (Algorithm 3), or "optimal" and "optimal_volume", which take all choices
            together.
        full_rank: Whether edges are also added until no two possible states are told apart for
            certain.
        body: A function from a hull to the body that the noise really uses, such as
            `SensitivityHull.l1_ball`; that body must contain the hull. By default the hull itself.
        partners: Your own choices: a partner for a state, used if the state is exposed and the
            partner possible, or a whole graph that must suffice.

    >>> query = Query([[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]])
    >>> policy = PolicyGraph.by_category(["cafe", "school", "school", "shop", "shop", "shop"])
    >>> possible = [False, False, True, True, True, True]
    >>> for method in ("nearest", "min_area", "min_error"):
    ...     print(method, added_edges(query, policy, possible, method).tolist())
    nearest [[2, 4]]
    min_area [[2, 3]]
    min_error [[2, 4]]
    >>> protect(query, policy, possible, partners={2: 5}).has_edge(2, 5)
    True
    """
    check_policy(policy, query)
    mask = possible_mask(possible, query.n_states)
    edges = added_edges(query, policy, mask, method, full_rank, body, partners)
    return policy.restricted_to(mask).with_edges(edges)


def added_edges(
    query: Query,
    policy: PolicyGraph,
    possible: ArrayLike | None = None,
    method: RepairMethod = "min_error",
    full_rank: bool = True,
    body: Body | None = None,
    partners: Mapping[int, int] | PolicyGraph | None = None,
) -> IntArray:
    """The edges that `protect` adds, in the order in which it adds them.

    Args:
        query: As for `protect`, and so are the others.
        policy: The graph.
        possible: The possible states.
        method: How a partner is chosen.
        full_rank: Whether to go on until nobody is told apart for certain.
        body: From a hull to the body of the noise.
        partners: Your own choices.
    """
    check_policy(policy, query)
    expect_one_of(method, get_args(RepairMethod), "method")
    expect(full_rank, bool, "full_rank")
    if body is not None:
        expect_function(body, "body")
    if not isinstance(partners, Mapping | PolicyGraph | None):
        raise ArgumentError(
            f"partners must be a mapping or a PolicyGraph, got {type(partners).__name__}"
        )
    mask = possible_mask(possible, query.n_states)
    repair = _Repair(query, mask, sensitivity_hull(query, policy, mask), body)
    repair.check_body()
    graph = policy.restricted_to(mask)
    if len(repair.states) > 1:
        if isinstance(partners, PolicyGraph):
            if partners.n_states != query.n_states:
                raise ArgumentError(
                    f"partners must have the {query.n_states} states of the query, "
                    f"got {partners.n_states}"
                )
            for low, high in partners.restricted_to(mask).edges:
                if not graph.has_edge(low, high):
                    repair.link(low, high)
            if len(alone := repair.exposed()):
                raise ExposureError(
                    f"partners must protect every possible state, got {len(alone)} exposed "
                    f"(the first is state {alone[0]}); add edges for them"
                )
        elif method in ("optimal", "optimal_volume"):
            _link_optimally(repair, method, _checked_partners(repair, partners))
        else:
            _link_greedily(repair, method, _checked_partners(repair, partners))
        if full_rank:
            _link_until_spanned(repair, method)
        repair.check_body()
    return np.array(repair.edges, dtype=np.int64).reshape(-1, 2)


@dataclass
class _Repair:
    """A hull that grows by one edge at a time."""

    query: Query
    possible: Mask
    hull: SensitivityHull
    body_of: Body | None
    edges: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.states = np.flatnonzero(self.possible)
        self.points = self.query.points[self.states]

    @property
    def body(self) -> SensitivityHull:
        return self.hull if self.body_of is None else self.body_of(self.hull)

    def check_body(self) -> None:
        """Refuse a body that would not keep what the hull promises."""
        if self.body_of is None:
            return
        body = self.body_of(self.hull)
        check_body(body, self.query, "body")
        if not body.lattice_contains(self.hull.lattice_vertices).all():
            raise ArgumentError(
                "body must contain the hull that it is made from, got a smaller one; "
                "are its vertices in the units of the query?"
            )

    def exposed(self) -> IntArray:
        alone: IntArray = self.states[count_hidden(self.points, self.body, 2) == 1]
        return alone

    def is_exposed(self, state: int) -> bool:
        body = self.body
        facets = body.compiled_facets
        if facets is None:
            return int(body.lattice_contains(self.differences(state)).sum()) == 1
        ordered, row_of = self._ordered
        return bool(kernels.gauge.is_alone(ordered, row_of[state], *facets))

    @cached_property
    def _ordered(self) -> tuple[IntArray, IntArray]:
        """The points by their first coordinate, and the row of every state."""
        order = np.argsort(self.points[:, 0], kind="stable")
        row_of = np.zeros(len(self.possible), dtype=np.int64)
        row_of[self.states[order]] = np.arange(len(order))
        return np.ascontiguousarray(self.points[order]), row_of

    def differences(self, state: int) -> IntArray:
        """From one state to every possible state, in the order of `states`."""
        vectors: IntArray = self.points - self.query.points[state]
        return vectors

    def link(self, a: int, b: int) -> None:
        self.edges.append((int(a), int(b)))
        self.hull = _extended(self.hull, self.query.points[b] - self.query.points[a])


def _extended(hull: SensitivityHull, vector: IntArray) -> SensitivityHull:
    if hull.lattice_contains(vector[None, :])[0]:
        return hull
    corners = np.concatenate([hull.lattice_vertices, vector[None, :]])
    return SensitivityHull.from_lattice(corners, hull.step)


def _checked_partners(repair: _Repair, partners: Mapping[int, int] | None) -> dict[int, int]:
    """The user's choices whose two states are possible."""
    n_states = len(repair.possible)
    for state, partner in (partners or {}).items():
        numbers = isinstance(state, int | np.integer) and isinstance(partner, int | np.integer)
        inside = numbers and 0 <= state < n_states and 0 <= partner < n_states
        if not inside or state == partner:
            raise ArgumentError(
                f"partners must join two different states 0..{n_states - 1}, "
                f"got {state!r}: {partner!r}"
            )
    return {
        int(state): int(partner)
        for state, partner in (partners or {}).items()
        if repair.possible[state] and repair.possible[partner]
    }


def _link_greedily(repair: _Repair, method: RepairMethod, partners: Mapping[int, int]) -> None:
    # A larger hull never exposes anyone, so one pass in order meets every exposed state.
    for state in _still_exposed(repair):
        partner = partners.get(int(state))
        if partner is None:
            others = repair.states != state
            best = _best(repair, repair.differences(state)[others], method)
            partner = repair.states[others][best]
        repair.link(state, partner)


def _still_exposed(repair: _Repair) -> Iterator[int]:
    """The exposed states in order, but those that a link made since has hidden.

    All have the same hull, so a link hides states everywhere: after the first links, and then
    ever more rarely, one pass over all saves asking thousands one by one.
    """
    alone, links, next_pass = deque(repair.exposed().tolist()), 0, 1
    count = len(alone)
    while alone:
        tell(1 - len(alone) / count)
        state = alone.popleft()
        if not repair.is_exposed(state):
            continue
        yield state
        links += 1
        if links == next_pass:
            alone = deque(other for other in repair.exposed().tolist() if other > state)
            next_pass *= 2


def _link_until_spanned(repair: _Repair, method: RepairMethod) -> None:
    """Candidates are, for each state, the nearest one that the hull tells apart from it."""
    wanted, _ = span_transform(repair.points - repair.points[0])
    while repair.body.rank < wanted:
        beyond = repair.hull.transform[:, repair.hull.rank :]
        cosets = row_labels(exact_product(repair.points - repair.points[0], beyond))
        nearest = _nearest_elsewhere(repair.points, cosets)
        best = _best(repair, repair.points[nearest] - repair.points, method)
        repair.link(*sorted((int(repair.states[best]), int(repair.states[nearest[best]]))))


def _nearest_elsewhere(points: IntArray, groups: IntArray) -> IntArray:
    if largest(points) < 2**29:
        found: IntArray = kernels.distance.nearest_elsewhere(points, groups)
        return found
    wide = points.astype(object)
    nearest = []
    for point, group in zip(wide, groups, strict=True):
        others = np.flatnonzero(groups != group)
        nearest.append(others[np.argmin(((wide[others] - point) ** 2).sum(axis=1))])
    return np.array(nearest)


def _best(repair: _Repair, vectors: IntArray, method: RepairMethod) -> int:
    """The number of the best difference to add, the first on ties."""
    if method == "nearest":
        wide = vectors if largest(vectors) < 2**29 else vectors.astype(object)
        return int(np.argmin((wide**2).sum(axis=1)))
    if repair.body_of is None:
        found = best_extension(repair.hull, vectors, by_volume=method in BY_VOLUME)
        if found is not None:
            return found
    return _best_of_all(repair, vectors, method)


def _best_of_all(repair: _Repair, vectors: ObjectArray, method: RepairMethod) -> int:
    """The plain search: build the hull with every candidate.

    No convex body that holds w has a mean squared error below 2|w|^2 (the double cone over
    +-w has the least second moment along w), so longer candidates need not be tried.
    """
    # The same difference gives the same hull: on a grid thousands of candidates are a handful.
    firsts = {tuple(vector): i for i, vector in reversed([*enumerate(vectors.tolist())])}
    lengths = (vectors.astype(object) ** 2).sum(axis=1)
    best, record = -1, None
    for number in sorted(firsts.values(), key=lambda i: (lengths[i], i)):
        least = 0 if method in BY_VOLUME else 2 * lengths[number] * repair.query.step**2
        if record is not None and least > record:
            break
        tell()
        hull = _extended(repair.hull, vectors[number])
        body = hull if repair.body_of is None else repair.body_of(hull)
        score = body.volume if method in BY_VOLUME else body.mean_squared_error(1)
        if record is None or (score, number) < (record, best):
            best, record = number, score
    return best


def _link_optimally(repair: _Repair, method: RepairMethod, partners: Mapping[int, int]) -> None:
    """Branch and bound over one partner for each exposed state that the user gave none."""
    exposed = [int(state) for state in repair.exposed()]
    choices = [_choices(repair, state, partners.get(state)) for state in exposed]
    count = prod(len(choice) for choice in choices)
    if count > MAX_ASSIGNMENTS:
        raise TooLargeError(
            f"method {method!r} searches at most {MAX_ASSIGNMENTS} choices of partners, "
            f"got more for {len(exposed)} exposed states; use 'min_error'"
        )
    # Whatever is chosen for the states still to come, each at least costs its shortest edge.
    ahead = [0]
    for choice in reversed(choices):
        ahead.append(max(ahead[-1], choice[0][0]))
    ahead.reverse()
    best: tuple[tuple[int, Fraction], list[tuple[int, int]]] | None = None

    def least(depth: int, hull: SensitivityHull, reach: int) -> tuple[int, Fraction]:
        """What no choice for the states still to come falls below: a hull never shrinks."""
        if method in BY_VOLUME:
            return hull.rank, hull.volume
        return 0, Fraction(2 * max(reach, ahead[depth])) * repair.query.step**2

    def search(depth: int, hull: SensitivityHull, edges: list[tuple[int, int]], reach: int) -> None:
        nonlocal best
        tell()
        if best is not None and least(depth, hull, reach) >= best[0]:
            return
        if depth == len(exposed):
            body = hull if repair.body_of is None else repair.body_of(hull)
            score = (0, body.mean_squared_error(1))
            if method in BY_VOLUME:
                score = (body.rank, body.volume)
            if best is None or score < best[0]:
                best = score, edges
            return
        for length, partner in choices[depth]:
            vector = repair.query.points[partner] - repair.query.points[exposed[depth]]
            grown = _extended(hull, vector)
            new = edges if grown is hull else [*edges, (exposed[depth], partner)]
            search(depth + 1, grown, new, max(reach, length))

    search(0, repair.hull, [], 0)
    if best is not None:
        for a, b in best[1]:
            repair.link(a, b)


def _choices(repair: _Repair, state: int, wanted: int | None) -> list[tuple[int, int]]:
    """(squared length, partner), shortest first, one partner for each difference."""
    lengths = (repair.differences(state).astype(object) ** 2).sum(axis=1)
    options: dict[tuple[int, ...], tuple[int, int]] = {}
    for partner, length in zip(repair.states.tolist(), lengths, strict=True):
        if partner != state and wanted in (None, partner):
            point = tuple(repair.query.points[partner].tolist())
            options.setdefault(point, (int(length), partner))
    return sorted(options.values())
