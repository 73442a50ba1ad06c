"""The page of mathematics names functions and tests that exist, and every theorem."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "mathematics.md").read_text()


def resolved(name: str) -> object:
    """The object of a dotted name: modules as far as they go, then attributes."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            # Fields without a default are annotations only.
            found = getattr(found, attribute)
        return found
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(dphmm\.[\w.]+)`", PAGE))))
def test_every_function_named_exists(name):
    assert resolved(name) is not None


def test_every_test_named_exists():
    named = re.findall(r"`(test_\w+\.py)::(\w+)`", PAGE)
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not (TESTS / file).is_file() or f"def {name}(" not in (TESTS / file).read_text()
    ]
    assert len(named) > 60
    assert missing == []


def test_every_line_names_a_function_and_a_test():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "|---" not in line]
    rows = [row for row in rows if not row.endswith("| function | test |")]
    assert len(rows) > 50
    for row in rows:
        _, _, _, function, test, _ = row.split("|")
        assert "`dphmm." in function
        assert "`test_" in test


def test_no_number_of_the_paper_is_left_out():
    counts = {"Definition": {3: 4, 4: 4, 5: 4, 7: 2}, "Theorem": {4: 2, 5: 3, 6: 3, 7: 2}}
    for kind, sections in counts.items():
        for section, last in sections.items():
            for number in range(1, last + 1):
                assert f"{kind} {section}.{number}" in PAGE
    assert all(f"Algorithm {number}" in PAGE for number in range(1, 5))
