"""The page of notes on the paper names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
NOTES = TESTS.parent / "docs" / "paper-notes.md"


def test_every_test_named_in_the_notes_exists():
    named = re.findall(r"`(test_\w+\.py)::(\w+)`", NOTES.read_text())
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not (TESTS / file).is_file() or f"def {name}(" not in (TESTS / file).read_text()
    ]
    assert len(named) > 20
    assert missing == []
