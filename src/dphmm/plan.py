"""What is public about a step: graph, hull and noise, as a function of the possible set.

Nothing here depends on a true state or on an answer, except through the possible set, so
one plan serves every person of a scenario and remembers the sets it has met.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf

import numpy as np

from dphmm._types import FloatArray, Mask, ObjectArray
from dphmm.errors import ArgumentError
from dphmm.hull import SensitivityHull, sensitivity_hull
from dphmm.lattice import exact_product, largest
from dphmm.mechanisms import Mechanism, body_for
from dphmm.policy import PolicyGraph
from dphmm.query import Query
from dphmm.repair import RepairMethod, protect

__all__ = ["Plan", "Protected"]

REACH = 1000
"""Answers further out than this many hulls go the plain way, which has no limit."""

REMEMBERED = 1024
"""How many possible sets a plan keeps; the rest are computed again when met."""


@dataclass(frozen=True, eq=False)
class Protected:
    """One possible set with its repaired policy and the bodies that follow from it."""

    query: Query
    possible: Mask
    policy: PolicyGraph
    hull: SensitivityHull
    """The sensitivity hull of the repaired policy."""
    body: SensitivityHull
    """The body of the noise: the hull, or one that contains it."""

    def mechanism(self, epsilon: Fraction) -> Mechanism:
        """The noise at this step."""
        if epsilon not in self._mechanisms:
            self._mechanisms[epsilon] = Mechanism(self.query, self.body, epsilon)
        return self._mechanisms[epsilon]

    @cached_property
    def _mechanisms(self) -> dict[Fraction, Mechanism]:
        return {}

    @cached_property
    def worst_norm(self) -> Fraction | float:
        """The largest norm of a difference between possible states (Theorem 6.3)."""
        return largest_norm(self.query, self.body, self.possible)

    @cached_property
    def _size(self) -> int:
        return largest(self.body.body.corners)

    @cached_property
    def facets(self) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Points (as columns), normals and offsets as floats, if those hold every product.

        None when the body is flat or too large: the exact span test and big integers are
        then needed, and the plain path has them.
        """
        body, points = self.body.body, self.query.points
        if self.body.rank < self.query.dimension:
            return None
        reach = 2 * largest(points) + REACH * self._size
        if self.body.rank * largest(body.normals) * reach >= 2**53:
            return None
        columns = np.ascontiguousarray(points.T, dtype=np.float64)
        return columns, body.normals.astype(np.float64), body.offsets.astype(np.float64)

    def reaches(self, lattice: ObjectArray) -> bool:
        """Whether `facets` serve for these answers too."""
        if self.facets is None or lattice.dtype == object:
            return False
        return largest(lattice) <= largest(self.query.points) + REACH * self._size

    def facets_for(self, lattice: ObjectArray) -> tuple[FloatArray, ...]:
        """The facets with the answers as floats, as the compiled filter takes them."""
        assert self.facets is not None
        return (*self.facets, lattice.astype(np.float64))

    def constrained(self, epsilon: Fraction) -> Fraction | float:
        """What a release costs the worst pair of possible states (Theorem 6.3)."""
        return self.worst_norm * epsilon

    @cached_property
    def is_lone(self) -> bool:
        """Whether only one state is possible, which nothing can hide."""
        return int(self.possible.sum()) == 1

    def statement(self, epsilon: Fraction, delta: float = 0) -> str:
        """What a release at this step does and does not hide, in a sentence."""
        if self.is_lone:
            return "Only one state is possible; nothing can protect it."
        text = f"Odds between two linked states change by at most a factor exp({float(epsilon):g})."
        if delta:
            text += f" States outside the {1 - delta:g} location set are not protected."
        if self.worst_norm == inf:
            text += " Some possible states are told apart with certainty."
        return text


class Plan:
    """The public side of a scenario: policy, query, noise and repair."""

    def __init__(
        self,
        policy: PolicyGraph,
        query: Query,
        *,
        mechanism: str = "knorm",
        shape: str = "hull",
        repair: RepairMethod | None = "min_error",
        full_rank: bool = True,
        partners: Mapping[int, int] | PolicyGraph | None = None,
    ) -> None:
        if policy.n_states != query.n_states:
            raise ArgumentError(
                f"policy must have the {query.n_states} states of the query, got {policy.n_states}"
            )
        self.policy = policy
        self.query = query
        self.mechanism = mechanism
        self.shape = shape
        self.repair = repair
        self.full_rank = full_rank
        self.partners = partners
        self._body = body_for(mechanism, shape)
        self._met: OrderedDict[bytes, Protected] = OrderedDict()

    def for_query(self, query: Query) -> Plan:
        """The same rules for another query on the same states."""
        return Plan(
            self.policy,
            query,
            mechanism=self.mechanism,
            shape=self.shape,
            repair=self.repair,
            full_rank=self.full_rank,
            partners=self.partners,
        )

    def at(self, possible: Mask) -> Protected:
        """What protects the states of a possible set."""
        name = possible.tobytes()
        if name in self._met:
            self._met.move_to_end(name)
            return self._met[name]
        step = self._protected(possible)
        self._met[name] = step
        if len(self._met) > REMEMBERED:
            self._met.popitem(last=False)
        return step

    def _protected(self, possible: Mask) -> Protected:
        policy = self.policy.restricted_to(possible)
        if self.repair is not None:
            # An enlarged body contains the hull, so what protects in one protects in both.
            body_of = self._body if self.shape == "hull" else None
            policy = protect(
                self.query,
                policy,
                possible,
                method=self.repair,
                full_rank=self.full_rank,
                hull=body_of,
                partners=self.partners,
            )
        hull = sensitivity_hull(self.query, policy)
        body = hull if self._body is None else self._body(hull)
        return Protected(self.query, possible, policy, hull, body)


def largest_norm(query: Query, body: SensitivityHull, possible: Mask) -> Fraction | float:
    """max ||f(j) - f(k)||_K over possible j, k: by facet, the spread of the answers along it."""
    points = exact_product(query.points[possible], body.transform)
    inside, outside = points[:, : body.rank], points[:, body.rank :]
    if (outside != outside[0]).any():
        return inf
    heights = exact_product(inside, body.body.normals.T)
    spreads = heights.max(axis=0).astype(object) - heights.min(axis=0).astype(object)
    pairs = zip(spreads.tolist(), body.body.offsets.tolist(), strict=True)
    return max((Fraction(spread, offset) for spread, offset in pairs), default=Fraction(0))


def location_set(probabilities: np.ndarray[tuple[int], np.dtype[np.float64]], delta: float) -> Mask:
    """The fewest states whose probabilities reach 1 - delta, likeliest first (Theorem 4.1).

    Ties go to the lowest state, so the set is the same for everyone.
    """
    order = np.argsort(-probabilities, kind="stable")
    reached = np.cumsum(probabilities[order])
    count = int(np.searchsorted(reached, 1 - delta)) + 1
    chosen = np.zeros(len(probabilities), dtype=bool)
    chosen[order[:count]] = True
    return chosen & (probabilities > 0)
