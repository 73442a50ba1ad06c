"""Whose track is it? Somebody who knows everybody's past and sees a day without a name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dphmm._types import FloatArray
from dphmm.chain.belief import Belief
from dphmm.chain.chain import Chain
from dphmm.evaluate.compare.reading import log_scores

__all__ = ["own_ranks"]

EQUAL = 1e-3
"""Logarithms closer than this are equally good: far above the rounding of single precision over a
week of steps, and far below what could tell anybody anything."""


def own_ranks(
    rows: list[FloatArray | None], own: Sequence[tuple[Chain, Belief]], tracks: int
) -> FloatArray:
    """For each track how many suspects explain it better than its owner; 0 is found out.

    Suspect k's past is `own[k]`, and track k is theirs; where there are more tracks than suspects
    it begins again with the first. Equally good suspects count a half, so that without any
    answers everybody's rank is in the middle.

    Args:
        rows: How likely every place makes what was told, as `likelihoods` gives it.
        own: For each person a chain and a start that know their past.
        tracks: How many the rows are about.
    """
    scores = np.array([log_scores(rows, chain, start, tracks) for chain, start in own])
    mine = scores[np.arange(tracks) % len(own), np.arange(tracks)]
    better = (scores > mine + EQUAL).sum(axis=0)
    equal = (np.abs(scores - mine) <= EQUAL).sum(axis=0) - 1
    return np.asarray(better + equal / 2, dtype=np.float64)
