"""Every sentence about privacy that is printed, held against what answers really tell.

In small worlds everything can be enumerated: every path, every pair of linked states, every answer
that was given (`promise_answers`, `promise_worlds`, `promise_checks`). Here are random worlds of
every kind; the files beside this one have the subjects:

- `test_promise_zeros`: what a model calls impossible, and what it remembers
- `test_promise_questions`: several questions about one moment
- `test_promise_before`: checks and headlines, before anything is released
- `test_promise_readers`: what a small chance and other knowledge tell
- `test_promise_gaps`: steps that are answered without a row
- `test_promise_routes`: commands, a report, a service and a book
- `test_promise_report`: a report's own sentences
- `test_promise_adopting`, `test_promise_laws`: another law, key or question on the way
- `test_promise_pages`: documentation and help
- `test_promise_index`: what was found, and the tests that hold it
"""

from __future__ import annotations

from collections import Counter

import pytest

from dphmm.cost.bracket import Bracket
from tests.promise_checks import Losses, check
from tests.promise_worlds import kinds, random_world

SHORT, FULL = 80, 10_000
"""How many worlds are made in `make test`, and in `make test-full`."""


def check_worlds(seeds: range) -> Counter[str]:
    met: Counter[str] = Counter()
    for seed in seeds:
        world = random_world(seed)
        try:
            check(world)
        except AssertionError as wrong:
            raise AssertionError(f"world {seed} breaks a promise: {kinds(world)}") from wrong
        met.update(kinds(world))
    return met


def test_nothing_printed_is_less_than_what_answers_tell() -> None:
    met = check_worlds(range(SHORT))
    # Every kind of world is there, in numbers: none of the promises is kept by having no case.
    assert len(met) == 18
    assert min(met.values()) >= SHORT // 20, met


@pytest.mark.slow
def test_nothing_printed_is_less_than_what_answers_tell_in_many_worlds() -> None:
    check_worlds(range(SHORT, FULL))


def test_a_bracket_holds_the_largest_loss_between_two_paths(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    brackets = 0
    for module in ("composition", "sequences", "statement"):
        monkeypatch.setattr(f"dphmm.cost.{module}.TIGHT_STATES", 1)
    for seed in range(SHORT // 4):
        world = random_world(seed)
        statement = world.stream.statement()
        if isinstance(statement.sequence, Bracket) and not world.plan.delta:
            losses = Losses(world, world.resumed, statement.stated_zeros)
            lost = losses.most(losses.totals >= 0)
            assert lost <= statement.sequence.upper
            assert statement.sequence.lower <= lost or world.resumed
            assert "One moment, or 10 steps: not computed" in statement.text()
            brackets += 1
    assert brackets > SHORT // 20
