"""What is printed by commands, pages and routes, held against what answers really tell.

`test_promise` holds releases, ledgers and statements to enumeration. Here are the sentences that
stand elsewhere: of `dphmm check`, of the studio, of a report, of a service and of a book.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction
from html import unescape
from itertools import combinations
from math import ceil, comb, exp, inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars
import pytest

from dphmm import (
    Clock,
    KeyedRandomness,
    Ledger,
    MarkovModel,
    MemoryBook,
    Plan,
    PolicyGraph,
    Query,
    Scenario,
    Schedule,
    SeededRandomness,
    States,
    Stream,
    TimeVaryingModel,
    exposed,
    guarantee_against,
    sensitivity_hull,
)
from dphmm.books import Store
from dphmm.books.changing import adopt_terms
from dphmm.cost.words import FILLED, describe_people
from dphmm.release.moment import Line
from dphmm.report import TrackFacts, scenario_page
from dphmm.scenario.headline import headline
from dphmm.scenario.released import Track
from dphmm.service.handlers import Handlers
from tests.scenarios import run
from tests.service_worlds import FAST
from tests.test_promise import (
    ANSWERS,
    CONDITION,
    FLOATS,
    LINKS,
    WIDTH,
    Answer,
    Loss,
    Losses,
    World,
    check_statement,
    check_text,
    check_words,
    kinds,
    linked_paths,
    random_world,
)


def seeded(seed: int = 0) -> SeededRandomness:
    return SeededRandomness(np.random.default_rng(seed))


# One chance beside many answers


def test_what_is_said_beside_a_small_chance_is_said_of_conclusions_and_not_of_losses() -> None:
    """The chance that answers tell more than epsilon(delta) is larger than delta."""
    count, price = 60, Fraction(1, 10)
    plan = Plan(PolicyGraph.complete(2), Query([0, 1]))
    model = MarkovModel(np.full((2, 2), 0.5))
    stream = Stream(model, plan, epsilon=price, start=0, randomness=seeded())
    for _ in range(count):
        stream.release(0)
    statement = stream.statement()
    tells = statement.tells
    assert tells is not None
    assert tells.linked_delta is not None
    # Of neighbours on a line an answer tells +epsilon or -epsilon, the first e^epsilon as often.
    up = 1 / (1 + exp(-price))
    law = {
        (2 * k - count) * price: comb(count, k) * up**k * (1 - up) ** (count - k)
        for k in range(count + 1)
    }
    most = float(tells.linked_delta)
    more = {float(loss): chance for loss, chance in law.items() if loss > most}
    # Whatever set of answers stands for a conclusion, no other one gains as much as this.
    gained = sum(chance * (1 - exp(most - loss)) for loss, chance in more.items())
    assert gained <= tells.delta
    assert sum(more.values()) > 2 * tells.delta
    (line,) = (line for line in statement.text().splitlines() if "0.000001" in line)
    assert "but for a chance" not in line
    assert "any conclusion from all answers" in line
    assert "by 0.000001 besides" in line


# Before anything is released


def narrowed(**options: object) -> Scenario:
    """Two rows that are told apart for certain; who stands alone afterwards depends on which."""
    places = [[0, 0], [10, 0], [0, 1], [10, 1], [0, 0], [1, 0], [0, 0], [9, 0]]
    later, first = np.zeros((8, 8)), np.zeros((8, 8))
    later[:2, 4:6] = later[2:4, 6:8] = later[4:6, 4:6] = later[6:, 6:] = 0.5
    first[:, :4] = 0.25
    model = TimeVaryingModel([MarkovModel(later), MarkovModel(first)])
    policy = PolicyGraph(8, [(0, 1), (2, 3), (4, 7), (5, 6)])
    states = States.on_plane(places, labels=tuple("abcdefgh"))
    return Scenario(
        states, model, policy, epsilon=1, start=dict.fromkeys("abcd", 0.25),
        repair=None, full_rank=False, name="rows", **options,
    )  # fmt: skip


def test_check_claims_nothing_that_answers_may_change(tmp_path: Path) -> None:
    scenario = narrowed()
    stream = Stream(scenario.model, scenario.plan, epsilon=1, start=scenario.start)
    stream.release(0)
    stream.release(4)
    step = stream.said[-1].step
    assert exposed(scenario.query, step.policy, step.possible, hull=step.body).tolist() == [4, 5]
    found = scenario.check(2)
    assert not found.exposed
    unless = "as long as no answer narrows down what is possible"
    for shown in (repr(found), found._repr_html_()):
        assert f", {unless}, {CONDITION}" in shown
    assert found.costs is None  # the second body, and so its price, depends on the first answer
    scenario.save(tmp_path / "rows.toml")
    said = run("check", tmp_path / "rows.toml", "--steps", "2").stdout
    assert f"Nobody is exposed in these steps, {unless}, {CONDITION}." in said
    assert "If each of 2 steps is answered" not in said
    assert "depends on the answers" in said


def test_check_says_what_a_flat_hull_costs_where_no_answer_changes_it(tmp_path: Path) -> None:
    rows = Query([[0, 0], [1, 0], [0, 1], [1, 1]])
    policy = PolicyGraph(4, [(0, 1), (2, 3)])
    model = MarkovModel(np.eye(4), anywhere=0.1)
    scenario = Scenario(rows, model, policy, epsilon=1, full_rank=False, repair=None)
    costs = scenario.check(3).costs
    assert costs is not None
    assert costs.worst_pair == costs.event == np.inf
    assert "shaped by earlier answers" not in costs.text()
    scenario.save(tmp_path / "rows.toml")
    said = run("check", tmp_path / "rows.toml", "--steps", "3").stdout
    assert "Nobody is exposed in these steps." in said


# The studio's headline


def test_a_lone_place_is_not_called_certain_where_delta_or_a_statement_made_it_so() -> None:
    likely = np.array([[0.9, 0.1], [0.9, 0.1]])
    line = Query([0, 1])
    left_out = Scenario(line, MarkovModel(likely), PolicyGraph.complete(2), epsilon=1, delta="0.2")
    said = headline(left_out, left_out.check(1).steps[0])
    assert said.startswith("Only one place is in the 0.8 location set")
    ring = Scenario(line, MarkovModel(np.eye(2)[::-1]), PolicyGraph.complete(2), epsilon=1, start=0)
    said = headline(ring, ring.check(1).steps[0])
    assert said.startswith(f"Only one place is possible {CONDITION}")
    for text in (said, headline(left_out, left_out.check(1).steps[0])):
        assert "everybody knows" not in text


# Somebody with other knowledge


def test_whoever_holds_other_states_possible_also_hears_those_that_stand_in_for_them() -> None:
    """2 is answered as 1, which is farther from 0 than 2 itself is."""
    query = Query([0, 10, 6])
    policy = PolicyGraph(3, [(0, 1)])
    ours, theirs = [True, True, False], [True, False, True]
    body = sensitivity_hull(query, policy, ours)
    seen = guarantee_against(query, policy, body, 1, possible=ours, known=theirs)
    assert query.nearest_states(np.array([2]), np.array(ours)).tolist() == [1]
    assert seen.case == "other"
    assert seen.epsilon == 1  # between what 0 and 2 are answered as, and not 6/10


# A report


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


def test_a_report_says_at_which_times_nothing_was_given_away() -> None:
    """Between two answers everybody crosses the bridge, and every reader knows it."""
    moves = np.zeros((7, 7))
    moves[:3, 3] = 1
    moves[3, 4:] = moves[4:, :3] = 1 / 3
    policy = PolicyGraph(7, [(0, 1), (1, 2), (4, 5), (5, 6)])
    line = Query([0, 1, 2, 5, 8, 9, 10])
    scenario = Scenario(line, MarkovModel(moves), policy, epsilon="0.1", start="3")
    facts = reported(scenario, {1: 4, 2: 0, 4: 5, 5: 2})
    between = scenario.model.smooth(facts.track.stream.observations(), start=scenario.start)[2]
    assert between.probabilities[3] == 1
    page = scenario_page(scenario, [facts])
    assert "These answers gave away no state of ann at the times in this file:" in page
    assert "for likelier than all others together at any of them" in page
    assert "of none of the 2 people at the times in this file" in describe_people(2, 0, "states")


def test_a_report_of_stated_zeros_says_for_whom_its_worst_pair_is() -> None:
    """Whoever is where the model says that nobody is loses more, and is not told otherwise."""
    scenario = Scenario(
        Query([0, 1, 50]), MarkovModel([[0.5, 0.5, 0]] * 2 + [[0, 0, 1.0]]),
        PolicyGraph(3, [(0, 1)]), epsilon=1, start="0",
    )  # fmt: skip
    page = scenario_page(scenario, [reported(scenario, {1: 0})])
    pair = page.split("odds of the worst pair ")[1].split("</li>")[0]
    assert pair == f"by at most ×2.72 (epsilon 1), by these answers alone, {CONDITION}."
    hidden = page.split("each possible state was hidden among ")[1].split(":")[0]
    assert hidden == f"2 to 2 states, itself included, {CONDITION}"
    assert "worst pair ε, one answer" in page


def test_a_report_does_not_say_that_a_lone_state_was_hidden() -> None:
    ring = MarkovModel(np.eye(3)[[1, 2, 0]])
    scenario = Scenario(Query([0, 1, 50]), ring, PolicyGraph.complete(3), epsilon=1, start="0")
    page = scenario_page(scenario, [reported(scenario, {1: 1})])
    assert "was hidden among" not in page


def test_a_report_with_a_book_does_not_draw_one_question_for_all_of_them() -> None:
    model, policy = MarkovModel(np.eye(2), anywhere=0.1), PolicyGraph.complete(2)
    scenario = Scenario(Query([0, 1]), model, policy, epsilon=1, limit=10)
    facts = reported(scenario, {1: 0, 2: 0})
    for besides, alone in ((0, False), (3, True)):
        book = Ledger(10, spent=2 + besides)
        page = scenario_page(scenario, [replace(facts, track=replace(facts.track, budget=book))])
        assert ("What was spent by these answers alone;" in page) == alone


# Random worlds by every route


SHORT, FULL = 20, 400
"""How many worlds go through files, a store, a report and a service, and in the long form."""

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


def routed(seed: int, folder: Path) -> Routed | None:
    """Two files, one after the other, about somebody who may do what the model calls impossible."""
    world, rng = random_world(seed), np.random.default_rng([seed, 1])
    toml, store, key = folder / "town.toml", folder / "town.db", folder / "noise.key"
    # Twice what can be spent, so that nothing is refused; fractions as they are.
    limit = 12 * world.stream.epsilon
    scenario_of(world, limit=f"{limit} per 6 steps").save(toml)
    scenario = Scenario.load(toml)
    key.touch(mode=0o600)
    key.write_bytes(KEY)
    longest = {2: 6, 3: 5, 4: 4, 5: 3}[world.n]
    later = [time for time in range(2, longest + 1) if rng.random() < 0.8]
    for number, times in enumerate(([1, *later[:1]], later[1:])):
        if not times:
            continue
        rows = [f"ann,{time},{rng.integers(world.n)}" for time in times]
        (folder / "trips.csv").write_text("\n".join(["person,time,state", *rows]) + "\n")
        out = folder / f"released{number}.csv"
        ran = run("release", toml, folder / "trips.csv", "-o", out, "--store", store,
                  "--key-file", key)  # fmt: skip
        assert ran.exit_code == 0, ran.stderr
    with closing(Store.open(str(store))) as book:
        stream = scenario.stream("ann", book=book, randomness=KeyedRandomness(KEY))
        texts = {one.time: one.statement for one in book.answers(Line("", "ann", "place"))}
        handlers = Handlers(book, FAST, KeyedRandomness(KEY), long=True)
        handlers.keep("", "town", scenario)
        if not stream.said:
            return None
        privacy = handlers.privacy("", "town", "ann")
        world.stream, world.resumed = stream, 0
        world.answers = [
            Answer.of(one, SimpleNamespace(
                time=one.time, epsilon=one.epsilon, lattice=one.lattice, statement=texts[one.time],
            ))  # type: ignore[arg-type]
            for one in stream.said
        ]  # fmt: skip
    page = folder / "report.html"
    ran = run("report", toml, out, "--ledger", store, "-o", page)
    assert ran.exit_code == 0, ran.stderr
    shown = run("ledger", "show", store, toml)
    assert shown.exit_code == 0, shown.stderr
    return Routed(world, scenario, toml, store, page.read_text(), privacy, shown.stdout, limit)


def check_routes(found: Routed) -> None:
    world, statement = found.world, found.world.stream.statement(width=WIDTH)
    check_statement(world, statement)
    check_text(world, statement)
    check_pages(found)
    check_service(found)
    check_book(found)


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


def check_before(found: Routed, steps: int) -> None:
    """What `dphmm check` says that answers would cost, against all answers that there can be."""
    world, scenario = found.world, found.scenario
    said = run("check", found.toml, "--steps", steps).stdout.splitlines()
    promise = re.search(r"by at most a factor exp\((.*?)\)(.*?); (at most|no limit)", said[1])
    assert promise
    limited = bool(world.stated or world.plan.delta)
    assert bool(promise[2]) == limited
    begin = [n for n, line in enumerate(said) if line.startswith("If ")]
    answers = planned(found, steps)
    narrow = world.stated and any(
        answer.told(j, k) == inf
        for answer in answers[:-1]
        for j, k in combinations(np.flatnonzero(answer.possible), 2)
    )
    verdict = said[-1]
    alone = any(sum(answer.possible) == 1 for answer in planned(found, steps, speaks=False))
    if alone or world.plan.delta or narrow:
        assert verdict == "Somebody is exposed." or "narrows down" in verdict
    if world.plan.delta or narrow:
        assert not begin
        return
    if not begin:
        assert not answers
        return
    lines = [line.strip() for line in said[begin[0] + 1 : -1]]
    future = replace(world, answers=[answer for answer in answers if answer.corners])
    if not future.answers:
        return
    losses = Losses(future, 0, legal=world.stated)
    heads = "the policy links", "own moves, from its start", "Any two possible"
    linked, own, worst = (next((x for x in lines if head in x), None) for head in heads)
    assert linked
    assert worst
    pairs = [a.told(j, k) for a in future.answers
             for j, k in combinations(np.flatnonzero(a.possible), 2)]  # fmt: skip
    check_words(linked, scenario.settings.epsilon)
    check_words(worst, max(pairs))
    if not losses.real.all() or max(pairs) == inf:
        return
    width = max(1, steps // 2)
    for start, cost in (
        ("Where you were at one moment", losses.within(1)),
        (f"Where you were during {width} step", losses.within(width)),
        ("Your whole path", losses.most(losses.totals >= 0)),
    ):
        (line,) = (line for line in lines if line.startswith(start))
        at_least(line, cost)
        missing = any(missing_into(world, time) for time in range(1, steps + 1))
        assert missing <= (CONDITION in line) <= world.stated
    assert own is None or any(world.anywhere)


def missing_into(world: World, time: int) -> bool:
    """Whether a move into a time is impossible because somebody said so."""
    moves = world.moves(time)
    return not all(len(set(world.current[row])) == world.n for row in moves)


def planned(found: Routed, steps: int, speaks: bool = True) -> list[Answer]:
    """The laws of answers at every step that a schedule speaks at, before any was given."""
    world, schedule = found.world, found.scenario.settings.schedule
    alive, answers = world.entered(), []
    every = 1
    if schedule is not None and speaks:
        every = int(schedule.every) * ceil(int(schedule.apart) / int(schedule.every))
    plan, price = world.plan, world.stream.epsilon
    for time in range(1, steps + 1):
        alive = world.moves(time)[alive].any(axis=0)
        if plan.delta or (time - 1) % every:
            continue
        possible = np.isin(np.arange(world.n), world.current[alive])
        step = plan.at(possible)
        law = (step.body.lattice_vertices.tolist(), step.mechanism(price).gamma)
        body, gamma = ([], None) if step.is_lone else law
        points = tuple(map(tuple, plan.query.points.tolist()))
        corners = tuple(sorted({tuple(s * x for x in v) for v in body for s in (1, -1)}))
        here = points[int(np.flatnonzero(possible)[0])]
        answers.append(Answer(time, "place", points, here, price, gamma, corners,
                              tuple(possible.tolist()), ""))  # fmt: skip
    return answers


def check_worlds(seeds: range, folder: Path) -> Counter[str]:
    met: Counter[str] = Counter()
    for seed in seeds:
        place = folder / str(seed)
        place.mkdir()
        found = routed(seed, place)
        if found is None:
            met["nothing said"] += 1
            continue
        try:
            check_routes(found)
            check_before(found, found.world.stream.time)
        except AssertionError as wrong:
            raise AssertionError(f"world {seed} breaks a promise on its way") from wrong
        met.update(kinds(found.world))
    return met


@pytest.mark.filterwarnings("ignore::dphmm.errors.CollapsedAnswersWarning")
def test_nothing_printed_on_any_route_is_less_than_what_answers_tell(tmp_path: Path) -> None:
    met = check_worlds(range(SHORT), tmp_path)
    assert {"facts", "learned", "delta", "skips", "memory", "staircase", "illegal"} <= set(met), met


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dphmm.errors.CollapsedAnswersWarning")
def test_nothing_printed_on_any_route_is_less_than_answers_tell_in_many_worlds(
    tmp_path: Path,
) -> None:
    check_worlds(range(SHORT, FULL), tmp_path)


# Steps that are answered from another row


def test_a_row_that_stands_for_several_steps_is_not_told_that_it_loses_one(tmp_path: Path) -> None:
    """Two people who differ at one row lose what every step tells that was filled from it."""
    model, policy = MarkovModel(np.full((3, 3), 1 / 3)), PolicyGraph(3, [(0, 1), (1, 2)])
    when = Schedule(gaps="answer")
    scenario = Scenario(Query([0, 1, 2]), model, policy, epsilon=1, when=when)
    scenario.save(tmp_path / "town.toml")
    (tmp_path / "trips.csv").write_text("person,time,state\nann,1,0\nann,6,2\n")
    names = [tmp_path / name for name in ("town.toml", "trips.csv", "out.csv", "town.db")]
    toml, trips, out, store = names
    assert run("release", toml, trips, "-o", out, "--store", store).exit_code == 0
    with closing(Store.open(str(store))) as book:
        stream = scenario.stream("ann", book=book)
        statement = stream.statement()
    step = stream.said[0].step
    one = step.body.lattice_norms(np.array([[2]]))[0]
    # The row of time 1 was answered five times.
    assert 5 * one == 10 > statement.event
    page = tmp_path / "report.html"
    for ledger in ([], ["--ledger", store]):
        assert run("report", toml, out, *ledger, "-o", page).exit_code == 0
        lines = unescape(page.read_text()).splitlines()
        for start in ("Where you were at one moment", "Two paths that are", "Of one moment from"):
            (line,) = (line for line in lines if line.startswith(f"<li>{start}"))
            assert FILLED in line
    assert FILLED in run("check", toml, "--steps", "3").stdout
    assert not any(FILLED in line for line in replace(statement, filled=False).text().splitlines())
    assert "These hold whatever you did" not in statement.text()


def test_times_that_follow_the_belief_leave_the_sum_alone_in_a_report_too() -> None:
    """A book's answers do not say when they were chosen; the scenario does."""
    policy, when = PolicyGraph.complete(2), Schedule(error="0.01")
    scenario = Scenario(
        Query([0, 1]), MarkovModel(np.full((2, 2), 0.5)), policy, epsilon="0.1", when=when
    )
    stream = scenario.terms.stream(scenario.terms.begin("", "ann", 1))
    for _ in range(20):
        stream.release(0)
    assert stream.statement().tells.linked_delta is None  # type: ignore[union-attr]


