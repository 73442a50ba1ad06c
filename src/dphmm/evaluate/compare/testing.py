"""Private tests of a distance, which two families of mechanisms share.

Somebody asks whether the true place is farther than so much from a point that everybody knows,
and hears the answer of a coin: distance plus Laplace noise beyond the threshold. A distance
changes by no more than the place does, so the noise of rate e makes two places d apart lose e d.
"""

from __future__ import annotations

import numpy as np

from dphmm._types import FloatArray, Mask

__all__ = ["farther", "log_farther"]


def farther(
    distance: FloatArray, threshold: FloatArray, rate: float, rng: np.random.Generator
) -> Mask:
    """Whether each distance with noise lies beyond its threshold."""
    return np.asarray(distance + rng.laplace(0.0, 1 / rate, len(distance)) > threshold)


def log_farther(distance: FloatArray, threshold: FloatArray, rate: float, said: Mask) -> FloatArray:
    """The logarithm of the chance of what was said, for every distance: (k, n)."""
    beyond = rate * (distance - threshold[:, None])
    # P(noise > threshold - distance), one half of it in the nearer tail.
    tail = np.log(0.5) - np.abs(beyond)
    rest = np.log1p(-np.exp(tail))
    log_yes = np.where(beyond > 0, rest, tail)
    log_no = np.where(beyond > 0, tail, rest)
    return np.where(said[:, None], log_yes, log_no)
