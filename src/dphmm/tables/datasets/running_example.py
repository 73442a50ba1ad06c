"""The paper's running example: six states, what they answer, and whom they must look like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dphmm._types import IntArray, Mask
from dphmm.chain.markov import MarkovModel
from dphmm.errors import ArgumentError
from dphmm.geometry.query import Query
from dphmm.policy.graph import PolicyGraph

__all__ = ["RunningExample", "running_example"]

TRANSITION = (
    (0.0, 0.5, 0.25, 0.0, 0.25, 0.0),
    (0.0, 0.0, 0.5, 0.5, 0.0, 0.0),
    (0.0, 0.0, 0.5, 0.0, 0.5, 0.0),
    (0.0, 0.25, 0.0, 0.25, 0.25, 0.25),
    (0.0, 0.0, 0.0, 0.0, 0.5, 0.5),
    (0.0, 0.0, 0.0, 0.25, 0.25, 0.5),
)
"""Ours: the paper draws them. From s1 they reach the constraint sets of its examples."""

VALUES = ((1, 0), (2, 1), (3, 0), (0, 1), (4, 2), (1, 2))
KINDS = ("cafeteria", "school", "school", "grocery", "grocery", "grocery")
LABELS = tuple(f"s{number}" for number in range(1, 7))
REACH = 2
"""Of the utility oriented policy; the paper draws it and does not give it."""


@dataclass(frozen=True, eq=False)
class RunningExample:
    """Six states named s1 to s6, as in the paper; a state's number is one less.

    >>> example = running_example()
    >>> example.query.values[example.number("s5")]
    array([4., 2.])
    >>> example.named(example.model.reach(example.possible(["s1"]), 1))
    ('s2', 's3', 's5')
    """

    model: MarkovModel
    """The random walk of Example 3.1. The paper draws its probabilities; these are ours."""
    query: Query
    """Temperature and noise level of each state (Example 3.2)."""
    policy: PolicyGraph
    """Every state looks like the others of its category (Figure 3)."""
    labels: tuple[str, ...] = LABELS
    kinds: tuple[str, ...] = KINDS
    """The category of each state."""

    @property
    def policies(self) -> dict[str, PolicyGraph]:
        """The four kinds of policy of Figure 5, by the names that scenarios give them."""
        return {
            "complete": PolicyGraph.complete(len(self.labels)),
            "category": self.policy,
            "distance": PolicyGraph.within_distance(self.query, REACH),
            "one_step": PolicyGraph.one_step(self.model),
        }

    def number(self, label: str) -> int:
        """The number of a state.

        Args:
            label: Its name in the paper, from s1 to s6.
        """
        if label not in self.labels:
            raise ArgumentError(f"label must be one of s1 to s6, got {label!r}")
        return self.labels.index(label)

    def possible(self, labels: Sequence[str]) -> Mask:
        """Some states as a mask over all six.

        Args:
            labels: Their names in the paper.
        """
        mask = np.zeros(len(self.labels), dtype=bool)
        mask[[self.number(label) for label in labels]] = True
        return mask

    def named(self, states: Mask | IntArray) -> tuple[str, ...]:
        """The names of some states.

        Args:
            states: Their numbers, or a mask over all six.
        """
        return tuple(np.array(self.labels)[np.asarray(states)].tolist())


def running_example() -> RunningExample:
    """The paper's running example, ready to be released, repaired and audited."""
    return RunningExample(
        MarkovModel(np.array(TRANSITION)), Query(VALUES), PolicyGraph.by_category(KINDS)
    )
