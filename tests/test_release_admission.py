"""What may be answered, by a second way: plain rules beside those of every book."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import (
    Clock,
    MarkovModel,
    MemoryBook,
    PolicyGraph,
    Scenario,
    Stream,
)
from dphmm.release import admission, engine
from dphmm.release.admission import LONGEST_GAP, Verdict
from dphmm.release.book import Book
from tests.releasing import (
    BOOKS,
    ask,
    book_of,
)
from tests.scenarios import FEWER

# Admission, by a second way


def plain_verdicts(
    answered: set[int],
    latest: int | None,
    times: list[int],
    room: int | None,
    origin: int | None,
) -> list[Verdict]:
    """The rules in plain words: rows in order of time, one after the other."""
    verdicts: dict[int, Verdict] = {}
    here = latest if latest is not None else (min(times) - 1 if origin is None else origin)
    if origin is not None:
        here = max(here, origin)
    for time in sorted(set(times)):
        if time in answered:
            verdicts[time] = Verdict.REPEATED
        elif time <= here:
            verdicts[time] = Verdict.LATE
        elif time - here > LONGEST_GAP:
            verdicts[time] = Verdict.FAR
        elif room is not None and room < 1:
            verdicts[time] = Verdict.OVER
        else:
            verdicts[time] = Verdict.NEW
            here = time
            room = None if room is None else room - 1
    seen: set[int] = set()
    result = []
    for time in times:
        again = time in seen and verdicts[time] == Verdict.NEW
        result.append(Verdict.REPEATED if again else verdicts[time])
        seen.add(time)
    return result


slots = st.one_of(st.integers(-3, 12), st.sampled_from([200_005, 100_004, 100_005]))
batches = st.lists(st.lists(slots, min_size=1, max_size=6), min_size=1, max_size=4)


@FEWER
@given(batches=batches, limit=st.sampled_from([None, 1, 3, 5]), origin=st.sampled_from([None, 0]))
def test_every_book_gives_the_verdicts_of_the_plain_rules(
    batches: list[list[int]], limit: int | None, origin: int | None
) -> None:
    settings = {"clock": Clock(origin=origin), "limit": limit}
    model = MarkovModel([[0.5, 0.5], [0.5, 0.5]])
    base = Scenario([0, 1], model, PolicyGraph.complete(2), epsilon=1)
    scenario = base.replace(**settings)
    with TemporaryDirectory() as folder:
        seen = []
        for kind in BOOKS:
            with book_of(kind, Path(folder)) as book, pytest.MonkeyPatch.context() as patch:
                # Carrying a belief through a hundred thousand steps takes long and shows nothing.
                patch.setattr(Stream, "skip", fast_skip)
                seen.append([verdicts_of(book, scenario, times) for times in batches])
        assert seen[0] == seen[1] == seen[2]
        answered: set[int] = set()
        latest: int | None = None
        for times, verdicts in zip(batches, seen[0], strict=True):
            room = None if limit is None else limit - len(answered)
            assert verdicts == plain_verdicts(answered, latest, times, room, origin)
            new = {time for time, v in zip(times, verdicts, strict=True) if v == Verdict.NEW}
            answered |= new
            latest = max(answered) if answered else latest


def fast_skip(stream: Stream, steps: int = 1) -> None:
    stream.time += steps
    if steps:
        stream._answered = ()


def verdicts_of(book: Book, scenario: Scenario, times: list[int]) -> list[int]:
    asked = ask(scenario, [("ann", time, 0) for time in times])
    judged = engine.judge(book, asked)
    (answered,) = engine.release(book, [asked])
    assert judged.verdicts.tolist() == answered.verdicts.tolist()
    assert set(answered.faults) == {
        row for row, verdict in enumerate(answered.verdicts) if verdict > Verdict.REPEATED
    }
    return answered.verdicts.tolist()


def test_a_wrong_rule_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = admission.admit
    monkeypatch.setattr(
        engine, "admit", lambda place, times, *a, **k: honest(place, np.minimum(times, 9), *a, **k)
    )
    model = MarkovModel([[0.5, 0.5], [0.5, 0.5]])
    scenario = Scenario([0, 1], model, PolicyGraph.complete(2), epsilon=1)
    assert verdicts_of(MemoryBook(), scenario, [8, 12]) != plain_verdicts(
        set(), None, [8, 200_005], None, None
    )
