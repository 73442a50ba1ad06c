"""What is printed after a change, held against what answers really tell.

The worlds of `test_promise_routes` keep one law, one key and one question. Here another law is
adopted on the way, and perhaps a third, with the states that were or with others, with rows missing
before and after; another key takes over, and a second question is asked at the same steps; limits
have windows, and schedules come and go with the laws.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dphmm import (
    KeyedRandomness,
    PrivacyStatement,
    Scenario,
    Stream,
)
from dphmm.books import Store
from dphmm.release.moment import Line
from dphmm.service.handlers import Handlers
from tests.promise_answers import Answer
from tests.promise_checks import (
    WIDTH,
    Losses,
    check_release,
    check_statement,
    check_text,
    linked_paths,
)
from tests.promise_routes import Routed, check_book, check_pages, check_service, scenario_of
from tests.promise_worlds import World, random_epsilon, random_query, random_world
from tests.scenarios import run
from tests.service_worlds import FAST

SHORT, FULL = 12, 400
"""How many worlds change on their way, and in the long form."""

KEYS = bytes(range(32)), bytes(range(32, 64))


@dataclass
class Begun(World):
    """A world whose start is known at a later time: before that somebody may be anywhere."""

    anew: int = 0

    def moves(self, time: int, own: bool = False) -> np.ndarray:
        if time > self.anew:
            return super().moves(time, own)
        reached = super().entered() if time == self.anew else np.ones(len(self.current), dtype=bool)
        return np.tile(reached, (len(self.current), 1))

    def entered(self) -> np.ndarray:
        return np.ones(len(self.current), dtype=bool) if self.anew else super().entered()


@dataclass
class Changed:
    """A random world that was released under two or three laws, into one store."""

    after: Routed
    prices: list[tuple[int, Fraction]]
    """What was spent when, on all questions."""
    others: list[Answer] = field(default_factory=list)
    """The answers to another question."""
    asked: int = 0
    """The slot before its first row, at which its start was known."""
    kinds: set[str] = field(default_factory=set)


def like(world: World, seed: int) -> World:
    """Another world of as many states, with the same memory."""
    for one in count(10_000 * (seed + 1)):
        other = random_world(one)
        same = other.n == world.n and other.current.tolist() == world.current.tolist()
        if same and other.fresh.tolist() == world.fresh.tolist():
            return other
    raise AssertionError


@dataclass
class Town:
    """The files of a world, and the commands that use them."""

    folder: Path
    rng: np.random.Generator
    n: int
    key: int = 0

    def __post_init__(self) -> None:
        for number, key in enumerate(KEYS):
            file = self.folder / f"{number}.key"
            file.touch(mode=0o600)
            file.write_bytes(key)

    @property
    def store(self) -> Path:
        return self.folder / "town.db"

    def run(self, *arguments: object) -> str:
        ran = run(*arguments)
        assert ran.exit_code == 0, ran.stderr
        return ran.stdout

    def toml(self, name: str) -> Path:
        """A scenario's file, in a folder of its own: its tables have fixed names."""
        return self.folder / name / "town.toml"

    def save(self, name: str, scenario: Scenario) -> Scenario:
        self.toml(name).parent.mkdir()
        scenario.save(self.toml(name))
        return Scenario.load(self.toml(name))

    def release(self, name: str, times: list[int], states: list[int]) -> Path:
        rows = [f"ann,{time},{state}" for time, state in zip(times, states, strict=True)]
        trips = self.folder / "trips.csv"
        trips.write_text("\n".join(["person,time,state", *rows]) + "\n")
        out = self.folder / f"{name}.csv"
        self.run("release", self.toml(name), trips, "-o", out, "--store", self.store,
                 "--key-file", self.folder / f"{self.key}.key")  # fmt: skip
        return out

    def rotate(self) -> None:
        self.key = 1
        self.run("ledger", "rotate", self.store, "--key-file", self.folder / "1.key")


def answers_of(stream: Stream, texts: dict[int, str]) -> list[Answer]:
    return [
        Answer.of(one, SimpleNamespace(
            time=one.time, epsilon=one.epsilon, lattice=one.lattice, statement=texts[one.time],
        ))  # type: ignore[arg-type]
        for one in stream.said
    ]  # fmt: skip


