"""A changed law or key never opens a second answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dphmm import (
    ArgumentError,
    Clock,
    KeyedRandomness,
    MarkovModel,
    MemoryBook,
    Policy,
    Query,
    Scenario,
)
from dphmm.release import engine
from dphmm.release.moment import Line
from tests.releasing import (
    BOOKS,
    CHANGES,
    KEY,
    KEYED,
    SAME_LAW,
    answers_of,
    ask,
    book_of,
    key_file,
    write,
)
from tests.scenarios import paper_scenario, run, trips, written

# A changed law never opens a second answer


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", BOOKS)
def test_an_answered_slot_keeps_its_answer_whatever_the_scenario_becomes(
    tmp_path: Path, kind: str, change: str
) -> None:
    scenario = paper_scenario(clock=Clock(origin=0))
    other = CHANGES[change](scenario)
    with book_of(kind, tmp_path) as book:
        (first,) = engine.release(book, [ask(scenario, [("ann", 1, 1), ("ann", 2, 3)])])
        asked = ask(other, [("ann", 1, 4), ("ann", 2, 4), ("ann", 3, 4)])
        (again,) = engine.release(book, [asked])
        for row in (0, 1):
            assert again.release(row).lattice.tolist() == first.release(row).lattice.tolist()
        if change in SAME_LAW:
            assert again.release(2).time == 3
        else:
            with pytest.raises(ArgumentError, match="dphmm ledger adopt"):
                again.release(2)
            with pytest.raises(ArgumentError, match="dphmm ledger adopt"):
                other.stream("ann", book=book)
        (place,) = book.places([Line("", "ann", "state")])
        assert place.spent == 2 + (other.settings.epsilon if change in SAME_LAW else 0)


@pytest.mark.parametrize("kind", BOOKS)
def test_an_answer_of_64_bits_is_repeated_as_it_was(tmp_path: Path, kind: str) -> None:
    """From 2**63 to 2**64 numpy has unsigned integers, which once became negative ones."""
    far = Query([[0], [2**61]])
    scenario = Scenario(far, MarkovModel([[0.5] * 2] * 2), Policy(complete=True), epsilon="0.4")
    rows = [("ann", time, 1) for time in range(1, 61)]
    with book_of(kind, tmp_path) as book:
        (first,) = engine.release(book, [ask(scenario, rows)], KEYED)
        again = [engine.release(book, [ask(scenario, [row])], KEYED)[0].release(0) for row in rows]
    said = [int(number) for number in first.answers.lattice.ravel()]
    assert any(2**63 <= number < 2**64 for number in said)
    assert [int(one.lattice[0]) for one in again] == said
    kept = [int(record.release().lattice[0]) for record in first.answers.records()]
    assert kept == said


@pytest.mark.parametrize("change", CHANGES)
def test_by_hand_too_an_answered_slot_is_not_answered_again(tmp_path: Path, change: str) -> None:
    scenario = paper_scenario(clock=Clock(origin=0))
    other = CHANGES[change](scenario)
    ann = scenario.stream("ann")
    ann.release(1)
    with pytest.raises(ArgumentError, match="got one already answered"):
        other.stream("ann", ledger=ann.ledger).release(4)
    if change in SAME_LAW:
        assert other.terms.stream(ann.standing).release(4).time == 2
        assert other.terms.batch([ann.standing]).release([4]).times.tolist() == [2]
    else:
        with pytest.raises(ArgumentError, match="standing must be of the stream's law"):
            other.terms.stream(ann.standing)
        with pytest.raises(ArgumentError, match="law must be that of the standings"):
            other.terms.batch([ann.standing])
    book = MemoryBook()
    first = scenario.release(write(tmp_path, [("ann", 1, 2)]), book=book)
    again = other.release(write(tmp_path, [("ann", 1, 5)]), book=book)
    assert first["x", "y", "epsilon"].equals(again["x", "y", "epsilon"])


@pytest.mark.parametrize("place", ["--ledger", "--store"])
def test_the_command_line_keeps_answers_through_every_change(tmp_path: Path, place: str) -> None:
    scenario = paper_scenario(clock=Clock(origin=0))
    scenario.save(tmp_path / "first.toml")
    book = (place, tmp_path / "book")
    rows = trips(("ann", 1, 2), ("ann", 2, 4))
    first = run("release", tmp_path / "first.toml", "-", *book, stdin=rows)
    assert first.exit_code == 0, first.stderr
    for name, change in CHANGES.items():
        (tmp_path / name).mkdir()
        path = tmp_path / name / "other.toml"
        change(scenario).save(path)
        again = run("release", path, "-", *book, stdin=trips(("ann", 1, 5), ("ann", 2, 5)))
        assert again.exit_code == 0, (name, again.stderr)
        said = [[float(x) for x in row[2:]] for row in answers_of(first.stdout)]
        assert [[float(x) for x in row[2:]] for row in answers_of(again.stdout)] == said, name
    new = trips(("ann", 3, 5))
    path = tmp_path / "policy" / "other.toml"
    refused = run("release", path, "-", *book, stdin=new)
    assert refused.exit_code == 2
    assert "dphmm ledger adopt" in refused.stderr
    adopted = run("ledger", "adopt", tmp_path / "book", path, "--same-states")
    assert adopted.exit_code == 0, adopted.stderr
    assert run("release", path, "-", *book, stdin=new).exit_code == 0
    shown = json.loads(run("ledger", "show", tmp_path / "book", "--json").stdout)
    assert [(row["slot"], row["spent"]) for row in shown["people"]] == [(3, "3")]


@pytest.mark.parametrize("kind", BOOKS)
def test_a_book_goes_on_with_its_own_key_only(tmp_path: Path, kind: str) -> None:
    scenario, other = paper_scenario(), KeyedRandomness(bytes(32))
    with book_of(kind, tmp_path) as book:
        engine.release(book, [ask(scenario, [("ann", 5, 1)])], KEYED)
        for wrong in (other, None):
            with pytest.raises(ArgumentError, match="key must be the one"):
                engine.release(book, [ask(scenario, [("ann", 6, 1)])], wrong)
            with pytest.raises(ArgumentError, match="key must be the one"):
                scenario.stream("ann", book=book, randomness=wrong)


@pytest.mark.parametrize("place", ["--ledger", "--store"])
def test_a_key_is_rotated_from_the_next_slot_on(tmp_path: Path, place: str) -> None:
    path = written(tmp_path)
    book = tmp_path / "book"
    old, new = key_file(tmp_path), key_file(tmp_path, bytes(32), "new")

    def release(key: Path, *rows: tuple[str, int, int]) -> int:
        words = ("release", path, "-", place, book, "--key-file", key)
        return run(*words, stdin=trips(*rows)).exit_code

    assert release(old, ("ann", 5, 2)) == 0
    assert release(new, ("ann", 6, 4)) == 2
    assert run("ledger", "rotate", book, "--key-file", old).exit_code == 2
    assert run("ledger", "rotate", book, "--key-file", new).exit_code == 0
    assert release(old, ("ann", 6, 4)) == 2
    assert release(new, ("bob", 5, 2)) == 2, "a slot that the old key could have served"
    assert release(new, ("ann", 6, 4)) == 0
    assert KEY.hex() not in book.read_bytes().hex()
