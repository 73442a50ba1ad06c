"""The attack on LocalDP (appendix): noise shaped by the true state tells which state it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import ObjectArray
from dphmm.errors import ArgumentError, expect
from dphmm.geometry.exact import Exact, as_epsilon, as_text
from dphmm.geometry.hull import SensitivityHull, check_body
from dphmm.geometry.query import Query
from dphmm.geometry.states import possible_mask, state_number, state_numbers
from dphmm.noise.mechanism import Mechanism, lattice_vector
from dphmm.noise.randomness import Randomness
from dphmm.policy.graph import PolicyGraph, check_policy
from dphmm.policy.sensitivity import sensitivity_hull

__all__ = ["LocalRelease", "local_hull"]


def local_hull(
    query: Query, policy: PolicyGraph, state: int, possible: ArrayLike | None = None
) -> SensitivityHull:
    """The hull that LocalDP takes when this is the true state: only its neighbours count.

    The definition in the appendix. Never release with it: the hull tells where one is.

    Args:
        query: What is asked: the answer of every state.
        policy: The graph of states that must look alike, over the states of the query.
        state: The true state.
        possible: A mask over the states, or the numbers of the possible ones; all are by default.

    >>> query = Query([[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]])
    >>> path = PolicyGraph(6, [(3, 5), (5, 4)])
    >>> [local_hull(query, path, state).rank for state in (3, 4, 5)]
    [1, 1, 2]
    """
    check_policy(policy, query)
    mask = possible_mask(possible, query.n_states)
    near = np.zeros(query.n_states, dtype=bool)
    near[policy.neighbors(state)] = True
    return sensitivity_hull(query, PolicyGraph.complete(query.n_states), near & mask)


@dataclass(frozen=True, eq=False, repr=False)
class LocalRelease:
    """A leaky mechanism, and the attack of the appendix on it.

    For LocalDP the hulls differ; for our mechanism they are one, and the attack finds nothing.

    Args:
        query: What is asked: the answer of every state.
        epsilon: What the answer costs between two linked states; 0.1 and "0.1" are both a tenth.
        hulls: The body that is used in each possible state.
    """

    query: Query
    epsilon: Fraction
    hulls: Mapping[int, SensitivityHull]

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", as_epsilon(self.epsilon))
        expect(self.query, Query, "query")
        expect(self.hulls, Mapping, "hulls")
        for state, hull in self.hulls.items():
            state_numbers([state], self.query.n_states, "hulls")
            check_body(hull, self.query, "hulls")

    def __repr__(self) -> str:
        shared = len({hull.digest for hull in self.hulls.values()})
        return (
            f"LocalRelease({self.query!r}, epsilon={as_text(self.epsilon)}, "
            f"states={len(self.hulls)}, hulls={shared})"
        )

    @classmethod
    def local(
        cls, query: Query, policy: PolicyGraph, epsilon: Exact, possible: ArrayLike
    ) -> LocalRelease:
        """LocalDP: each true state has its own hull.

        Args:
            query: What is asked: the answer of every state.
            policy: The graph of states that must look alike, over the states of the query.
            epsilon: What the answer costs between two linked states; 0.1 and "0.1" are both a
                tenth.
            possible: A mask over the states, or the numbers of the possible ones.
        """
        check_policy(policy, query)
        mask = possible_mask(possible, query.n_states)
        hulls = {
            state: local_hull(query, policy, state, mask) for state in np.flatnonzero(mask).tolist()
        }
        return cls(query, as_epsilon(epsilon), hulls)

    @classmethod
    def shared(
        cls, query: Query, body: SensitivityHull, epsilon: Exact, possible: ArrayLike
    ) -> LocalRelease:
        """One hull for all: what a `Stream` does.

        Args:
            query: What is asked: the answer of every state.
            body: The one body, on the lattice of the query.
            epsilon: What the answer costs between two linked states; 0.1 and "0.1" are both a
                tenth.
            possible: A mask over the states, or the numbers of the possible ones.
        """
        check_body(body, query, "body")
        mask = possible_mask(possible, query.n_states)
        return cls(query, as_epsilon(epsilon), dict.fromkeys(np.flatnonzero(mask).tolist(), body))

    def sample_lattice(self, state: int, randomness: Randomness | None = None) -> ObjectArray:
        """A lattice answer, with the noise that the true state asks for.

        Args:
            state: The true state.
            randomness: Where the random words come from; by default the operating system's secure
                source.
        """
        if state_number(state, self.query.n_states) not in self.hulls:
            raise ArgumentError("state must be one of the possible states")
        noise = Mechanism(self.query, self.hulls[state], self.epsilon)
        return noise.sample_lattice(state, randomness)

    def lattice_candidates(self, lattice: ArrayLike) -> list[int]:
        """The states that could have given an answer: those whose own span it lies in.

        Args:
            lattice: One answer in steps of the lattice.
        """
        answer = lattice_vector(lattice)
        if answer.shape != (self.query.dimension,):
            raise ArgumentError(
                f"lattice must have {self.query.dimension} entries, got shape {answer.shape}"
            )
        return [
            state
            for state, hull in self.hulls.items()
            if hull.lattice_norm(answer - self.query.points[state]) < inf
        ]
