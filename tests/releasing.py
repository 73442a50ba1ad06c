"""What tests of the one way to release share: books of every kind, asks and keys."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np

from dphmm import (
    Journal,
    KeyedRandomness,
    MarkovModel,
    MemoryBook,
    Policy,
    Scenario,
    Store,
)
from dphmm.release.book import Book
from dphmm.release.engine import Ask
from tests.scenarios import paper_scenario, trips

KEY = bytes(range(32))
KEYED = KeyedRandomness(KEY)
DAY = 60
BOOKS = ("memory", "journal", "store")


@contextmanager
def book_of(kind: str, folder: Path) -> Iterator[Book]:
    """A book of a kind; opened again it holds what it held."""
    if kind == "memory":
        yield MemoryBook()
    elif kind == "journal":
        with Journal(folder / "book.jsonl") as journal:
            yield journal
    else:
        with closing(Store.open(str(folder / "book.db"))) as store:
            yield store


def ask(scenario: Scenario, rows: Sequence[tuple[str, int, int]], **options: object) -> Ask:
    people, times, states = zip(*rows, strict=True)
    return Ask(scenario.terms, people, np.array(times), np.array(states), **options)  # type: ignore[arg-type]


def key_file(folder: Path, key: bytes = KEY, name: str = "key") -> Path:
    path = folder / name
    path.write_bytes(key)
    path.chmod(0o600)
    return path


def answers_of(text: str) -> list[tuple[str, ...]]:
    return [tuple(row[:4]) for row in csv.reader(io.StringIO(text))][1:]


def wide_scenario(**changes: object) -> Scenario:
    """Everything is possible, and an answer has many values, so that equal ones tell."""
    base = paper_scenario(policy=Policy(complete=True), start="uniform", **changes)
    model = MarkovModel(np.full((6, 6), 1 / 6))
    return Scenario.from_settings(base.settings, base.states, model)


CHANGES: dict[str, Callable[[Scenario], Scenario]] = {
    "name": lambda s: s.replace(name="other"),
    "epsilon": lambda s: s.replace(epsilon=Fraction(3)),
    "policy": lambda s: s.replace(policy=Policy(complete=True)),
    "model": lambda s: Scenario.from_settings(
        s.settings, s.states, MarkovModel(np.full((6, 6), 1 / 6))
    ),
    "start": lambda s: s.replace(start="uniform"),
    "lattice": lambda s: s.replace(step=Fraction(1, 2)),
    "mechanism": lambda s: s.replace(mechanism="laplace"),
}
SAME_LAW = ("name", "epsilon")


def write(folder: Path, rows: Sequence[tuple[str, object, int]]) -> Path:
    path = folder / "rows.csv"
    path.write_text(trips(*rows))
    return path
