"""What somebody else can infer from releases: other knowledge, attacks on tracks.

Attacks use public things only: what was released, the noise, some model. How well an attack
did needs the truth; what says so is named `private` and belongs to the owner of the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import FloatArray, IntArray, Mask
from dphmm.chain.inference import check_rows
from dphmm.chain.markov import Belief, Chain, Observations, Start
from dphmm.cost.charges import Loss, constrained_epsilon
from dphmm.errors import ArgumentError, expect
from dphmm.geometry.exact import Exact
from dphmm.geometry.hull import SensitivityHull, check_body
from dphmm.geometry.query import Query
from dphmm.geometry.states import as_array, possible_mask
from dphmm.noise.mechanism import Mechanism
from dphmm.policy.graph import PolicyGraph, check_policy
from dphmm.policy.protection import unprotected

__all__ = [
    "Attack",
    "Inference",
    "Knowledge",
    "PrivateScore",
    "attack",
    "guarantee_against",
    "largest_gains",
    "private_identification_rate",
    "private_score",
    "suspect_probabilities",
]


# Other priors and possible sets


@dataclass(frozen=True, eq=False, repr=False)
class Knowledge:
    """What a release still guarantees against somebody with another possible set."""

    case: str
    """`same`, `I` (knows more than the model), `II` (knows less) or `other`."""
    common: Mask
    """The states that both hold possible: somebody is in one of them."""
    epsilon: Loss
    """The loss of the worst pair of the states that he holds possible, and of those that stand in
    for them, which bounds what he gains about any of them (the appendix counts the common ones
    only, which is too little)."""
    unprotected: IntArray
    """The states that he holds possible and for which Definition 4.4 fails on his set, by their own
    answers; where another state's is given in their place, only `epsilon` counts it."""

    def __repr__(self) -> str:
        return (
            f"Knowledge(case={self.case!r}, common={int(self.common.sum())} states, "
            f"epsilon={self.epsilon}, unprotected={len(self.unprotected)} states)"
        )


def guarantee_against(
    query: Query,
    policy: PolicyGraph,
    body: SensitivityHull,
    epsilon: Exact,
    *,
    possible: ArrayLike,
    known: ArrayLike,
    gamma: Exact | None = None,
) -> Knowledge:
    """What noise made for the states in `possible` hides from somebody who holds `known` possible.

    The paper says that knowing more (Case I) does no harm while two states remain. It can:
    here s2 was hidden by s4 and s5, and whoever rules these out tells s2 from s6.

    Args:
        query: What is asked: the answer of every state.
        policy: The graph of states that must look alike, over the states of the query.
        body: The body that shaped the noise, on the lattice of the query.
        epsilon: What the answer costs between two linked states; 0.1 and "0.1" are both a tenth.
        possible: The states that the noise was made for, as a mask or numbers.
        known: The states that somebody else holds possible, as a mask or numbers.
        gamma: That of staircase noise; None for K-norm noise.

    >>> from dphmm.policy.sensitivity import sensitivity_hull
    >>> query = Query([[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]])
    >>> policy = PolicyGraph.by_category(["cafe", "school", "school", "shop", "shop", "shop"])
    >>> possible = [False, True, False, True, True, True]
    >>> body = sensitivity_hull(query, policy, possible)
    >>> less = guarantee_against(query, policy, body, 1, possible=possible,
    ...     known=[False, True, False, False, False, True])
    >>> less.case, less.epsilon, less.unprotected.tolist()
    ('I', Fraction(5, 3), [1, 5])
    """
    check_body(body, query, "body")
    check_policy(policy, query)
    ours = possible_mask(possible, query.n_states)
    theirs = possible_mask(known, query.n_states)
    common = ours & theirs
    loss: Loss = Fraction(0)
    if common.any():
        heard = theirs.copy()
        # Where the noise was made for others, the nearest of them is answered.
        heard[query.nearest_states(np.flatnonzero(theirs & ~ours), ours)] = True
        loss = constrained_epsilon(query, body, epsilon, heard, gamma)
    if (ours == theirs).all():
        case = "same"
    elif (common == theirs).all():
        case = "I"
    else:
        case = "II" if (common == ours).all() else "other"
    return Knowledge(case, common, loss, unprotected(query, policy, theirs, hull=body))


