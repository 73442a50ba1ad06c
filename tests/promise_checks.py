"""What a release, a ledger and a statement say of a world, held against all of its paths.

Where a sentence has no condition it must hold for every path, also for one that the model calls
impossible; where it has one, for the paths that the condition names.
"""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from math import exp, inf, lcm
from typing import Any

import numpy as np
import pytest

from dphmm import (
    PrivacyStatement,
)
from dphmm.cost.bracket import Bracket
from dphmm.cost.words import LARGEST_FACTOR, LARGEST_LOSS
from tests.promise_answers import CONDITION, FLOATS, Answer, Loss
from tests.promise_worlds import World, kinds

WIDTH = 2
"""The steps of the windows that statements are asked about."""


LEFT_OUT = "states that delta left out are not covered"


def check(world: World) -> None:
    for number in range(len(world.answers)):
        check_release(world, number)
    for time in range(1, world.steps + 1):
        check_partners(world, time)
    check_ledger(world)
    statement = world.stream.statement(width=WIDTH)
    check_statement(world, statement)
    check_text(world, statement)
    check_realised(world, statement)


def check_release(world: World, number: int) -> None:
    """The sentence that came with an answer."""
    answer, states = world.answers[number], world.covered(number)
    assert CONDITION not in answer.text or world.stated
    if answer.text.endswith("nothing was drawn."):
        assert not answer.corners
        assert answer.epsilon == 0
        # The same answer whoever asked, so the sentence is true for everybody; and if it says
        # that only one state is possible, there is no other.
        assert "location set" in answer.text or len(states) == 1 or world.adopted > len(states)
        return
    if not world.plan.delta and CONDITION in answer.text:
        possible = set(np.flatnonzero(answer.possible).tolist())
        assert states == possible or (world.adopted and states < possible)
    found = re.match(
        r"Odds between two linked states change by at most a factor exp\((.*?)\)", answer.text
    )
    assert found
    assert Fraction(found[1]) == answer.epsilon
    assert ("location set are not protected" in answer.text) == bool(world.plan.delta)
    for j, k in world.links:
        if {j, k} <= states:
            assert answer.told(j, k) <= answer.epsilon
    apart = any(answer.told(j, k) == inf for j, k in combinations(states, 2))
    assert not apart or "told apart with certainty" in answer.text


def check_partners(world: World, time: int) -> None:
    """Under repair somebody hides each state from all the questions of a step together."""
    answers = [answer for answer in world.at(time) if answer.corners]
    if world.plan.repair is None or not answers:
        return
    price = sum(answer.epsilon for answer in answers)
    assert world.stream.ledger.spent_at(time) == price
    states = world.covered(world.answers.index(answers[0]))
    states = {s for s in states if all(answer.possible[s] for answer in answers)}
    for j in states if len(states) > 1 else ():
        losses = [sum(answer.told(j, k) for answer in answers) for k in states - {j}]
        assert min(losses) <= price


def check_ledger(world: World) -> None:
    """The sums: between paths that are linked at every answer, and between any two."""
    ledger = world.stream.ledger
    assert [(e.time, e.query, e.epsilon) for e in ledger.entries] == [
        (a.time, a.query, a.epsilon) for a in world.answers
    ]
    losses = Losses(world, 0, legal=world.stated)
    assert linked_paths(world, losses) <= ledger.spent
    assert losses.most(losses.totals >= 0) <= ledger.constrained


def linked_paths(world: World, losses: Losses) -> Loss:
    """The largest loss between two paths that are equal or linked at every answer."""
    linked = np.eye(world.n, dtype=bool)
    for j, k in world.links:
        linked[j, k] = linked[k, j] = True
    together = np.ones(losses.totals.shape, dtype=bool)
    for time in {answer.time for answer in world.answers}:
        states = losses.paths[:, time - 1]
        together &= linked[states[:, None], states[None, :]]
    return losses.most(together)


