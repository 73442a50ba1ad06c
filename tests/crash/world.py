"""The paper's running example, asked one row at a time through a book."""

from __future__ import annotations

import numpy as np

from dphmm import Limit, MarkovModel, Plan, PolicyGraph, Query
from dphmm.chain.belief import Belief
from dphmm.geometry.exact import as_epsilon
from dphmm.release import engine
from dphmm.release.engine import Ask
from dphmm.release.terms import Terms
from tests import paper

MODEL = MarkovModel(paper.TRANSITION)
QUERY = Query(paper.VALUES)
POLICY = PolicyGraph.by_category(paper.CATEGORIES)
PLAN = Plan(POLICY, QUERY)


def terms(query="state", epsilon=1, limit=None, model=MODEL, plan=PLAN, origin=0):
    if query != plan.query.name:
        plan = plan.replace(query=Query(paper.VALUES, name=query))
    limit = None if limit is None else Limit.read(limit).in_steps()
    start = Belief.certain(0, model.n_states)
    return Terms(model, plan, start, as_epsilon(epsilon), limit, origin)


PAPER = terms()


def ask(person, time, state, given=PAPER, epsilon=None, client="", create=True):
    prices = None if epsilon is None else [as_epsilon(epsilon)]
    times, states = np.array([time]), np.array([state])
    return Ask(given, [person], times, states, prices, client, create)


def release(book, person, time, state, given=PAPER, randomness=None, **options):
    """The answer, or its refusal raised, and whether it had been given before."""
    asked = ask(person, time, state, given, **options)
    (answered,) = engine.release(book, [asked], randomness)
    return answered.release(0), answered.repeated > 0


def same(first, second):
    return (
        first.time == second.time
        and first.lattice.tolist() == second.lattice.tolist()
        and first.answer.tolist() == second.answer.tolist()
        and first.estimate.tolist() == second.estimate.tolist()
        and first.epsilon == second.epsilon
        and first.statement == second.statement
        and first.private == second.private
    )
