"""The paper's running example as rules of a store."""

from __future__ import annotations

from dphmm import MarkovModel, Plan, PolicyGraph, Query, Stream
from dphmm.books import Rules
from tests import paper

MODEL = MarkovModel(paper.TRANSITION)
QUERY = Query(paper.VALUES)
POLICY = PolicyGraph.by_category(paper.CATEGORIES)
PLAN = Plan(POLICY, QUERY)


def rules(scenario="paper", epsilon=1, limit=None, key=None, model=MODEL, plan=PLAN):
    def begin(person):
        return Stream(
            model,
            plan.policy,
            plan.query,
            epsilon=epsilon,
            start=0,
            limit=limit,
            person=person,
            scenario=scenario,
            key=key,
            plan=plan,
        )

    return Rules(scenario, plan.query, begin)
