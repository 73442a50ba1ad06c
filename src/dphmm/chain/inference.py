"""Filter, smoother, most likely path, score, sample and EM, over whole sequences.

Each is a fold of a belief over time. The belief given is what is known at `time`; the first
observation belongs to `time + 1`, after one transition (Algorithm 2 of the paper).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from dphmm._types import FloatArray, IntArray
from dphmm.chain.stochastic import (
    LEAST_PROBABILITY,
    LOWEST_LOG,
    add_logs,
    check_logs,
    log_max_product,
    log_product,
    row_of_entry,
)
from dphmm.errors import ArgumentError, expect_each

if TYPE_CHECKING:
    from dphmm.chain.markov import Belief, Chain, MarkovModel

Observations: TypeAlias = "ArrayLike | Iterable[ArrayLike | None]"
"""Log-likelihoods of every state, one row a step; None is a step without an observation."""

SAFE_TOTAL = 1e-100
"""Expected counts are summed in linear space while their total stays above this."""


def check_rows(
    observations: Observations, n_states: int, name: str = "observations"
) -> list[FloatArray | None]:
    """The observations as a list of checked vectors and None."""
    return [
        None if row is None else check_logs(row, n_states, f"{name}[{step}]")
        for step, row in enumerate(expect_each(observations, object, name))  # type: ignore[arg-type]
    ]


def filter_beliefs(
    chain: Chain, rows: Sequence[FloatArray | None], belief: Belief, time: int
) -> tuple[list[Belief], float]:
    """The belief after each step, and the log-probability of all observations."""
    beliefs, score = [], 0.0
    for step, row in enumerate(rows):
        belief = belief.predict(chain.at(time + step + 1))
        if row is not None:
            belief, evidence = belief._condition(row, f"observations[{step}]")
            score += evidence
        beliefs.append(belief)
    return beliefs, score


def messages(chain: Chain, rows: Sequence[FloatArray | None], time: int) -> list[FloatArray]:
    """For each step, the log-likelihood of all later observations in every state.

    Each is up to a constant. Minus infinity is exact: it marks the states from which the
    later observations cannot come.
    """
    later = np.zeros(chain.n_states)
    backwards = [later]
    for step in range(len(rows) - 1, 0, -1):
        model = chain.at(time + step + 1)
        here = _with_row(later, rows[step])
        before = model._moves @ (here > -np.inf)
        later = log_product(model.outgoing, here, before)
        if model.anywhere:
            # One sum serves every state: where a jump leads does not depend on where it began.
            jump = _log_jump(model, here)
            later = np.logaddexp(later, jump)
            before = before | (jump > -np.inf)
        with np.errstate(over="ignore"):
            later = np.where(before, np.maximum(later - later.max(), LOWEST_LOG), -np.inf)
        backwards.append(later)
    return backwards[::-1][: len(rows)]


def _log_jump(model: MarkovModel, message: FloatArray) -> float:
    """The log-likelihood of what follows a step that goes anywhere."""
    landing = model.landing
    terms = add_logs(np.log(model.jumps[landing]), message[landing])
    top = float(terms.max())
    return top if top == -np.inf else top + float(np.log(np.exp(terms - top).sum()))


def _with_row(later: FloatArray, row: FloatArray | None) -> FloatArray:
    return later if row is None else add_logs(later, row)


def smooth_beliefs(
    chain: Chain, rows: Sequence[FloatArray | None], belief: Belief, time: int
) -> list[Belief]:
    """The belief at each step given all observations, earlier and later."""
    beliefs, _ = filter_beliefs(chain, rows, belief, time)
    later = messages(chain, rows, time)
    return [belief.condition(message) for belief, message in zip(beliefs, later, strict=True)]


def decode_path(
    chain: Chain, rows: Sequence[FloatArray | None], belief: Belief, time: int
) -> tuple[float, IntArray]:
    """The log-probability and the states of the most likely path (Viterbi).

    Ties go to the lowest state, at the last step first.
    """
    best: list[FloatArray] = []
    for step, row in enumerate(rows):
        model = chain.at(time + step + 1)
        if step:
            scores = log_max_product(model.incoming, best[-1], model.jumps)
        else:
            scores = belief.predict(model).log_probabilities
        if row is not None:
            scores = add_logs(scores, row)
            if scores.max() == -np.inf:
                raise ArgumentError(f"observations[{step}] must leave a state possible")
        best.append(scores)
    path = np.empty(len(rows), dtype=np.int64)
    if not rows:
        return 0.0, path
    path[-1] = np.argmax(best[-1])
    for step in range(len(rows) - 1, 0, -1):
        path[step - 1] = _best_source(chain.at(time + step + 1), path[step], best[step - 1])
    return float(best[-1][path[-1]]), path


def _best_source(model: MarkovModel, state: int, before: FloatArray) -> int:
    """Whence the best path into a state comes, the lowest of equals."""
    incoming, jump = model.incoming, model.jumps[state]
    entries = slice(*incoming.indptr[state : state + 2])
    sources = incoming.indices[entries]
    if jump > 0:
        likeliest = int(np.argmax(before))
        moves = np.append(incoming.data[entries] + jump, jump)
        sources = np.append(sources, likeliest)
        terms = np.log(moves) + before[sources]
        return int(sources[terms == terms.max()].min())
    terms = np.log(incoming.data[entries]) + before[sources]
    return int(sources[np.argmax(terms)])


def sample_path(
    chain: Chain, length: int, belief: Belief, rng: np.random.Generator, time: int
) -> IntArray:
    """The states at `time + 1` to `time + length` of one random walk."""
    path = np.empty(length, dtype=np.int64)
    state = int(rng.choice(belief.n_states, p=belief.probabilities))
    for step, uniform in enumerate(rng.random(length)):
        model = chain.at(time + step + 1)
        transition = model.transition
        if model.anywhere and rng.random() < model.anywhere:
            path[step] = state = int(rng.choice(model.n_states, p=model.density))
            continue
        start, stop = transition.indptr[state : state + 2]
        cumulative = np.cumsum(transition.data[start:stop])
        entry = np.searchsorted(cumulative, uniform * cumulative[-1], side="right")
        state = int(transition.indices[min(start + entry, stop - 1)])
        path[step] = state
    return path


def expected_moves(
    model: MarkovModel, rows: Sequence[FloatArray | None], belief: Belief
) -> tuple[FloatArray, float]:
    """The expected count of each stored move given the observations, and their score."""
    beliefs, score = filter_beliefs(model, rows, belief, 0)
    sources, targets = row_of_entry(model.transition), model.transition.indices
    moves = model.outgoing.data
    counts = np.zeros(moves.size)
    later = messages(model, rows, 0)
    for before, after, row in zip([belief, *beliefs], later, rows, strict=False):
        message = _with_row(after, row)
        with np.errstate(over="ignore"):
            likelihood = np.exp(message - message.max())
        weights = before.probabilities[sources] * moves * likelihood[targets]
        # A step that went anywhere is no move of the matrix, and is counted for none.
        total = weights.sum() + (model.jumps @ likelihood)
        if total < SAFE_TOTAL:
            logs = add_logs(before.log_probabilities[sources] + np.log(moves), message[targets])
            jump = _log_jump(model, message) if model.anywhere else -np.inf
            top = max(logs.max(), jump)
            weights = np.exp(logs - top)
            total = weights.sum() + np.exp(jump - top)
        counts += weights / total
    return counts, score


def maximise(model: MarkovModel, counts: FloatArray) -> FloatArray:
    """The stored probabilities that make these counts most likely.

    A row without counts keeps its probabilities, and a stored move stays possible.
    """
    sources = row_of_entry(model.transition)
    sums = np.bincount(sources, weights=counts, minlength=model.n_states)[sources]
    ratio = np.divide(counts, sums, out=model.transition.data.copy(), where=sums > 0)
    return np.asarray(np.maximum(ratio, LEAST_PROBABILITY), dtype=np.float64)


def learn(
    model: MarkovModel,
    data: Sequence[Sequence[FloatArray | None]],
    starts: Sequence[Belief],
    n_iter: int,
    tolerance: float,
    smoothing: float,
) -> tuple[MarkovModel, FloatArray]:
    """The model that EM reaches, and what it maximises, for every model on the way."""
    history: list[float] = []
    for iteration in range(n_iter + 1):
        counts = np.full(model.transition.nnz, float(smoothing))
        score = smoothing * float(np.log(model.transition.data).sum())
        for rows, belief in zip(data, starts, strict=True):
            moves, evidence = expected_moves(model, rows, belief)
            counts += moves
            score += evidence
        history.append(score)
        if iteration == n_iter or (iteration and history[-1] - history[-2] < tolerance):
            break
        model = model._with(maximise(model, counts))
    return model, np.array(history)


def closed_classes(model: MarkovModel) -> list[IntArray]:
    """The sets of states that reach each other and nothing else."""
    from scipy.sparse.csgraph import connected_components  # a tenth of the import of dphmm

    n_classes, label = connected_components(model._moves, directed=True, connection="strong")
    sources = label[row_of_entry(model.transition)]
    leaving = np.unique(sources[sources != label[model.transition.indices]])
    closed = np.setdiff1d(np.arange(n_classes), leaving)
    return [np.flatnonzero(label == number) for number in closed]


def stationary_logs(model: MarkovModel, states: IntArray) -> FloatArray:
    """The logs, up to a constant, of the stationary distribution of one closed class.

    With the first state's weight set to one, the others solve x (I - Q) = m. Elimination
    without pivoting adds and multiplies only numbers of one sign, so nothing cancels; the
    diagonal 1 - q is summed from the other moves for the same reason.
    """
    if states.size == 1:
        return np.zeros(1)
    inside = sparse.csr_array(model.transition[states][:, states])
    inside.setdiag(0.0)
    leaving = np.asarray(inside.sum(axis=1))
    system = sparse.csc_array((sparse.diags_array(leaving) - inside).T)[1:, 1:]
    rest = _solve(system, inside[[0]].toarray()[0, 1:])
    if not np.isfinite(rest).all():
        raise ArgumentError("transition must have a stationary distribution that floats can hold")
    return np.concatenate([[0.0], np.log(np.maximum(rest, LEAST_PROBABILITY))])


def stationary_logs_anywhere(model: MarkovModel) -> FloatArray:
    """The logs, up to a constant, of the p with p = (1 - a) p M + a u, for a above zero.

    p (I - (1 - a) M) = a u, on the states that jumps and moves lead to. The diagonal is summed
    from what leaves, a among it; the result is good to rounding over a.
    """
    reached = model.landing
    while (further := reached | model.successors(reached)).sum() > reached.sum():
        reached = further
    states = np.flatnonzero(reached)
    inside = sparse.csr_array(model.outgoing[states][:, states])
    inside.setdiag(0.0)
    leaving = np.asarray(inside.sum(axis=1)) + model.anywhere
    solved = _solve((sparse.diags_array(leaving) - inside).T, model.jumps[states])
    logs = np.full(model.n_states, -np.inf)
    logs[states] = np.log(np.maximum(solved, LEAST_PROBABILITY))
    return logs


def _solve(system: sparse.sparray, right: FloatArray) -> FloatArray:
    """Solve by elimination without pivoting, where nothing cancels."""
    from scipy.sparse.linalg import splu  # a tenth of the import of dphmm

    factors = splu(
        sparse.csc_array(system),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    solved: FloatArray = factors.solve(right)
    return solved
