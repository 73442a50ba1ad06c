"""Files of releases as commands read them: with the book that they came from, if it is there."""

from __future__ import annotations

import warnings
from contextlib import closing, suppress
from functools import partial

from dphmm.cli.common import ledger_beside, progress
from dphmm.cli.stores import Opening
from dphmm.errors import DphmmError, UnknownLawWarning
from dphmm.scenario import Scenario
from dphmm.scenario.released import Track, read_releases

__all__ = ["read_released"]


def read_released(
    releases: str, scenario: Scenario, scenario_file: str, ledger: str | None
) -> list[Track]:
    """The tracks of a file, with all that its book holds besides if there is one."""
    read = partial(read_releases, releases, scenario, partial(progress, what="reading"))
    if ledger is not None:
        with closing(Opening().book(ledger)) as book:
            return read(book)
    beside = ledger_beside(scenario_file)
    if beside.is_file():
        # What stands there by chance need not be where the file came from.
        with (
            suppress(DphmmError),
            warnings.catch_warnings(),
            closing(Opening().book(str(beside))) as book,
        ):
            warnings.simplefilter("ignore", UnknownLawWarning)  # the ledger shows the law
            return read(book)
    return read()
