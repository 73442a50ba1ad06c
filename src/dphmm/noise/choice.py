"""Which exact sampler draws a body's noise; keyed answers depend on it, so integers decide."""

from __future__ import annotations

from fractions import Fraction

from dphmm.geometry.hull import SensitivityHull
from dphmm.noise.cones import fan_of
from dphmm.noise.drawing import Sampler
from dphmm.noise.envelope import envelope_of
from dphmm.noise.layers import layers_of

__all__ = ["sampler_of"]

CONE_TRY, ENVELOPE_TRY, LAYER_TRY = 1, 2, 1
"""What a try costs: a point of a cell and a coin; a Laplace step for each coordinate and a
coin; a layer and a point of its box."""


def sampler_of(body: SensitivityHull, epsilon: Fraction, gamma: Fraction | None = None) -> Sampler:
    """The sampler of a body at an epsilon, by a rule that everybody computes alike.

    Up to epsilon 1 the cones: they take at most e/(e - 1) tries for each dimension. Beyond,
    the envelope, or the layers of a staircase, if their tries cost less than about
    (epsilon + 1/2)^rank of the cones.
    """
    if body.rank == 0 or epsilon <= 1:
        return fan_of(body, gamma)
    cones = CONE_TRY * (epsilon + Fraction(1, 2)) ** body.rank
    if gamma is None:
        envelope = envelope_of(body)
        return envelope if ENVELOPE_TRY * envelope.tries < cones else fan_of(body)
    layers = layers_of(body, gamma)
    return layers if LAYER_TRY * layers.tries < cones else fan_of(body, gamma)
