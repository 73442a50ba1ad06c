"""A plan for OpenDP: a measurement that knows what it costs."""

from __future__ import annotations

from fractions import Fraction
from math import inf, isinf, nextafter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dphmm.errors import ArgumentError, require
from dphmm.geometry.exact import Exact, as_epsilon
from dphmm.noise.staircase import largest_loss

if TYPE_CHECKING:
    from dphmm.policy.plan import Plan

__all__ = ["to_opendp"]

DISTANCE = (
    "dphmm: norm of the difference of what two states are answered around, 1 or less for possible "
    "states that are linked"
)


def to_opendp(self: Plan, epsilon: Exact, *, possible: ArrayLike | None = None) -> Any:
    """The plan at one step as an OpenDP measurement: a state in, a noisy answer out.

    Two possible states are as far apart as the norm of the difference of their answers in the
    body of the noise: at most 1 if the (repaired) policy links them, at most k over k links. The
    privacy map gives the loss in epsilon, rounded up. A state that is not possible is answered
    as the nearest possible one, as in a stream, and is as far from others as that one. Turn on
    OpenDP's features "contrib" and "honest-but-curious" first: it cannot prove what code outside
    it does. Nothing is written into a ledger or book of dphmm, and asking twice gives two
    answers: count them there.

    Args:
        epsilon: What linked states lose.
        possible: A mask over the states, or the numbers of the possible ones; all by default.
    """
    dp = require("opendp.prelude", "opendp")
    if self.delta:
        raise ArgumentError(f"plan must have delta 0 for a measurement, got {self.delta}")
    price, query = as_epsilon(epsilon), self.query
    step = self.at(np.ones(query.n_states, dtype=bool) if possible is None else possible)
    mechanism, staircase = step.mechanism(price), self.mechanism == "staircase"

    def answer(state: int) -> list[float]:
        lattice = mechanism.sample_lattice(state, possible=step.possible)
        return [float(number) for number in query.in_units(lattice)]

    def lose(apart: float) -> float:
        if not isinstance(apart, (int, float, Fraction)) or not apart >= 0:
            raise ArgumentError(f"d_in must be a norm of 0 or more, got {apart!r}")
        exact = apart if isinf(apart) else Fraction(apart)
        return _round_up(largest_loss(exact, price, staircase))

    domain = dp.atom_domain(bounds=(0, query.n_states - 1), T="i32")
    return dp.m.make_user_measurement(
        domain, dp.user_distance(DISTANCE), dp.max_divergence(), answer, lose, TO="Vec<f64>"
    )


def _round_up(loss: Fraction | float) -> float:
    """The smallest float that is not below a loss."""
    near = float(loss)
    return near if isinf(near) or Fraction(near) >= loss else nextafter(near, inf)
