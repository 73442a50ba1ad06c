"""Noise shaped by the policy, as this library draws it: K-norm, staircase, l1 Laplace."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.evaluate.compare.contender import OneLaw
from dphmm.geometry.exact import exact
from dphmm.noise.mechanism import Mechanism
from dphmm.noise.randomness import SeededRandomness
from dphmm.policy.plan import Plan

__all__ = ["KNorm", "L1Laplace", "Staircase"]


class _Shaped(OneLaw):
    """The library's noise for the policy, every place possible: one law for everybody."""

    noise = "knorm"

    @cached_property
    def law(self) -> Mechanism:
        """The noise; its body holds every linked difference, repaired edges among them."""
        plan = Plan(self.world.policy, self.world.query, mechanism=self.noise)
        everywhere = np.ones(self.world.query.n_states, dtype=bool)
        return plan.at(everywhere).mechanism(self.price)

    @cached_property
    def price(self) -> Fraction:
        """What an answer costs, as an exact number."""
        total = exact(self.budget.total, "total")
        return total / len(self.at) if self.at else total / self.budget.steps * self.every

    def draw(self, places: IntArray, rng: np.random.Generator) -> FloatArray:
        """Lattice noise, in the units of the query."""
        query = self.world.query
        noise = self.law.sample_lattice_many(0, len(places), SeededRandomness(rng))
        return np.asarray(query.in_units(noise - query.points[0] + query.points[places]))

    def log_likelihoods(self, answers: FloatArray) -> FloatArray:
        """Minus epsilon times the norm, or its layer, of every difference."""
        query, body = self.world.query, self.law.body
        apart = query.on_lattice(answers)[:, None] - query.points[None, :]
        flat = apart.reshape(-1, 2)
        if self.law.gamma is None:
            norms = body.lattice_norms(flat)
        else:
            norms = body.lattice_layers(flat, self.law.gamma)
        return np.asarray(-float(self.price) * norms).reshape(apart.shape[:2])


class KNorm(_Shaped):
    """The paper's noise: uniform on spheres of the norm whose ball is the sensitivity hull."""

    name = "K-norm"
    source = "Xiao et al., DPHMM, after Hardt and Talwar 2010"
    promise = (
        "Two linked places lose at most epsilon at each answer, and any two epsilon times the "
        "norm of their difference, whatever is known beforehand; a place without a neighbour "
        "is linked to one."
    )


class Staircase(_Shaped):
    """K-norm with the norm rounded up: the promise of an edge is spent fully."""

    name = "staircase"
    noise = "staircase"
    source = "this library, after Geng and Viswanath 2014"
    promise = (
        "Two linked places lose at most epsilon at each answer, and any two epsilon times the "
        "norm of their difference rounded up, whatever is known beforehand."
    )


class L1Laplace(_Shaped):
    """Laplace noise on each coordinate, as wide as the largest l1 distance of linked places."""

    name = "l1 Laplace"
    noise = "laplace"
    source = "Dwork, McSherry, Nissim, Smith 2006"
    promise = KNorm.promise
