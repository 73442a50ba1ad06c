"""What is printed by commands, pages and routes, held against what answers really tell.

Random worlds go through files, a store, a report and a service; times and states are in nothing
that is written, and nothing waits for a draw.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace
from itertools import combinations
from math import ceil, inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars
import pytest

from dphmm import (
    Clock,
    KeyedRandomness,
    MarkovModel,
    PolicyGraph,
    Query,
    Scenario,
)
from dphmm.books import Store
from dphmm.release.moment import Line
from dphmm.service.handlers import Handlers
from tests.promise_answers import CONDITION, Answer
from tests.promise_checks import WIDTH, Losses, check_statement, check_text, check_words
from tests.promise_routes import (
    KEY,
    Routed,
    at_least,
    check_book,
    check_pages,
    check_service,
    scenario_of,
)
from tests.promise_worlds import World, kinds, random_world
from tests.scenarios import run
from tests.service_worlds import FAST

SHORT, FULL = 20, 400
"""How many worlds go through files, a store, a report and a service, and in the long form."""


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