def largest_gains(mechanism: Mechanism, prior: Start) -> FloatArray:
    """For each state the largest posterior over prior that any answer can bring.

    Constrained adversarial privacy (appendix) asks that these stay below e^epsilon'. The best
    answer for a state is its own: there every other state is less likely by e^(epsilon norm),
    all at once. So the gain is 1 / sum_k p_k exp(-epsilon ||f(s) - f(k)||), and no search is
    needed. Under a staircase, with norms rounded up, this is an upper bound: no answer need be
    the worst for all states at once. One for a state that the prior rules out.

    Args:
        mechanism: The noise.
        prior: What somebody believes before: a state, a distribution or a belief.

    >>> query = Query([[0], [1], [2]])
    >>> mechanism = Mechanism(query, SensitivityHull.from_vertices([[1]]), Fraction(1))
    >>> largest_gains(mechanism, [0.5, 0.5, 0.0]).round(3).tolist()
    [1.462, 1.462, 1.0]
    """
    expect(mechanism, Mechanism, "mechanism")
    belief = Belief.known(prior, mechanism.query.n_states, "prior")
    gains = np.ones(mechanism.query.n_states)
    for state in np.flatnonzero(belief.possible).tolist():
        apart = mechanism.query.points - mechanism.query.points[state]
        if mechanism.gamma is None:
            norms = mechanism.body.lattice_norms(apart)
        else:
            norms = mechanism.body.lattice_layers(apart, Fraction(0))
        likelihood = np.exp(-float(mechanism.epsilon) * norms)
        gains[state] = 1 / float(belief.probabilities @ likelihood)
    return gains


# Attacks on released tracks, with any model


@dataclass(frozen=True, eq=False, repr=False)
class Attack:
    """What a reader of releases believes, given a model that may be wrong; all of it public."""

    filtered: list[Belief]
    """About each time, given the releases up to it."""
    smoothed: list[Belief]
    """About each time, given all releases."""
    path: IntArray
    """The most likely path."""
    score: float
    """The log-probability of the releases under the model."""

    def __repr__(self) -> str:
        return f"Attack(steps={len(self.path)}, score={self.score:g})"


def attack(observations: Observations, *, model: Chain, start: Start) -> Attack:
    """The beliefs and the most likely path of somebody who reads releases with a model.

    The model and the start are the reader's own: the true ones, poorer or richer ones, or
    wrong ones. A model under which the releases are
    impossible is refused.

    Args:
        observations: What was released, as `stream.observations()` gives it.
        model: The chain that the reader has in mind.
        start: What the reader knows before the first step: a state, a distribution or a belief.

    >>> from dphmm import MarkovModel
    >>> walk = MarkovModel([[0.5, 0.5], [0.5, 0.5]])
    >>> seen = [[0.0, -2.0], [-2.0, 0.0]]
    >>> attack(seen, model=walk, start=0).path.tolist()
    [0, 1]
    """
    expect(model, Chain, "model")
    rows = check_rows(observations, model.n_places)
    if not _explains(model, rows, start):
        raise ArgumentError("model must allow the releases, got one in which they are impossible")
    return Attack(
        filtered=model.filter(rows, start=start),
        smoothed=model.smooth(rows, start=start),
        path=model.decode(rows, start=start)[1],
        score=model.score(rows, start=start),
    )


def _explains(model: Chain, rows: Sequence[FloatArray | None], start: Start) -> bool:
    """Whether some path of the model can give the releases: a question about masks alone."""
    possible, memory = model.known(start).possible, model.memory
    for time, row in enumerate(rows, start=1):
        possible = model.reach(possible, time)
        if row is not None:
            allowed = row > -inf
            possible = possible & (allowed if memory is None else allowed[memory.current])
        if not possible.any():
            return False
    return True


@dataclass(frozen=True)
class Inference:
    """How close one kind of inference came; private, since it compares with the truth."""

    error: float
    """The expected distance from the true answer, averaged over time, in the query's units."""
    right: float
    """The probability given to the true state, averaged over time; for a path, how often."""


@dataclass(frozen=True)
class PrivateScore:
    """How well an attack did, against what the model alone knows; for the owner's eyes only."""

    prior: Inference
    """Without any release: what to compare with."""
    filtered: Inference
    """With the releases up to each time."""
    smoothed: Inference
    """With all releases."""
    path: Inference
    """With the most likely path."""
    private: bool = True
    """Whoever writes this down writes down a function of the truth."""


