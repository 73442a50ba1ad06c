"""Blowfish privacy: the same questions about a table instead of a Markov chain (section 5.3).

A secret is a row that a table may hold: a person with a value. A query adds up an answer
for every row present, so that a count is a sum of zeros and ones. The policy graph joins
secrets that must look alike (bounded: one is replaced by the other) and secrets whose very
existence must be hidden, which it joins with a null node (unbounded: the row is there or
not). The null node is a state whose answer is zero; hulls and norms are those of the chain.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import IntArray, Mask
from dphmm.cost import Charge, Loss, constrained_epsilon
from dphmm.errors import ArgumentError, expect, expect_one_of
from dphmm.geometry.exact import Exact, as_epsilon, whole
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from dphmm.geometry.states import possible_mask, state_numbers
from dphmm.noise.staircase import best_gamma
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.sensitivity import sensitivity_hull

__all__ = ["Blowfish", "Mechanism", "Neighbors", "Secret", "counting_query"]

Neighbors: TypeAlias = Literal["bounded", "unbounded", "both"]
"""Which edges count: between secrets, with the null node, or all (Definition 3.4)."""

Mechanism: TypeAlias = Literal["knorm", "staircase", "laplace"]


class Secret(NamedTuple):
    """A row that the table may hold."""

    person: Hashable
    """Whose row it is."""
    value: Hashable
    """What the row says."""


def counting_query(
    secrets: Iterable[Secret], conditions: Sequence[Callable[[Secret], bool]]
) -> Query:
    """How many rows meet each condition: `select count(*) ... where ...`, one a dimension.

    Args:
        secrets: The rows that the table may hold.
        conditions: Functions of a secret that say whether its row is counted, one a dimension.

    >>> secrets = [Secret("Ann", "flu"), Secret("Ann", "cancer")]
    >>> counting_query(secrets, [lambda secret: secret.value == "cancer"]).points.ravel().tolist()
    [0, 1]
    """
    expect(conditions, Iterable, "conditions")
    tests = tuple(conditions)
    if not tests or not all(callable(holds) for holds in tests):
        raise ArgumentError("conditions must be functions of a secret, at least one")
    rows = [[int(bool(holds(secret))) for holds in tests] for secret in _secrets(secrets)]
    return Query(np.array(rows, dtype=np.int64))


def _secrets(secrets: Iterable[Secret]) -> tuple[Secret, ...]:
    expect(secrets, Iterable, "secrets")
    rows = tuple(secrets)
    if not rows or not all(isinstance(row, tuple) and len(row) == 2 for row in rows):
        raise ArgumentError("secrets must be pairs of a person and a value, at least one")
    return tuple(Secret(*row) for row in rows)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Blowfish:
    """Secrets, what each adds to the query's answer, and a policy over them and null.

    Args:
        secrets: The rows that the table may hold: a person with a value.
        query: What each secret adds to the answer.
        edges: Pairs of secrets, by number, that must look alike.
        null_edges: Secrets, by number, whose existence must be hidden.
        possible: The secrets that the constraint allows, as a mask or numbers; all by default.

    >>> secrets = [Secret("Ann", "flu"), Secret("Ann", "cancer"), Secret("Bob", "cancer")]
    >>> query = counting_query(secrets, [lambda secret: secret.value == "cancer"])
    >>> table = Blowfish(secrets, query, edges=[(0, 1)])
    >>> table.existence_epsilon(1)
    [Fraction(0, 1), Fraction(1, 1), Fraction(1, 1)]
    >>> table.protected_by(2)
    [Secret(person='Ann', value='flu'), Secret(person='Ann', value='cancer'), None]
    """

    secrets: tuple[Secret, ...]
    query: Query
    """The answer of every secret, and after them a zero for the null node."""
    policy: PolicyGraph
    """The graph over the secrets and the null node, which is the last."""
    possible: Mask
    """The secrets that the constraint allows; the null node always is."""

    def __init__(
        self,
        secrets: Iterable[Secret],
        query: Query,
        edges: ArrayLike = (),
        *,
        null_edges: Iterable[int] = (),
        possible: ArrayLike | None = None,
    ) -> None:
        rows = _secrets(secrets)
        size = len(rows)
        expect(query, Query, "query")
        expect(null_edges, Iterable, "null_edges")
        if query.n_states != size:
            raise ArgumentError(f"query must answer for {size} secrets, got {query.n_states}")
        allowed = possible_mask(possible, size, empty=True)
        # The secrets' own graph is checked first: a number too large is not the null node.
        links = PolicyGraph(size, edges).links
        existing = state_numbers(list(null_edges), size, "null_edges").ravel()
        graph = PolicyGraph(size + 1, [(secret, size) for secret in existing.tolist()])
        zero = np.zeros((1, query.dimension), dtype=np.int64)
        # Whole numbers stay whole; beyond 2**53 floats would not hold them.
        answers = query.points if query.step == 1 else query.values
        object.__setattr__(self, "secrets", rows)
        object.__setattr__(self, "policy", graph.with_edges(links))
        object.__setattr__(self, "query", Query(np.concatenate([answers, zero]), query.step))
        object.__setattr__(self, "possible", allowed)

    @property
    def null(self) -> int:
        """The number of the null node, one more than the last secret's."""
        return len(self.secrets)

    def graph(self, neighbors: Neighbors = "both") -> PolicyGraph:
        """The edges between possible secrets, those with the null node, or both.

        Args:
            neighbors: Which edges the noise was made for: "bounded" (between secrets), "unbounded"
                (with the null node) or "both".
        """
        edges = self.policy.restricted_to(self._with_null).edges
        lonely = (edges == self.null).any(axis=1)
        kept = {"bounded": edges[~lonely], "unbounded": edges[lonely], "both": edges}
        expect_one_of(neighbors, tuple(kept), "neighbors")
        return PolicyGraph(self.null + 1, kept[neighbors])

    def hull(self, neighbors: Neighbors = "both") -> SensitivityHull:
        """The sensitivity hull of the differences between neighbouring tables.

        Args:
            neighbors: Which edges the noise was made for: "bounded" (between secrets), "unbounded"
                (with the null node) or "both".
        """
        return sensitivity_hull(self.query, self.graph(neighbors))

    def body(
        self, mechanism: Mechanism = "knorm", neighbors: Neighbors = "both"
    ) -> SensitivityHull:
        """The body that shapes a mechanism's noise: K itself, or Laplace's cross-polytope.

        Args:
            mechanism: "knorm", "staircase" or "laplace".
            neighbors: Which edges the noise was made for: "bounded" (between secrets), "unbounded"
                (with the null node) or "both".
        """
        expect_one_of(mechanism, get_args(Mechanism), "mechanism")
        hull = self.hull(neighbors)
        return hull.l1_ball() if mechanism == "laplace" else hull

    def existence_epsilon(
        self, epsilon: Exact, *, mechanism: Mechanism = "knorm", neighbors: Neighbors = "both"
    ) -> list[Loss]:
        """For each secret the loss between a table with it and one without: ||f(s)||_K epsilon.

        This is unbounded differential privacy, secret by secret; infinite if the answer of a
        secret lies outside the span of all that the policy hides. A secret that the
        constraint excludes is in no table, and loses nothing. A staircase rounds norms up.

        Args:
            epsilon: What an answer costs between two linked secrets.
            mechanism: "knorm", "staircase" or "laplace".
            neighbors: Which edges the noise was made for: "bounded" (between secrets), "unbounded"
                (with the null node) or "both".
        """
        body, share = self.body(mechanism, neighbors), as_epsilon(epsilon)
        charge = Charge(self.query, body, share, _gamma(mechanism, body, share))
        losses = [charge.loss(body.lattice_norm(p)) for p in self.query.points[: self.null]]
        return [
            loss if holds else Fraction(0)
            for loss, holds in zip(losses, self.possible, strict=True)
        ]

    def overall_epsilon(
        self,
        epsilon: Exact,
        *,
        mechanism: Mechanism = "knorm",
        neighbors: Neighbors = "both",
        protect: Literal["bounded", "unbounded"] = "unbounded",
    ) -> Loss:
        """The differential privacy that a Blowfish policy amounts to (Theorem 5.3).

        Unbounded: the worst existence, max ||f(s)||_K epsilon, the theorem's second part.
        Bounded: the worst replacement, max ||f(s) - f(s')||_K epsilon over all possible
        secrets, its first part. `neighbors` are the edges that the policy was enforced for.

        Args:
            epsilon: What an answer costs between two linked secrets.
            mechanism: "knorm", "staircase" or "laplace".
            neighbors: Which edges the noise was made for: "bounded" (between secrets), "unbounded"
                (with the null node) or "both".
            protect: "unbounded" or "bounded": the differential privacy that is asked for.
        """
        expect_one_of(protect, ("bounded", "unbounded"), "protect")
        body, share = self.body(mechanism, neighbors), as_epsilon(epsilon)
        if protect == "unbounded":
            answers = self.existence_epsilon(epsilon, mechanism=mechanism, neighbors=neighbors)
            return max(answers, default=Fraction(0))
        if not self.possible.any():
            return Fraction(0)
        gamma = _gamma(mechanism, body, share)
        return constrained_epsilon(self.query, body, share, np.append(self.possible, False), gamma)

    def protected_by(
        self, secret: int, *, mechanism: Mechanism = "knorm", neighbors: Neighbors = "both"
    ) -> list[Secret | None]:
        """The other secrets that look like this one, within epsilon; None for not being there.

        A secret can be protected by one that the policy does not link it with, and its
        existence can stay unprotected although the policy links it.

        Args:
            secret: The secret's number.
            mechanism: "knorm", "staircase" or "laplace".
            neighbors: Which edges the noise was made for: "bounded" (between secrets), "unbounded"
                (with the null node) or "both".
        """
        if not 0 <= whole(secret, "secret", None) < self.null:
            raise ArgumentError(f"secret must be one of 0..{self.null - 1}, got {secret!r}")
        others = np.flatnonzero(self._with_null & (np.arange(self.null + 1) != secret))
        apart: IntArray = self.query.points[others] - self.query.points[secret]
        hidden = others[self.body(mechanism, neighbors).lattice_contains(apart)]
        return [None if other == self.null else self.secrets[other] for other in hidden]

    def __repr__(self) -> str:
        return f"Blowfish(secrets={self.null}, edges={len(self.policy.edges)})"

    @cached_property
    def _with_null(self) -> Mask:
        return np.append(self.possible, True)


def _gamma(mechanism: Mechanism, body: SensitivityHull, epsilon: Fraction) -> Fraction | None:
    return best_gamma(body.rank, epsilon) if mechanism == "staircase" else None