def random_turns(rng: np.random.Generator, longest: int) -> list[list[int]]:
    """The slots of the rows under each of two or three laws, with gaps between and within."""
    laws = 2 if longest < 3 or rng.random() < 0.5 else 3
    turns = sorted(rng.choice(np.arange(1, longest), laws - 1, replace=False).tolist())
    begins = zip([0, *turns], [*turns, longest], strict=True)
    rows = [[t for t in range(a + 1, b + 1) if rng.random() < 0.7] or [b] for a, b in begins]
    rows[-1] = sorted({*rows[-1], longest})
    return rows


def changed(seed: int, folder: Path) -> Changed | None:
    """Somebody's rows under one law and, some of them, under another, and under a third."""
    before, rng = random_world(seed), np.random.default_rng([seed, 2])
    town = Town(folder, rng, before.n)
    longest = {2: 6, 3: 5, 4: 4, 5: 3}[before.n]
    states = rng.integers(before.n, size=longest + 1).tolist()
    rows = random_turns(rng, longest)
    laws = [before, *(like(before, seed + 5000 * n) for n in range(len(rows) - 1))]
    after, times = laws[-1], rows[-1]
    rotates, asks = (bool(rng.random() < 0.6) for _ in range(2))
    price = random_epsilon(rng)
    # More than can be spent, so that nothing is refused, in windows that hold all of it and less.
    limit = 12 * (sum(world.stream.epsilon for world in laws) + price)
    words = f"{limit} per 6 steps, {limit} per 3 steps"
    given: list[Answer] = []
    anew = since = 0
    kinds = set()
    for number, (world, slots) in enumerate(zip(laws, rows, strict=True)):
        scenario = town.save(f"law{number}", scenario_of(world, limit=words))
        toml = town.toml(f"law{number}")
        if number:
            if rotates and not town.key:
                town.rotate()
            same, since = bool(rng.random() < 0.6), rows[number - 1][-1]
            kept = "--same-states" if same else "--other-states"
            assert town.run("ledger", "adopt", town.store, toml, kept).startswith("1 people")
            anew = anew if same else since
            kinds |= {"same" if same else "others"} | ({"gap"} if slots[0] > since + 1 else set())
        out = town.release(f"law{number}", slots, [states[time] for time in slots])
        if number < len(laws) - 1:
            with closing(Store.open(str(town.store))) as book:
                old = scenario.stream("ann", book=book, randomness=KeyedRandomness(KEYS[town.key]))
                texts = {one.time: one.statement for one in book.answers(old.line)}
                given += answers_of(old, texts)
    others: list[Answer] = []
    with closing(Store.open(str(town.store))) as book:
        noise = KeyedRandomness(KEYS[town.key])
        if asks:
            query = random_query(rng, before.n, "other")
            other = replace(after, plan=after.plan.replace(query=query))
            asked = replace_query(town, other, price, words)
            town.release("other", times, [states[time] for time in times])
            line = Line("", "ann", "other")
            said = {one.time: one.statement for one in book.answers(line)}
            others = answers_of(asked.stream("ann", book=book, randomness=noise), said)
        stream = scenario.stream("ann", book=book, randomness=noise)
        if not stream.said:
            return None
        texts = {one.time: one.statement for one in book.answers(stream.line)}
        handlers = Handlers(book, FAST, noise, long=True)
        handlers.keep("", "last", scenario)
        privacy = handlers.privacy("", "last", "ann")
        new = answers_of(stream, texts)
        ledger = book.ledger("ann")
        prices = [(entry.time, entry.epsilon) for entry in ledger.entries]
    names = vars(after) | {"stream": stream, "answers": [*given, *new], "resumed": len(given)}
    world = Begun(**names | {"adopted": True}, anew=anew)
    page = folder / "report.html"
    town.run("report", toml, out, "--ledger", town.store, "-o", page)
    shown = town.run("ledger", "show", town.store, toml)
    besides = sum((answer.epsilon for answer in others), Fraction(0))
    routed = Routed(world, scenario, toml, town.store, page.read_text(), privacy,
                    shown, limit, besides, since)  # fmt: skip
    options = {"rotated": rotates, "several": bool(others), "three": len(laws) == 3,
               "facts": after.stated, "learned": not after.stated, "delta": bool(after.plan.delta),
               "schedule": after.stream.schedule is not None,
               "facts before": any(law.stated for law in laws[:-1])}  # fmt: skip
    kinds |= {name for name, true in options.items() if true}
    return Changed(routed, prices, others, times[0] - 1, kinds)


