"""Worlds that went through files and a store, and what pages, routes and books say of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from html import unescape
from itertools import combinations
from math import exp, inf
from pathlib import Path
from typing import Any

from dphmm import (
    Scenario,
)
from dphmm.report import TrackFacts
from dphmm.scenario.released import Track
from tests.promise_answers import CONDITION, FLOATS, Answer, Loss, seeded
from tests.promise_checks import Losses, linked_paths
from tests.promise_worlds import World

KEY = bytes(range(32))


@dataclass
class Routed:
    """A random world that was released by the command line into a store."""

    world: World
    scenario: Scenario
    toml: Path
    store: Path
    page: str
    privacy: dict[str, Any]
    shown: str
    limit: Fraction
    """What may be spent in the window that holds everything."""
    besides: Fraction = Fraction(0)
    """What was spent on another question."""
    since: int | None = None
    """The slot after which the law was adopted, if another one was before."""

    @property
    def lines(self) -> list[str]:
        """The statement on the page."""
        part = self.page.split("<h4>The numbers for ann</h4><ul>")[1].split("</ul>")[0]
        return [unescape(line) for line in re.findall(r"<li>(.*?)</li>", part)]


def scenario_of(world: World, **options: Any) -> Scenario:
    plan, start = world.plan, world.start / world.start.sum()
    return Scenario(
        plan.query, world.stream.model, plan.policy, epsilon=world.stream.epsilon,
        start={str(state): float(part) for state, part in enumerate(start) if part},
        query="place", mechanism=plan.mechanism, shape=plan.shape, repair=plan.repair,
        full_rank=plan.full_rank, delta=plan.delta, when=world.stream.schedule, **options,
    )  # fmt: skip


def reported(
    scenario: Scenario, walk: dict[int, int], epsilon: Fraction | None = None
) -> TrackFacts:
    """What a report knows of somebody who was in some states at some times."""
    stream = scenario.stream("ann", time=min(walk) - 1, randomness=seeded())
    track = Track("ann", stream)
    for time, state in walk.items():
        stream.skip(time - stream.time - 1)
        track.releases.append(stream.release(state, epsilon))
        track.times.append(str(time))
        track.slots.append(time)
        track.protected.append(stream.said[-1].step)
    return TrackFacts(track)


def at_least(words: str, cost: Loss) -> None:
    """What is written is no less than what was found."""
    words = words.replace(",", "")
    epsilon = re.search(r"\(epsilon ([^):]+)", words)
    assert epsilon
    assert cost <= (inf if epsilon[1] == "infinite" else Fraction(epsilon[1]))
    factor = re.search(r"by at most ×(\S+)", words)
    assert factor is None or exp(cost) * (1 - FLOATS) <= float(factor[1])


def covered_pairs(world: World) -> Iterator[tuple[Answer, int, int]]:
    """Every two states that the sentence of an answer is about."""
    for number, answer in enumerate(world.answers):
        pairs = combinations(world.covered(number) if number >= world.resumed else (), 2)
        yield from ((answer, j, k) for j, k in pairs)


def check_pages(found: Routed) -> None:
    """What a report says of a person, of an answer and of the worst pair."""
    world, page = found.world, found.page
    lines = found.lines
    assert lines == world.stream.statement().text().splitlines()
    (line,) = (line for line in lines if line.startswith("Where you were during 10 steps"))
    statement = world.stream.statement()
    at_least(line, Losses(world, world.resumed, statement.stated_zeros).within(10))
    linked = max((a.told(j, k) for a, j, k in covered_pairs(world) if (j, k) in world.links),
                 default=Fraction(0))  # fmt: skip
    promise = unescape(page.split('<h3 class="good">Cannot</h3><ul>\n<li>')[1].split("</li>")[0])
    price = re.search(r"\(epsilon ([^)]+)\)", promise)
    assert price
    assert Fraction(price[1]) >= linked
    limited = bool(world.stated or world.plan.delta)
    if "become at most" in promise:
        odds = re.search(r"become at most (\S+) to 1", promise)
        assert odds
        assert float(odds[1].replace(",", "")) >= exp(linked) * (1 - FLOATS)
        assert promise.endswith("about the person.") != limited
    worst = max((a.told(j, k) for a, j, k in covered_pairs(world)), default=Fraction(0))
    pair = unescape(page.split("odds of the worst pair ")[1].split("</li>")[0])
    at_least(pair, worst)
    assert (CONDITION in pair) == statement.stated_zeros
    assert pair.endswith("are not protected.") == bool(world.plan.delta)
    (row,) = re.findall(r"<tr>(<td>ann</td>.*?)</tr>", page.split("<h2>Ledger</h2>")[1])[:1]
    spent, left, most = re.findall(r"<td>(.*?)</td>", row)[2:5]
    total = found.besides + sum((answer.epsilon for answer in world.answers), Fraction(0))
    assert Fraction(spent.replace(",", "")) >= total
    assert Fraction(left) == found.limit - total
    more = found.besides + sum(answer.epsilon for answer in world.answers[: world.resumed])
    assert ("What was spent by these answers alone;" in page) == bool(more)
    assert ("of the answers that a person's numbers above count" in unescape(page)) == bool(more)
    assert (most == "infinite") == (worst == inf)
    assert worst == inf or Fraction(most.replace(",", "")) >= worst


def check_service(found: Routed) -> None:
    statement, told = found.world.stream.statement(), found.privacy
    begins = "" if found.since is None else f"After slot {found.since}, where this scenario was"
    assert told["text"].startswith(begins)
    assert told["text"].endswith(statement.text())
    assert told["condition"] == (statement.condition.lstrip(",; ") or None)
    losses = Losses(found.world, found.world.resumed, statement.stated_zeros)
    for name, width in (("event", 1), ("window", 10)):
        assert losses.within(width) <= as_loss(told[name])
    assert losses.most(losses.totals >= 0) <= as_loss(told["sequence"])
    assert linked_paths(found.world, losses) <= as_loss(told["tells"]["linked"])
    assert told["since"] == found.since


def as_loss(text: str) -> Loss:
    return inf if text == "inf" else Fraction(text)


def check_book(found: Routed) -> None:
    """What `dphmm ledger show` says was spent and is left."""
    total = found.besides + sum((answer.epsilon for answer in found.world.answers), Fraction(0))
    (line,) = (x for x in found.shown.splitlines() if re.match(r"ann\s+place", x))
    said = re.search(r"spent (\S+)(?: on all questions)?, (\S+) left of (\S+) per [36] steps", line)
    assert said
    assert [Fraction(x) for x in said.groups()] == [total, found.limit - total, found.limit]