class Losses:
    """What the answers since a resumption tell between every two paths that a claim is about.

    In whole multiples of 1 / unit. One of the two paths must be able to have given the answers;
    whoever is told apart from it for certain is out of what follows.
    """

    def __init__(self, world: World, first: int, legal: bool, own: bool = False) -> None:
        answers, paths = world.answers[first:], world.paths(legal, own, first)
        self.own = own
        began = world.answers[first - 1].time if first else 0
        if legal:
            paths = paths[self.give(world.answers[:first], paths)]
        # What came before a resumption is not in the claim, so paths may differ there.
        paths[:, :began] = 0
        self.paths = np.unique(paths, axis=0)
        times = sorted({answer.time for answer in answers})
        tables = {
            time: [
                [
                    sum((a.told(j, k) for a in answers if a.time == time), Fraction(0))
                    for k in range(world.n)
                ]
                for j in range(world.n)
            ]
            for time in times
        }
        finite = [x for table in tables.values() for row in table for x in row if x < inf]
        self.unit = lcm(*(Fraction(x).denominator for x in finite))
        self.endless = 1 + len(times) * int(max(finite, default=0) * self.unit)
        kind = np.int64 if self.endless < 2**60 else object
        self.totals = np.zeros((len(self.paths), len(self.paths)), dtype=kind)
        for time, table in tables.items():
            counts = [[self.endless if x == inf else int(x * self.unit) for x in r] for r in table]
            states = self.paths[:, time - 1]
            now = np.array(counts, dtype=kind)[states[:, None], states[None, :]]
            self.totals += np.where(self.totals >= self.endless, 0, now)
        self.real = self.give(answers, self.paths)
        self.totals[~self.real[:, None] & ~self.real[None, :]] = 0

    @staticmethod
    def give(answers: list[Answer], paths: np.ndarray) -> np.ndarray:
        """Which paths can have given the answers."""
        real = np.ones(len(paths), dtype=bool)
        for answer in answers:
            gives = np.array([answer.gives(s) for s in range(len(answer.points))])
            real &= gives[paths[:, answer.time - 1]]
        return real

    def most(self, chosen: np.ndarray) -> Loss:
        """The largest loss of some pairs of paths."""
        count = int(self.totals[chosen].max(initial=0))
        return inf if count >= self.endless else Fraction(count, self.unit)

    def within(self, width: int) -> Loss:
        """The largest loss of paths that differ within so many steps in a row only."""
        differ = self.paths[:, None] != self.paths[None, :]
        first, last = differ.argmax(axis=2), differ[..., ::-1].argmax(axis=2)
        spans = np.where(differ.any(axis=2), differ.shape[2] - last - first, 0)
        return self.most(spans <= width)


def check_statement(world: World, statement: PrivacyStatement) -> None:
    """Every number of a statement, and that it is not more than it must be."""
    answers = world.answers[world.resumed :]
    prices = Counter[int]()
    for answer in answers:
        prices[answer.time] += answer.epsilon  # type: ignore[assignment]
    assert statement.spent == prices.total()
    assert statement.linked == max(prices.values())
    assert statement.before == sum(a.epsilon for a in world.answers[: world.resumed])
    assert statement.stated_zeros == (CONDITION in statement.text())
    assert (statement.plain()["condition"] is None) == (
        not statement.stated_zeros and not world.plan.delta and not statement.is_part
    )
    assert world.stated or not statement.stated_zeros
    # After an adoption the start is known at a later time, at which nothing was said.
    if not (statement.stated_zeros or world.plan.delta or world.resumed or world.adopted):
        assert len(world.paths(legal=True)) == world.n**world.steps
    for number, answer in enumerate(answers, world.resumed):
        states = world.covered(number)
        for j, k in combinations(states, 2):
            lost = sum(other.told(j, k) for other in answers if other.time == answer.time)
            assert lost <= statement.worst_pair
            assert lost <= statement.linked or (j, k) not in world.links
    legal = statement.stated_zeros
    assert statement.tells is not None
    assert linked_paths(world, Losses(world, world.resumed, legal)) <= statement.tells.linked
    compare(world, Losses(world, world.resumed, legal), statement)
    if statement.own is not None:
        assert any(world.anywhere)
        compare(world, Losses(world, world.resumed, legal=True, own=True), statement.own)


def compare(world: World, losses: Losses, costs: Any) -> None:
    claims = costs.event, costs.window, upper(costs.sequence)
    found = losses.within(1), losses.within(WIDTH), losses.most(losses.totals >= 0)
    assert all(lost <= claim for lost, claim in zip(found, claims, strict=True))
    # Floats are rounded up, where fractions would not fit 64 bits.
    exact = all(isinstance(claim, Fraction) for claim in claims) and losses.real.all()
    # What a chain remembers is left out of sequences, so with memory they are only bounds.
    exact &= len(world.current) == world.n
    # Jumps before a stated step are among the own moves of several steps at once.
    exact &= not (losses.own and {"every", "mixed"} <= kinds(world))
    if exact and not world.plan.delta and not world.resumed:
        assert found == claims


