"""Exact laws to hold samplers against: every script of numbers, every lattice point."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from math import log

import numpy as np
import pytest
from scipy import stats

from dphmm.geometry.query import Query
from dphmm.noise.mechanism import Mechanism


class OutOfScriptError(Exception):
    pass


class Scripted:
    """Words whose every number below n was decided beforehand."""

    def __init__(self, script):
        self.script = script
        self.read = 0
        self.chance = Fraction(1)

    def below(self, n):
        if n == 1:
            return 0
        if self.read == len(self.script):
            raise OutOfScriptError(n)
        self.read += 1
        self.chance /= n
        return self.script[self.read - 1]


def law(draw, depth):
    """The exact probability of each result of a draw within `depth` numbers, and of no result."""
    results, undecided = Counter(), Fraction(0)
    waiting = [()]
    while waiting:
        script = waiting.pop()
        source = Scripted(script)
        try:
            results[draw(source)] += source.chance
        except OutOfScriptError as more:
            if len(script) == depth:
                undecided += source.chance
            else:
                waiting += [(*script, value) for value in range(more.args[0])]
    return results, undecided


def window_of(body, reach):
    """Every lattice vector of the span with coordinates up to `reach`."""
    box = np.array(list(product(range(-reach, reach + 1), repeat=body.rank)))
    return (box.astype(object) @ body.basis).astype(np.int64)


def p_value(body, epsilon, noise, gamma=None):
    """Chi-square of noise vectors against exp(-epsilon ||x||)/Z, on bins that expect five."""
    mechanism = Mechanism(Query(np.zeros((1, body.dimension), dtype=int)), body, epsilon, gamma)
    n = len(noise)
    radius = (log(n / 5) - mechanism.log_normalizer) / float(epsilon)
    radius += 1 if gamma else 0  # layers are above the norm, by less than one
    reach = int(radius * np.abs(body.body.corners.astype(int)).max()) + 1
    vectors = window_of(body, reach)
    norms = body.lattice_norms(vectors) if gamma is None else body.lattice_layers(vectors, gamma)
    logs = -float(epsilon) * norms - mechanism.log_normalizer
    assert logs[:3] == pytest.approx([mechanism.lattice_log_probability(v)[0] for v in vectors[:3]])
    expected = n * np.exp(logs)
    kept = expected >= 5
    counts = Counter(map(tuple, noise))
    observed = [counts[tuple(v)] for v in vectors[kept].tolist()]
    rest = n - expected[kept].sum()
    assert kept.sum() >= 3, "too few bins to say anything"
    bins, wanted = [*observed, n - sum(observed)], [*expected[kept], rest]
    return stats.chisquare(bins, wanted, sum_check=False).pvalue
