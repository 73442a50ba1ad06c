"""What is said under a law that was adopted, held against what answers really tell.

The promises of a model with stated zeros are for people who move as it says is possible from its
start. Where another law was before, noise must be made for all who did so, whatever that one said.
"""

from __future__ import annotations

from contextlib import closing
from html import unescape
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from dphmm import (
    MarkovModel,
    MemoryBook,
    PolicyGraph,
    Query,
    Scenario,
)
from dphmm.books import Store
from dphmm.books.changing import adopt_terms
from dphmm.release.moment import Line
from dphmm.service.handlers import Handlers
from tests.promise_answers import ANSWERS, CONDITION, LINKS, Answer, seeded
from tests.scenarios import run
from tests.service_worlds import FAST

START, SINK = 10, 11
BEFORE = "what was said before"
READERS = (
    "What these answers really told somebody who knew ",
    "Of one moment from the first answer to the last",
    "Of no moment from the first to the last did these very answers",
    "Somebody who knows only ",
)


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


@pytest.mark.parametrize("same", [True, False])
def test_a_reader_is_said_to_know_earlier_answers_where_the_numbers_count_on_them(
    tmp_path: Path, same: bool
) -> None:
    """Earlier answers are in what is believed, unless they were about other states."""
    model, line = MarkovModel(np.eye(3), anywhere=0.1), Query([0, 1, 2], name="state")
    first, second = (
        Scenario(line, model, PolicyGraph(3, links), epsilon=3)
        for links in ([(0, 1)], [(0, 1), (1, 2)])
    )
    toml, store, out = (tmp_path / name for name in ("town.toml", "town.db", "out.csv"))
    second.save(toml)
    rows = [{"person": "ann", "time": time, "state": "0"} for time in (1, 2, 3)]
    with closing(Store.open(str(store))) as book:
        first.release(polars.DataFrame(rows[:2]), book=book, randomness=seeded())
        assert len(list(adopt_terms(book, second.terms, same_states=same))) == 1
        said = second.release(polars.DataFrame(rows[2:]), book=book, randomness=seeded())
        said.write_csv(out)
        stream = second.stream("ann", book=book)
        handlers = Handlers(book, FAST, None, long=True)
        handlers.keep("", "second", second)
        privacy = handlers.privacy("", "second", "ann")["text"]
    statement = stream.statement()
    assert statement.tells is not None
    # Exactly, by Bayes: of whoever knew only the model, and of whoever heard what came before.
    (heard,) = (np.exp(one) for one in stream.observations() if one is not None)
    likely = second.model.predict(second.start, 3).probabilities * heard
    alone = (likely / likely.sum()).max()
    assert (statement.tells.whereabouts.guess == pytest.approx(alone, rel=1e-9)) != same
    page = tmp_path / "report.html"
    ran = run("report", toml, out, "--ledger", store, "-o", page)
    assert ran.exit_code == 0, ran.stderr
    for text in (statement.text(), privacy, unescape(page.read_text())):
        lines = text.replace("<li>", "\n").splitlines()
        for start in READERS:
            (one,) = (line for line in lines if line.startswith(start))
            assert (BEFORE in one) == same, one
    given = f"the published model{', ' + BEFORE if same else ''} and all of them"
    assert given in unescape(page.read_text())
    # Before anything else was said there is nothing else to know.
    stream = second.stream("bob", time=0, randomness=seeded())
    stream.release(0)
    assert BEFORE not in stream.statement().text()


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