def upper(sequence: Loss | Bracket) -> Loss:
    return sequence.upper if isinstance(sequence, Bracket) else sequence


def check_text(world: World, statement: PrivacyStatement) -> None:
    """What is read is never less than what was computed, and every line has its condition."""
    lines = statement.text().splitlines()
    costs = [
        ("Two states that the policy links", statement.linked),
        ("Any two possible states", statement.worst_pair),
        ("Where you were at one moment", statement.event),
        ("Where you were during 2 steps", statement.window),
        ("Your whole path", upper(statement.sequence)),
    ]
    for begins, cost in costs:
        (line,) = (line for line in lines if line.startswith(begins))
        assert (f", {CONDITION}" in line) == statement.stated_zeros
        assert line.endswith("location set are not protected.") == bool(world.plan.delta)
        assert cost is not None
        check_words(line, cost)
    if statement.own is not None:
        (line,) = (line for line in lines if "own moves, from its start:" in line)
        unlimited = not statement.stated_zeros and not world.plan.delta
        assert line.startswith("These hold whatever you did") == unlimited
        parts = re.split(r"one moment|2 steps|the whole path", line)[1:]
        own = statement.own.event, statement.own.window, upper(statement.own.sequence)
        for part, cost in zip(parts, own, strict=True):
            assert cost is not None
            check_words(part, cost)
    assert (LEFT_OUT in lines[-1]) == bool(world.plan.delta or statement.worst_pair == inf)
    before = re.search(r"epsilon (\S+) was spent before", lines[0])
    assert (before is None) == (statement.before == 0)
    assert before is None or Fraction(before[1]) >= statement.before


def check_words(words: str, cost: Loss) -> None:
    """A factor and an epsilon as they are written."""
    if cost == inf:
        assert "without limit" in words
        return
    words = words.replace(",", "")
    epsilon = re.search(r"\(epsilon ([^):]+)", words)
    assert epsilon
    assert cost <= Fraction(epsilon[1]) <= cost * Fraction(1001, 1000)
    factor = re.search(r"by at most ×(\S+)", words)
    assert (factor is None) == (cost > LARGEST_LOSS) == ("without a useful limit" in words)
    if factor is not None:
        assert exp(cost) * (1 - FLOATS) <= float(factor[1]) <= exp(cost) * 1.01


def check_realised(world: World, statement: PrivacyStatement) -> None:
    """The odds that moved, for somebody who knows the model: from every path there is."""
    if world.resumed:
        return
    every = np.array(list(product(range(world.n), repeat=world.steps)))
    weights = likely(world, every)
    heard = np.zeros(len(every))
    for answer in world.answers:
        distances = [float(answer.distance(answer.lattice, s)) for s in range(world.n)]
        heard += np.array(distances)[every[:, answer.time - 1]]
    after, before = (
        np.array([np.bincount(states, weight, world.n) for states in every.T])
        for weight in (weights * np.exp(-heard), weights)
    )
    after /= after.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.abs(np.log(after / (1 - after)) - np.log(before / (1 - before)))
    certain = np.isclose(before, after, rtol=FLOATS, atol=0)
    largest = np.exp(moved[~certain & (before > 0)].max(initial=0.0))
    assert statement.realised is not None
    assert largest == pytest.approx(statement.realised, rel=1e-6) or largest == inf
    (line,) = (x for x in statement.text().splitlines() if "somebody who knew only the model" in x)
    written = line.rsplit(" ", 1)[1].rstrip(".")
    assert ("the odds of some place" in line) == (statement.realised > LARGEST_FACTOR)
    if statement.realised <= LARGEST_FACTOR:
        assert float(written.replace(",", "")) >= statement.realised
    assert statement.tells is not None
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(after) - np.log(before)
        moved = [abs(row[j] - row[k]) for row in logs for j, k in world.repaired]
    largest = max((x for x in moved if not np.isnan(x)), default=0.0)
    assert np.log(statement.tells.realised) == pytest.approx(largest, rel=1e-6, abs=1e-9)
    if statement.tells.leakage is not None:
        assert largest < inf
        assert statement.tells.leakage.linked >= largest - 1e-9


def likely(world: World, paths: np.ndarray) -> np.ndarray:
    """The probability of each path by the model, going anywhere included."""
    weights = np.zeros((len(paths), len(world.current)))
    weights[:, world.fresh] = world.start / world.start.sum()
    for time, states in enumerate(paths.T, start=1):
        weights = weights @ world.step(time) * (world.current == states[:, None])
    return np.asarray(weights.sum(axis=1))
