"""Learning a chain from trips or releases, and saying what that costs.

A model is published with the scenario, and the moves that it does not have are moves that
nobody made. What nobody made is not impossible: a learned model keeps a small probability of
going anywhere, a public constant, unless somebody says that zeros are facts. There are three
ways: counting trips whose owners agree to publish the counts; few numbers under differential
privacy for whole people (`dphmm.scenario.private`); and EM on answers that have been released
already, which costs nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.spatial import cKDTree

from dphmm._types import IntArray
from dphmm.chain.anywhere import Share, Zeros, chosen_anywhere, held_out_anywhere
from dphmm.chain.chains import TimeVaryingModel
from dphmm.chain.markov import MarkovModel
from dphmm.errors import ArgumentError
from dphmm.release.stream import Stream
from dphmm.scenario.counting import Counted, Counting
from dphmm.scenario.models import PUBLIC_SOURCE, LearnedModel

__all__ = [
    "Moves",
    "from_public_counts",
    "learn_from_releases",
    "learn_public",
    "learn_walks",
    "moves_within",
    "support_from_edges",
]


@dataclass(frozen=True)
class Moves:
    """One person's moves in order of time: from, to, and the step of the clock they lead into."""

    sources: IntArray = field(repr=False)
    targets: IntArray = field(repr=False)
    slots: IntArray = field(repr=False)

    def __len__(self) -> int:
        return len(self.sources)

    @classmethod
    def of_track(cls, slots: ArrayLike, states: ArrayLike) -> Moves:
        """The moves of a track: between neighbouring steps only, so a gap is no move.

        >>> moves = Moves.of_track([1, 2, 5, 6], [0, 3, 1, 2])
        >>> moves.sources.tolist(), moves.targets.tolist()
        ([0, 1], [3, 2])
        """
        when, where = (np.asarray(column, dtype=np.int64) for column in (slots, states))
        next_to = np.flatnonzero(np.diff(when) == 1)
        return cls(where[next_to], where[next_to + 1], when[next_to + 1])

    @classmethod
    def of_rows(cls, slots: ArrayLike, states: ArrayLike) -> Moves:
        """The same of rows in any order; of several in one step the first counts.

        >>> Moves.of_rows([6, 5, 5], [3, 0, 9]).sources.tolist()
        [0]
        """
        times, first = np.unique(np.asarray(slots, dtype=np.int64), return_index=True)
        return cls.of_track(times, np.asarray(states, dtype=np.int64)[first])

    @classmethod
    def joined(cls, parts: Iterable[Moves]) -> Moves:
        """The moves of some parts, one after the other."""
        each = list(parts)
        none = np.zeros(0, dtype=np.int64)
        return cls(
            np.concatenate([none, *(moves.sources for moves in each)]),
            np.concatenate([none, *(moves.targets for moves in each)]),
            np.concatenate([none, *(moves.slots for moves in each)]),
        )

    def at(self, kept: IntArray) -> Moves:
        """Some of the moves."""
        return Moves(self.sources[kept], self.targets[kept], self.slots[kept])


def moves_within(points: ArrayLike, radius: float) -> sparse.csr_array:
    """The support that lets every state move to the states within a radius, itself included.

    It depends on where the states are and on nothing that anybody did.

    >>> moves_within([[0, 0], [0, 1], [0, 3]], 1).toarray().astype(int)
    array([[1, 1, 0],
           [1, 1, 0],
           [0, 0, 1]])
    """
    places = np.asarray(points, dtype=np.float64)
    if not radius >= 0:
        raise ArgumentError(f"radius must not be negative, got {radius!r}")
    pairs = cKDTree(places).query_pairs(radius, output_type="ndarray").astype(np.int64)
    return support_from_edges(pairs, len(places))


def support_from_edges(edges: ArrayLike, n_states: int) -> sparse.csr_array:
    """The support with both directions of every edge, and staying put."""
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    itself = np.arange(n_states)
    rows = np.concatenate([pairs[:, 0], pairs[:, 1], itself])
    columns = np.concatenate([pairs[:, 1], pairs[:, 0], itself])
    support = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n_states, n_states))
    support.sum_duplicates()
    support.data[:] = 1.0
    return support


