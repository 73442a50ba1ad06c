"""Geo-indistinguishability: planar Laplace noise, without and with optimal remapping."""

from __future__ import annotations

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.evaluate.compare.contender import OneLaw
from dphmm.evaluate.compare.world import World

__all__ = ["PlanarLaplace", "RemappedPlanarLaplace", "draw_planar", "log_planar"]


def draw_planar(
    centres: FloatArray, rate: FloatArray | float, rng: np.random.Generator
) -> FloatArray:
    """Planar Laplace answers: density rate^2 / (2 pi) exp(-rate |z - x|) around each centre.

    In polar coordinates the angle is uniform and the radius a gamma variable of shape 2.
    """
    radius = rng.gamma(2.0, 1.0, len(centres)) / rate
    angle = rng.uniform(0, 2 * np.pi, len(centres))
    return centres + (radius * np.stack([np.cos(angle), np.sin(angle)])).T


def log_planar(answers: FloatArray, places: FloatArray, rate: FloatArray | float) -> FloatArray:
    """The log-density of every answer at every place: (k, n)."""
    rates = np.broadcast_to(np.asarray(rate, dtype=np.float64), (len(answers),))[:, None]
    gaps = answers[:, None] - places[None, :]
    return np.asarray(2 * np.log(rates) - np.log(2 * np.pi) - rates * np.hypot(*gaps.T).T)


class PlanarLaplace(OneLaw):
    """Planar Laplace noise of rate epsilon over the largest linked distance.

    Epsilon is matched where it is dearest: two places that are as far apart as linked ones can
    be lose epsilon, nearer ones less in proportion, farther ones more.
    """

    name = "planar Laplace"
    source = "Andres, Bordenabe, Chatzikokolakis, Palamidessi 2013"
    promise = (
        "Two places d apart lose at most epsilon d / span at each answer, whatever is known "
        "beforehand; span is the largest distance of linked places."
    )

    @property
    def rate(self) -> float:
        """The epsilon of geo-indistinguishability, a kilometre."""
        return self.epsilon / self.world.span

    def draw(self, places: IntArray, rng: np.random.Generator) -> FloatArray:
        """Noise around each place."""
        return draw_planar(self.world.places[places], self.rate, rng)

    def log_likelihoods(self, answers: FloatArray) -> FloatArray:
        """The log-density at every place."""
        return log_planar(answers, self.world.places, self.rate)


class RemappedPlanarLaplace(PlanarLaplace):
    """Planar Laplace whose answer is moved to where people most likely are.

    The map shows the place with the least expected distance, given the answer and how often
    other people are at each place. That is post-processing: it costs nothing. A reader is given
    the answer before it was moved, which can only help them.
    """

    name = "planar Laplace, remapped"
    source = "Chatzikokolakis, ElSalamouny, Palamidessi 2017"

    def show(self, answers: FloatArray) -> FloatArray:
        """The best guess from one answer and the prior."""
        return remapped(self.world, self.log_likelihoods(answers))


def remapped(world: World, log_likelihoods: FloatArray) -> FloatArray:
    """The best guess for each row of likelihoods, with the prior of other people."""
    logs = log_likelihoods + np.log(world.prior)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return world.nearest_to_all(weights)