def private_score(
    found: Attack, truth: ArrayLike, query: Query, *, model: Chain, start: Start
) -> PrivateScore:
    """Expected inference error and probability of being right, which only the owner can know.

    `model` and `start` give the prior: what the same reader would believe without releases.

    Args:
        found: What the attack found.
        truth: The true states, one a step; the score is as private as they are.
        query: Where the states lie, for distances.
        model: The chain for the prior.
        start: The start for the prior.
    """
    expect(found, Attack, "found")
    expect(query, Query, "query")
    expect(model, Chain, "model")
    sizes = {query.n_states, model.n_places, *(belief.n_states for belief in found.filtered)}
    if len(sizes) > 1:
        raise ArgumentError(
            f"query must have the states of the model and of the attack, got {sorted(sizes)}"
        )
    states = as_array(truth, "truth")
    if states.shape != (len(found.filtered),) or states.dtype.kind not in "iu":
        raise ArgumentError(f"truth must be one state for each of {len(found.filtered)} steps")
    if len(states) and not (states.min() >= 0 and states.max() < query.n_states):
        raise ArgumentError(f"truth must be among the {query.n_states} states")
    silent = model.filter([None] * len(states), start=start)
    # A path is a certain belief at each time.
    path = [Belief.certain(int(state), query.n_states) for state in found.path]
    return PrivateScore(
        prior=_inference(silent, states, query),
        filtered=_inference(found.filtered, states, query),
        smoothed=_inference(found.smoothed, states, query),
        path=_inference(path, states, query),
    )


def _inference(beliefs: Sequence[Belief], states: IntArray, query: Query) -> Inference:
    errors, right = [], []
    for belief, state in zip(beliefs, states.tolist(), strict=True):
        distances = np.linalg.norm(query.values - query.values[state], axis=1)
        errors.append(float(belief.probabilities @ distances))
        right.append(float(belief.probabilities[state]))
    return Inference(float(np.mean(errors)), float(np.mean(right)))


def suspect_probabilities(
    observations: Observations,
    suspects: Sequence[tuple[Chain, Start]],
    prior: ArrayLike | None = None,
) -> FloatArray:
    """How likely each suspect's model and start make it that a track is theirs; public.

    A suspect whose model cannot give the releases has probability zero.

    Args:
        observations: What was released, as `stream.observations()` gives it.
        suspects: For each suspect a model and a start.
        prior: What was believed before, one probability a suspect; all alike by default.

    >>> from dphmm import MarkovModel
    >>> stays, moves = MarkovModel([[0.9, 0.1], [0.1, 0.9]]), MarkovModel([[0.1, 0.9], [0.9, 0.1]])
    >>> seen = [[0.0, -9.0]] * 5
    >>> suspect_probabilities(seen, [(stays, 0), (moves, 0)]).round(3).tolist()
    [1.0, 0.0]
    """
    _check_suspects(suspects)
    before = np.full(len(suspects), 1 / len(suspects))
    if prior is not None:
        if isinstance(prior, int | np.integer):
            raise ArgumentError(f"prior must have {len(suspects)} entries, got a number")
        before = Belief.known(prior, len(suspects), "prior").probabilities
    rows = check_rows(observations, suspects[0][0].n_places)
    with np.errstate(divide="ignore"):
        scores = np.log(before)
    for number, (model, start) in enumerate(suspects):
        scores[number] += model.score(rows, start=start) if _explains(model, rows, start) else -inf
    if scores.max() == -inf:
        raise ArgumentError("suspects must include one whose model allows the releases")
    weights = np.exp(scores - scores.max())
    return np.asarray(weights / weights.sum())


def _check_suspects(suspects: Sequence[tuple[Chain, Start]]) -> None:
    expect(suspects, Sequence, "suspects")
    if not suspects:
        raise ArgumentError("suspects must name at least one model, got none")
    for suspect in suspects:
        if not isinstance(suspect, tuple) or len(suspect) != 2:
            raise ArgumentError("suspects must be pairs of a model and a start")
        expect(suspect[0], Chain, "suspects")


def private_identification_rate(
    probabilities: Iterable[ArrayLike], owners: ArrayLike
) -> tuple[float, float]:
    """How often the most likely suspect is the owner, and how likely the owner is on average.

    Private: it compares with the truth. Without releases both are one over the number of
    suspects, if all were as likely before; that is what to compare with.

    Args:
        probabilities: For each track the probability of every suspect.
        owners: For each track its true owner, by the suspect's number.

    >>> private_identification_rate([[0.75, 0.25], [0.5, 0.5]], [0, 1])
    (0.5, 0.625)
    """
    expect(probabilities, Iterable, "probabilities")
    try:
        table = np.array([np.asarray(row, dtype=np.float64) for row in probabilities])
    except (TypeError, ValueError):
        raise ArgumentError("probabilities must be rows of numbers, one a track") from None
    if not len(table):
        raise ArgumentError("probabilities must hold at least one track, got none")
    names = as_array(owners, "owners")
    if table.ndim != 2 or names.shape != (len(table),) or names.dtype.kind not in "iu":
        raise ArgumentError(f"owners must be one suspect for each of {len(table)} tracks")
    if not (names.min() >= 0 and names.max() < table.shape[1]):
        raise ArgumentError(f"owners must be among the {table.shape[1]} suspects")
    guesses = table.argmax(axis=1)
    given = table[np.arange(len(table)), names]
    return float((guesses == names).mean()), float(given.mean())
