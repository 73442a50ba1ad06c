"""What is said under a law that was adopted, held against what answers really tell.

The promises of a model with stated zeros are for people who move as it says is possible from its
start. Where another law was before, noise must be made for all who did so, whatever that one said.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars

from dphmm import MarkovModel, MemoryBook, PolicyGraph, Query, Scenario
from dphmm.books.changing import adopt_terms
from tests.test_promise import ANSWERS, CONDITION, LINKS, Answer
from tests.test_promise_routes import seeded

START, SINK = 10, 11


def staged(first: list[int]) -> Scenario:
    """From a start to some of 0 to 4, from each to one of its own of 5 to 9, and then away."""
    moves = np.zeros((12, 12))
    moves[START, first] = 1 / len(first)
    moves[range(5), range(5, 10)] = 1
    moves[[5, 6, 7, 8, 9, SINK], SINK] = 1
    links = sorted(LINKS) + [(a + 5, b + 5) for a, b in sorted(LINKS)]
    line = Query([*ANSWERS, *ANSWERS, 0, 0], name="place")
    options: dict[str, Any] = {"epsilon": 1, "start": str(START), "query": "place"}
    return Scenario(line, MarkovModel(moves), PolicyGraph(12, links), **options)


def test_a_start_that_other_states_brought_is_where_the_next_law_begins() -> None:
    """Answers about other states came before: its start is known when they ended, not began."""
    other = Scenario(
        Query([0, 1], name="place"), MarkovModel(np.full((2, 2), 0.5)), PolicyGraph.complete(2),
        epsilon=1, query="place",
    )  # fmt: skip
    wrong, right, book = staged([0, 2, 3, 4]), staged([0, 1, 2, 3, 4]), MemoryBook()

    def release(scenario: Scenario, walk: dict[int, int]) -> None:
        rows = [{"person": "ann", "time": time, "state": str(s)} for time, s in walk.items()]
        scenario.release(polars.DataFrame(rows), book=book, randomness=seeded())

    release(other, {1: 0, 2: 0, 3: 0})
    assert len(list(adopt_terms(book, wrong.terms, same_states=False))) == 1
    release(wrong, {4: 1})
    assert len(list(adopt_terms(book, right.terms, same_states=True))) == 1
    release(right, {5: 6})
    stream = right.stream("ann", book=book)
    *_, record = book.answers(stream.line)
    answer = Answer.of(stream.said[-1], record.release())
    assert CONDITION in answer.text
    # At its start after slot 3, at 1 after 4, at 6 now: a path of the model's own.
    assert answer.told(5, 6) == 1
