"""The compiled code, loaded before anybody waits for it: importing this module does that.

The process that workers are forked from imports it, so that none of them has to.
"""

from __future__ import annotations

from fractions import Fraction

from dphmm import kernels
from dphmm.chain.belief import Belief
from dphmm.chain.markov import MarkovModel
from dphmm.geometry.query import Query
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Plan
from dphmm.release.terms import Terms

__all__ = ["warm_up"]

SIDE = 3


def warm_up() -> None:
    """Release something about nobody, alone and in a batch, by compiled code."""
    kernels.compile_at_once()
    places = [[x, y] for x in range(SIDE) for y in range(SIDE)]
    model = MarkovModel([[1 / len(places)] * len(places)] * len(places))
    plan = Plan(PolicyGraph.complete(len(places)), Query(places))
    terms = Terms(model, plan, Belief.uniform(len(places)), Fraction(1), threads=1)
    nobody = [terms.begin("", name, 1) for name in ("nobody", "no one")]
    stream = terms.stream(nobody[0])
    stream.skip(1)
    stream.release(0)
    terms.batch(nobody).release([0, 0])


warm_up()