def test_a_ledger_says_when_what_was_spent_is_the_sum_over_several_questions(
    tmp_path: Path,
) -> None:
    model, policy = MarkovModel(np.full((2, 2), 0.5)), PolicyGraph.complete(2)
    rows, store = tmp_path / "trips.csv", tmp_path / "town.db"
    rows.write_text("person,time,state\nann,1,0\n")
    for number, name in enumerate(("first", "second"), start=1):
        toml = tmp_path / f"{name}.toml"
        Scenario(Query([0, 1]), model, policy, epsilon=number, query=name).save(toml)
        ran = run("release", toml, rows, "-o", tmp_path / f"{name}.csv", "--store", store)
        assert ran.exit_code == 0, ran.stderr
        said = [x for x in run("ledger", "show", store).stdout.splitlines() if x.startswith("ann")]
        assert len(said) == number
        assert all(("spent 3 on all questions" in x) == (number == 2) for x in said)


# What full support costs


def test_check_says_what_the_own_moves_would_give_if_they_were_facts() -> None:
    """The same moves, once learned and once stated: one's own values are the other's."""
    rng = np.random.default_rng(5)
    for _ in range(10):
        n = int(rng.integers(3, 7))
        moves = (rng.random((n, n)) < 0.4) | np.eye(n, dtype=bool)[rng.permutation(n)]
        query = Query(rng.integers(-9, 10, size=(n, 2)))
        policy = PolicyGraph(n, [pair for pair in combinations(range(n), 2) if rng.random() < 0.4])
        model = moves / moves.sum(axis=1, keepdims=True)
        options: dict[str, Any] = {"epsilon": 1, "start": "0"}
        learned = Scenario(query, MarkovModel(model, anywhere=0.1), policy, **options).check(4)
        stated = Scenario(query, MarkovModel(model), policy, **options).check(4)
        for ours, facts in zip(learned.steps, stated.steps, strict=False):
            assert (ours.own_possible, ours.own_error) == (facts.possible, facts.error)
            assert ours.possible == n


