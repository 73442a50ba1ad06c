"""The ledger of many people in one file: what was said, on disk before it is said.

One JSON object a line: person, time, slot, step, scenario, law, query, epsilon, constrained
and answer (on the lattice); all of it is public. A line is complete when its end is there: a
run that was killed while writing leaves a part of a line, whose answer never left and which
the next run removes.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from dphmm.cost.ledger import Entry, Ledger
from dphmm.errors import DataError
from dphmm.geometry.exact import as_text
from dphmm.tables.files import sync_folder

__all__ = ["Journal", "Record"]

HEAD = b'{"format": "dphmm ledger 1"}\n'

_encode = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True)
class Record:
    """One answer as it left, and its price."""

    person: str
    time: str
    slot: int
    step: int
    scenario: str
    law: str
    query: str
    epsilon: Fraction
    constrained: Fraction | float
    answer: tuple[int, ...]

    def entry(self) -> Entry:
        """The record as an entry of the person's ledger."""
        return Entry(self.step, self.query, self.epsilon, self.constrained, self.scenario)

    def to_line(self) -> bytes:
        """The record as a line of the file."""
        facts = dict(vars(self))
        facts["epsilon"] = as_text(self.epsilon)
        facts["constrained"] = "inf" if self.constrained == inf else str(self.constrained)
        return _encode(facts).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Record:
        """The record of a line; raises ValueError, KeyError or TypeError for any other."""
        facts = json.loads(line)
        facts["epsilon"] = Fraction(facts["epsilon"])
        constrained = facts["constrained"]
        facts["constrained"] = inf if constrained == "inf" else Fraction(constrained)
        facts["answer"] = tuple(int(number) for number in facts["answer"])
        return cls(**facts)


class Journal:
    """The records of a file, by person, and a way to add more that survives a kill.

    One run at a time: the file is locked while it is open.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._records: dict[str, list[Record]] = {}
        self._file = self._opened()
        try:
            self._read()
        except BaseException:
            self._file.close()
            raise

    def of(self, person: str) -> Sequence[Record]:
        """What was said about a person, in order."""
        return self._records.get(person, ())

    @property
    def people(self) -> tuple[str, ...]:
        """Everybody about whom something was said."""
        return tuple(self._records)

    def ledger(self, person: str, limit: Fraction | None) -> Ledger:
        """The person's ledger under a limit on everything said, in any scenario."""
        return Ledger(limit, [record.entry() for record in self.of(person)])

    def add(self, records: Iterable[Record]) -> None:
        """Write records and wait until they are on disk; all of them are there, or an error."""
        new = list(records)
        if not new:
            return
        try:
            self._file.write(b"".join(record.to_line() for record in new))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as fault:
            self._shorten()
            fault.filename = fault.filename or str(self.path)
            raise
        self._size = self._file.tell()
        for record in new:
            self._records.setdefault(record.person, []).append(record)

    def close(self) -> None:
        """Give the file back to others."""
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _opened(self) -> BinaryIO:
        if self.path.exists() and not self.path.is_file():
            raise DataError(f"{self.path}: ledger must be a file, got something else")
        try:
            file = open(self.path, "a+b", buffering=0)  # noqa: SIM115 - held until close
        except OSError as fault:
            raise DataError(
                f"{self.path}: ledger must be writable, got: {fault.strerror}"
            ) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise DataError(f"{self.path}: ledger must be free, got one in use by a run") from None
        return file

    def _read(self) -> None:
        self._file.seek(0)
        content = self._file.read()
        end = content.rfind(b"\n") + 1
        lines = content[:end].splitlines(keepends=True)
        if lines and lines[0] != HEAD:
            raise DataError(f"{self.path}:1: ledger must be one that dphmm wrote, got another file")
        if not lines and not HEAD.startswith(content):
            raise DataError(f"{self.path}:1: ledger must be one that dphmm wrote, got another file")
        for number, line in enumerate(lines[1:], start=2):
            try:
                record = Record.from_line(line)
            except (ValueError, KeyError, TypeError, ZeroDivisionError):
                raise DataError(f"{self.path}:{number}: line must be a ledger's record") from None
            self._records.setdefault(record.person, []).append(record)
        self._size = end
        if end < len(content):
            self._shorten()
        if not lines:
            self._file.write(HEAD)
            os.fsync(self._file.fileno())
            sync_folder(self.path.absolute().parent)
            self._size = len(HEAD)

    def _shorten(self) -> None:
        """Remove what a failed or killed write left behind the last whole line."""
        self._file.truncate(self._size)
        self._file.seek(self._size)