def replace_query(town: Town, world: World, price: Fraction, words: str) -> Scenario:
    """A scenario with another question about the same states."""
    plan, start = world.plan, world.start / world.start.sum()
    asked = Scenario(
        plan.query, world.stream.model, plan.policy, epsilon=price, query="other",
        start={str(state): float(part) for state, part in enumerate(start) if part},
        mechanism=plan.mechanism, shape=plan.shape, repair=plan.repair, full_rank=plan.full_rank,
        delta=plan.delta, limit=words,
    )  # fmt: skip
    return town.save("other", asked)


def check_changed(found: Changed) -> None:
    world = found.after.world
    for number in range(world.resumed, len(world.answers)):
        check_release(world, number)
    statement = world.stream.statement(width=WIDTH)
    check_statement(world, statement)
    check_text(world, statement)
    check_windows(found, statement)
    check_pages(found.after)
    check_service(found.after)
    check_book(found.after)
    check_all_questions(found)


def check_windows(found: Changed, statement: PrivacyStatement) -> None:
    """The most that was spent in any window, of the answers that are counted."""
    counted = found.after.world.answers[found.after.world.resumed :]
    assert {length for length, _ in statement.windows} == {"6 steps", "3 steps"}
    for length, most in statement.windows:
        width = int(length.split()[0])
        spent = [sum((a.epsilon for a in counted if end - width < a.time <= end), Fraction(0))
                 for end in range(1, 7)]  # fmt: skip
        assert most == max(spent)
    assert statement.besides == found.after.besides
    first = statement.text().splitlines()[0]
    assert ("on this person besides, which nothing here counts" in first) == bool(statement.besides)


def check_all_questions(found: Changed) -> None:
    """What a ledger says was spent bounds what paths lose that are linked at every answer."""
    world = found.after.world
    answers = sorted([*world.answers[world.resumed :], *found.others], key=lambda a: a.time)
    both = replace(world, answers=[*world.answers[: world.resumed], *answers])
    losses = Losses(both, both.resumed, legal=world.stated)
    if found.others and world.stated:
        # Each question's condition counts from its own start, which was known when it was first
        # asked: the sum is promised to paths that are possible from both.
        assert isinstance(both, Begun)
        asked = replace(both, anew=found.asked)
        held = Losses(asked, both.resumed, legal=True).paths.tolist()
        losses.totals[[path not in held for path in losses.paths.tolist()]] = 0
        losses.totals[:, [path not in held for path in losses.paths.tolist()]] = 0
    spent = sum((price for _, price in found.prices), Fraction(0))
    assert spent == sum(a.epsilon for a in both.answers)
    assert linked_paths(both, losses) <= sum((a.epsilon for a in answers), Fraction(0)) <= spent
    said = re.search(r"spent ([^\s,]+)", found.after.shown)
    assert said
    assert Fraction(said[1]) == spent


def check_worlds(seeds: range, folder: Path) -> Counter[str]:
    met: Counter[str] = Counter()
    for seed in seeds:
        place = folder / str(seed)
        place.mkdir()
        found = changed(seed, place)
        if found is None:
            met["nothing said"] += 1
            continue
        try:
            check_changed(found)
        except AssertionError as wrong:
            raise AssertionError(f"world {seed} breaks a promise: {found.kinds}") from wrong
        met.update(found.kinds)
    return met


@pytest.mark.filterwarnings("ignore::dphmm.errors.CollapsedAnswersWarning")
def test_nothing_printed_after_a_change_is_less_than_what_answers_tell(tmp_path: Path) -> None:
    met = check_worlds(range(SHORT), tmp_path)
    assert len(met - Counter(["nothing said"])) == 11, met


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dphmm.errors.CollapsedAnswersWarning")
def test_nothing_printed_after_a_change_is_less_than_answers_tell_in_many_worlds(
    tmp_path: Path,
) -> None:
    check_worlds(range(SHORT, FULL), tmp_path)