# A draw may take long


class Watched(KeyedRandomness):
    """Noise during whose drawing somebody else writes into the store, or could not."""

    def __init__(self, store: Path) -> None:
        super().__init__(KEY)
        self.store, self.drawn = store, 0

    def look(self) -> None:
        self.drawn += 1
        with closing(sqlite3.connect(self.store, timeout=0, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")  # fails at once where a write has begun
            other.execute("ROLLBACK")

    def words(self, context: tuple[bytes, ...], state: int) -> Any:
        self.look()
        return super().words(context, state)

    def many(self, *arguments: Any, **options: Any) -> Any:
        self.look()
        return super().many(*arguments, **options)


@pytest.mark.parametrize("people", [1, 40])
def test_nothing_is_drawn_while_a_store_is_being_written(tmp_path: Path, people: int) -> None:
    path = tmp_path / "town.db"
    scenario = Scenario(
        Query([0, 1]), MarkovModel(np.full((2, 2), 0.5)), PolicyGraph.complete(2), epsilon=1
    )
    noise = Watched(path)
    rows = [{"person": f"p{n}", "time": t, "state": "0"} for n in range(people) for t in (1, 2, 3)]
    with closing(Store.open(str(path))) as book:
        scenario.release(polars.DataFrame(rows), book=book, randomness=noise)
        assert noise.drawn
        with book.database.transaction(), pytest.raises(sqlite3.OperationalError, match="locked"):
            noise.look()  # what watches does see a write


# Another law is adopted


def test_whoever_moved_as_the_new_model_says_is_possible_has_its_promise() -> None:
    """The first model said that nobody goes to 1, and was wrong; the second one knows better."""
    wrong, right = np.eye(6), np.eye(6)
    wrong[5], right[5] = np.array([1, 0, 1, 1, 1, 0]) / 4, np.array([1, 1, 1, 1, 1, 0]) / 5
    policy, line = PolicyGraph(6, sorted(LINKS)), Query([*ANSWERS, 0], name="place")
    options: dict[str, Any] = {"epsilon": 1, "start": "5", "query": "place"}
    first, second, learned = (
        Scenario(line, MarkovModel(own, anywhere=share), policy, **options)
        for own, share in ((wrong, 0), (right, 0), (right, 0.01))
    )
    rows = polars.DataFrame([{"person": "ann", "time": t, "state": "1"} for t in (1, 2, 3)])
    for scenario in (second, learned):
        book = MemoryBook()
        first.release(rows[:2], book=book, randomness=seeded())
        assert not first.stream("ann", book=book).possible[1]
        assert len(list(adopt_terms(book, scenario.terms, same_states=True))) == 1
        scenario.release(rows, book=book, randomness=seeded())
        stream = scenario.stream("ann", book=book)
        (said,) = stream.said
        *_, record = book.answers(stream.line)
        answer = Answer.of(said, record.release())
        # Whoever went to 1 and stayed keeps to the second model, and not to the first.
        assert answer.told(0, 1) == 1
        assert (CONDITION in answer.text) == (scenario is second)
        statement = stream.statement()
        costs = statement if statement.own is None else statement.own
        assert costs.sequence == max(answer.told(j, k) for j, k in combinations(range(5), 2))


def test_what_is_believed_stays_where_the_new_model_allows_no_more() -> None:
    ring = MarkovModel(np.eye(4)[[1, 2, 3, 0]])
    for when, links in (({"time": 1}, [(0, 1)]), ({"time": 9}, [(0, 1), (2, 3)])):
        book = MemoryBook()
        first, second = (
            Scenario(Query([0, 1, 2, 3]), ring, PolicyGraph(4, some), epsilon=1, start="0")
            for some in (links, [(0, 2), (1, 3)])
        )
        first.release(polars.DataFrame([{"person": "ann", "state": "1", **when}]), book=book)
        (before,) = (place.standing for place in book.places([Line("", "ann", "state")]))
        assert len(list(adopt_terms(book, second.terms, same_states=True))) == 1
        (after,) = (place.standing for place in book.places([Line("", "ann", "state")]))
        assert before is not None
        assert after is not None
        assert after.belief.possible.tolist() == before.belief.possible.tolist()
        assert after.belief.probabilities.tolist() == before.belief.probabilities.tolist()


# Times


def test_planted_times_are_in_nothing_that_was_written(tmp_path: Path) -> None:
    scenario = Scenario(
        Query([0, 1]), MarkovModel(np.full((2, 2), 0.5)), PolicyGraph.complete(2), epsilon=1,
        clock=Clock("5 min"),
    )  # fmt: skip
    toml, trips = tmp_path / "town.toml", tmp_path / "trips.csv"
    scenario.save(toml)
    planted = ("2024-05-01T08:07:02.125Z", "2024-05-01T08:13:58.375Z")
    trips.write_text("person,time,state\n" + "".join(f"ann,{time},0\n" for time in planted))
    told = b""
    for number, kept in enumerate(([], ["--store", tmp_path / "town.db"])):
        out, page = tmp_path / f"out{number}.csv", tmp_path / f"page{number}.html"
        told += run("release", toml, trips, "-o", out, *kept).output.encode()
        book = kept[1] if kept else tmp_path / "town.ledger.jsonl"
        told += run("report", toml, out, "--ledger", book, "-o", page).output.encode()
        told += run("ledger", "show", book, toml, "--json").output.encode()
        assert page.is_file()
    written = [file for file in tmp_path.rglob("*") if file.is_file() and file != trips]
    told += b"".join(file.read_bytes() for file in written)
    parts = [b"07:02", b"02.125", b"13:58", b"58.375", b"1714550822", b"1714551238"]
    assert not [part for part in parts if part in told]
    assert b"2024-05-01T08:05:00Z" in told
    raw = run("release", toml, trips, "--raw-times", "--store", tmp_path / "town.db").output
    assert all(part in raw.encode() for part in parts[:4])


# Pages


def test_over_two_links_the_state_between_must_be_possible_too() -> None:
    line = Query([0, 50, 100, 1, 101])
    plan = Plan(PolicyGraph(5, [(0, 1), (1, 2), (0, 3), (2, 4)]), line)
    for between, lost in ((True, 2), (False, 100)):
        possible = np.array([True, between, True, True, True])
        step = plan.at(possible)
        assert step.body.lattice_norms(np.array([[100]]))[0] == lost
    page = (Path(__file__).parents[1] / "docs" / "guarantee.md").read_text()
    assert "exp(2ε), if the state between them is possible too" in page


def test_a_model_shapes_noise_where_zeros_are_stated_and_only_there() -> None:
    bodies = []
    for matrix in (np.eye(3), np.full((3, 3), 1 / 3), np.eye(3)[[1, 2, 0]]):
        for anywhere in (0, 0.01):
            policy, line = PolicyGraph(3, [(0, 1), (1, 2)]), Query([0, 1, 9])
            model = MarkovModel(matrix, anywhere=anywhere)
            stream = Stream(model, Plan(policy, line), epsilon=1, start=0, randomness=seeded())
            stream.release(0)
            bodies.append(stream.said[0].step.possible.tolist())
    assert len({str(body) for body in bodies[1::2]}) == 1
    assert len({str(body) for body in bodies[::2]}) == 3
    page = (Path(__file__).parents[1] / "docs" / "guarantee.md").read_text()
    assert "yes for every answer, but for the two conditions below that rest on the model" in page
