"""What a sequence of releases costs: two paths told apart by all of it.

For hulls that do not depend on the answers the largest loss between two paths is exactly the
sum of the losses at each time, attained when every answer falls on one of the two paths. So
the tight values are longest paths over pairs of states,

    V_t(j, k) = epsilon_t ||f(j) - f(k)||_{K_t}
                + max over moves j' -> j and k' -> k of V_{t-1}(j', k'),

and the double maximum splits into two single ones: O(T N E) instead of O(T E^2). Where the
chain can go anywhere the moves restrict nothing, and the values are sums of each step's worst
pair, without a table of pairs.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf

from dphmm.cost.charges import Loss
from dphmm.cost.composition import TIGHT_STATES, compose, total_worst
from dphmm.cost.history import History
from dphmm.cost.pair_tables import PairTables
from dphmm.errors import expect

__all__ = ["TIGHT_STATES", "paper_sequence_epsilon", "sequence_epsilon"]


def paper_sequence_epsilon(history: History) -> Loss:
    """The sum over time of each release's worst pair, exactly (Theorem 7.2).

    An upper bound: the worst pairs of two times need not lie on two paths that the chain can
    take. Infinite exactly when `sequence_epsilon` is.

    Args:
        history: What was released, or will be, step by step.
    """
    return sum(worst_losses(history), Fraction(0))


def worst_losses(history: History) -> list[Loss]:
    """The worst pair's loss at every step."""
    expect(history, History, "history")
    kinds = history.kinds()
    known = {
        kind: total_worst(history.charges[step], history.states(step))
        for kind, step in {kind: step for step, kind in enumerate(kinds)}.items()
    }
    return [known[kind] for kind in kinds]


def sequence_epsilon(history: History) -> Loss:
    """The largest loss between two paths that the chain allows: Theorem 7.2, tight.

    Infinite as soon as one release can tell two possible states apart with certainty. Up to
    TIGHT_STATES possible states; `sequence_bracket` goes beyond. With a model that can go
    anywhere every path is allowed, and any number of states will do.

    Args:
        history: What was released, or will be, step by step.

    >>> from dphmm.geometry.hull import SensitivityHull
    >>> from dphmm.chain.markov import MarkovModel
    >>> from dphmm.geometry.query import Query
    >>> ring = MarkovModel([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    >>> body = SensitivityHull.from_vertices([[1]])
    >>> history = History.of(Query([0, 0, 10]), ring, [body] * 6, 1)
    >>> sequence_epsilon(history), paper_sequence_epsilon(history)
    (Fraction(40, 1), Fraction(60, 1))
    """
    if inf in worst_losses(history):
        return inf
    if history.is_free:
        return sum(free_losses(history), Fraction(0))
    return PairTables(history).between(0, len(history))


def is_within_reach(history: History) -> bool:
    """Whether the tight values of a history are computed."""
    if history.is_free and all(len(answers) <= 1 for answers in history.charges):
        return True
    return max(int(mask.sum()) for mask in history.possible) <= TIGHT_STATES


def free_losses(history: History) -> list[Loss]:
    """The worst pair's loss at every step, over all its answers together."""
    kinds = history.kinds()
    known: dict[int, Loss] = {}
    for step, kind in enumerate(kinds):
        if kind not in known:
            charges, possible = history.charges[step], history.possible[step]
            worst = compose(charges, possible).tight if charges else Fraction(0)
            # Floats, rounded up, are added up exactly.
            known[kind] = worst if worst == inf else Fraction(worst)
    return [known[kind] for kind in kinds]