def learn_public(
    people: Iterable[Moves],
    n_states: int,
    *,
    smoothing: float = 0.0,
    support: sparse.csr_array | None = None,
    slots: int = 1,
    zeros: Zeros = "guesses",
    anywhere: Share = None,
) -> LearnedModel:
    """The chain of raw counts; whoever uses it treats the counts, zeros included, as public.

    With `anywhere` "held-out" the probability of going anywhere is chosen from the same raw moves.
    """
    everybody = list(people)
    counts = _counts(everybody, n_states, slots)

    def held_out() -> float:
        turns = []
        for turn in range(slots):
            parts = [one.at(np.flatnonzero(one.slots % slots == turn)) for one in everybody]
            turns.append([(part.sources, part.targets) for part in parts])
        return held_out_anywhere(turns, n_states, smoothing, support)

    share = chosen_anywhere(zeros, anywhere, held_out)
    return from_public_counts(
        counts, smoothing=smoothing, support=support, zeros=zeros, anywhere=share
    )


def learn_walks(
    people: Iterable[tuple[ArrayLike, ArrayLike]],
    counting: Counting,
    *,
    smoothing: float = 0.0,
    support: sparse.csr_array | None = None,
    zeros: Zeros = "guesses",
    anywhere: float | None = None,
) -> LearnedModel:
    """The chain of raw counts that may remember, and change with the hour; public like others.

    People are pairs of slots and of the states in them, in any order.
    """
    counted = Counted.joined(counting.count(slots, states) for slots, states in people)
    model = counting.learn(
        counted, smoothing=smoothing, support=support, zeros=zeros, anywhere=anywhere
    )
    return LearnedModel(model, counting.source)


def from_public_counts(
    counts: Sequence[sparse.csr_array],
    *,
    smoothing: float = 0.0,
    support: sparse.csr_array | None = None,
    zeros: Zeros = "guesses",
    anywhere: float | None = None,
) -> LearnedModel:
    """The chain of counts that an engine has made, one matrix for each part of the cycle."""
    models = [
        MarkovModel.from_counts(
            each, smoothing=smoothing, support=support, zeros=zeros, anywhere=anywhere
        )
        for each in counts
    ]
    return LearnedModel(_chain(models), PUBLIC_SOURCE)


def learn_from_releases(
    streams: Sequence[Stream], *, iterations: int = 20, smoothing: float = 0.1
) -> LearnedModel:
    """The chain that EM reaches from what streams have said; it costs nothing more.

    The own moves, and the probability of going anywhere, stay those of the streams' own model,
    which they all share.
    """
    if not streams:
        raise ArgumentError("streams must hold at least one stream, got none")
    model = streams[0].model
    if not isinstance(model, MarkovModel):
        raise ArgumentError("streams must have a model of one matrix, got another")
    learned = model.fit_em(
        [stream.observations() for stream in streams],
        start=[stream._said_from[1] for stream in streams],
        n_iter=iterations,
        smoothing=smoothing,
    )
    return LearnedModel(
        learned.model, f"from releases of {len(streams)} people by EM; no further cost"
    )


def _counts(people: Iterable[Moves], n_states: int, slots: int) -> list[sparse.csr_array]:
    """The number of moves from each state to each other, for each part of the cycle."""
    if slots < 1:
        raise ArgumentError(f"slots must be at least 1, got {slots!r}")
    moves = Moves.joined(people)
    sources, targets, turns = moves.sources, moves.targets, moves.slots % slots
    counts = []
    for slot in range(slots):
        here = turns == slot
        ones = np.ones(int(here.sum()))
        matrix = sparse.csr_array((ones, (sources[here], targets[here])), (n_states, n_states))
        matrix.sum_duplicates()
        counts.append(matrix)
    return counts


def _chain(models: list[MarkovModel]) -> MarkovModel | TimeVaryingModel:
    return models[0] if len(models) == 1 else TimeVaryingModel(models)
