"""The book of many people in one file: what was said, on disk before it is said.

One JSON object a line, all of it public: answers (client, person, slot, time, query, law,
epsilon, constrained, answer on the lattice, estimate, statement), standings, the fingerprint of
the key, and laws that were adopted. What was written together ends with a line of its own; a run
that was killed while writing leaves lines without that end, whose answers never left, and the
next run removes them. A standing may be older than the last answer: the answers after it are
then said again to the belief.
"""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from dphmm.books.memory import MemoryBook
from dphmm.errors import ArgumentError, DataError, expect, expect_function
from dphmm.geometry.exact import as_text
from dphmm.release.admission import Place
from dphmm.release.answers import Answers
from dphmm.release.book import KeyInUse, check_adoption
from dphmm.release.moment import Line
from dphmm.release.said import Record
from dphmm.release.standing import Standing
from dphmm.tables.files import as_path, hold, is_at, sync_folder

__all__ = ["END", "HEAD", "Journal", "read_record"]

HEAD = b'{"format": "dphmm ledger 2"}\n'

END = b'{"kind": "end"}\n'
"""What is before it in the file was written whole."""

OFTEN = 256
"""Answers of a person after which their standing is written again."""

HELD = 2**24
"""States of all standings that are held in memory, about 128 MB; more are put down."""

_encode = json.JSONEncoder(ensure_ascii=False).encode


class Journal(MemoryBook):
    """The book of a file. One run at a time: the file is locked while it is open.

    Args:
        path: The file; it is made if there is none, closed to others.
        time_of: What a slot is called in the file, if it should be told.
    """

    def __init__(self, path: str | Path, time_of: Callable[[int], int | str] | None = None) -> None:
        super().__init__()
        self.path = as_path(path)
        self._where = self.path.absolute()  # wherever the process goes
        if time_of is not None:
            expect_function(time_of, "time_of")
        self._time_of = time_of
        self._written: dict[Line, int] = {}
        """How many answers each line had when its standing was written."""
        self._on_disk: dict[Line, tuple[int, int]] = {}
        """Where the latest standing of each line begins in the file, and how long it is."""
        self._adopted_at: dict[Line, tuple[int, int]] = {}
        """The same of the standings from which other laws were adopted."""
        self._adopting = False
        self._file = self._open()
        try:
            self._read()
        except BaseException:
            self._file.close()
            raise

    def commit(
        self, answers: Sequence[Answers], standings: Sequence[Standing], places: Sequence[Place]
    ) -> None:
        """See `Book`."""
        with self._lock:
            new = self._check(answers, standings, places)
            lines = [self._answer_line(record) for record in new]
            counts: dict[Line, int] = {}
            for record in new:
                counts[record.line] = counts.get(record.line, 0) + 1
            # The first one always, so that later answers have something to follow from.
            due = [
                standing
                for standing in standings
                if standing.line not in self._written
                or len(self._records.get(standing.line, ())) + counts.get(standing.line, 0)
                >= self._written[standing.line] + OFTEN
            ]
            with self._writing():
                self._append(lines, due)
                for record in new:
                    self._keep(record)
                self._stand(standings)
                for standing in due:
                    self._written[standing.line] = len(self._records.get(standing.line, ()))
            if standings and len(self._standings) * standings[0].belief.n_states > HELD:
                self._put_down()

    def adopt(self, standing: Standing) -> None:
        """See `MemoryBook`; the file says that it happened."""
        expect(standing, Standing, "standing")
        with self._lock:
            before = check_adoption(self._find_standing(standing.line), standing)
            laws = {"from": before.law.hex(), "to": standing.law.hex()}
            facts = _facts(standing.line) | laws
            with self._writing():
                self._append([_line("adopted", facts)], [standing])
                self._stand([standing])
                self._adopted_at[standing.line] = self._on_disk[standing.line]
                self._written[standing.line] = len(self._records.get(standing.line, ()))

    def adopted(self, line: Line) -> Standing | None:
        """See `Book`."""
        expect(line, Line, "line")
        return self._read_standing(self._adopted_at.get(line))

    def _write_key(self, key: KeyInUse) -> None:
        with self._writing():
            self._append([_line("key", vars(key))])
            super()._write_key(key)

    def close(self) -> None:
        """Write where everybody stands and let the file go."""
        if self._file.closed:
            return
        try:
            with self._lock:
                self._put_down()
        finally:
            self._file.close()

    def lines(self) -> list[Line]:
        """See `MemoryBook`."""
        return sorted({*self._standings, *self._on_disk})

    def _put_down(self) -> None:
        """Write where everybody stands, and hold it in memory no longer."""
        behind = [
            standing
            for line, standing in self._standings.items()
            if len(self._records.get(line, ())) > self._written.get(line, 0)
        ]
        with self._writing():
            self._append([], behind)
            for standing in behind:
                self._written[standing.line] = len(self._records.get(standing.line, ()))
            self._standings.clear()

    def _find_standing(self, line: Line) -> Standing | None:
        return self._standings.get(line) or self._read_standing(self._on_disk.get(line))

    def _read_standing(self, place: tuple[int, int] | None) -> Standing | None:
        if place is None:
            return None
        self._check_open()
        start, size = place
        return _standing(json.loads(os.pread(self._file.fileno(), size, start)))

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _answer_line(self, record: Record) -> bytes:
        facts = _facts(record.line) | {"slot": record.time}
        if self._time_of is not None:
            facts["time"] = self._time_of(record.time)
        facts |= {
            "law": record.law,
            "epsilon": as_text(record.epsilon),
            "constrained": "inf" if record.constrained == inf else str(record.constrained),
            "answer": record.lattice,
            "estimate": record.estimate,
            "statement": record.statement,
        }
        if record.spacing != 1:
            facts["spacing"] = as_text(record.spacing)
        if not record.private:
            facts["private"] = False
        return _line("answer", facts)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Change what is on disk and what is known here together.

        Who is stopped in between may have written an answer that is not known here, and would
        draw another for its moment: the file is let go, and whoever opens it again finds it.
        """
        self._check_open()
        self._check_place()
        size = self._size
        try:
            yield
            self._check_place()
        except BaseException:  # whatever its kind: a signal may raise an error of the disk, too
            if not size == self._size == os.fstat(self._file.fileno()).st_size:
                self._file.close()
            raise

    def _check_open(self) -> None:
        if self._file.closed:
            raise ArgumentError(
                "book must be open, got a journal that was closed, or stopped while it was "
                "written; open it again"
            )

    def _check_place(self) -> None:
        """Refuse to write, or to say what was written, where nobody would find it."""
        if not is_at(self._where, os.fstat(self._file.fileno())):
            raise DataError(
                f"{self.path}: ledger must stay where it is while it is open, got it moved, "
                f"deleted or replaced; nothing more is said"
            )

    def _append(self, lines: Sequence[bytes], standings: Sequence[Standing] = ()) -> None:
        """Write lines and wait until they are on disk; all of them are there, or an error."""
        stood = [_standing_line(standing) for standing in standings]
        if not lines and not stood:
            return
        content = b"".join([*lines, *stood, END])
        try:
            left = memoryview(content)
            while left:  # a disk that fills up takes a part of it without an error
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError as fault:
            self._shorten()
            fault.filename = fault.filename or str(self.path)
            raise
        place = self._size + sum(map(len, lines))
        for standing, line in zip(standings, stood, strict=True):
            self._on_disk[standing.line] = (place, len(line))
            place += len(line)
        self._size += len(content)

    def _open(self) -> BinaryIO:
        if self.path.exists() and not self.path.is_file():
            raise DataError(f"{self.path}: ledger must be a file, got something else")
        try:
            opened = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as fault:
            raise DataError(
                f"{self.path}: ledger must be writable, got: {fault.strerror}"
            ) from None
        file = os.fdopen(opened, "a+b", buffering=0)
        hold(file, f"{self.path}: ledger")
        return file

    def _read(self) -> None:
        self._file.seek(0)
        content = self._file.read()
        # Only at the beginning of a line: a name may hold the same letters.
        end = content.rfind(b"\n" + END) + 1
        end = end + len(END) if end else 0
        lines = content[:end].splitlines(keepends=True)
        if (lines and lines[0] != HEAD) or (not lines and not _may_begin(content)):
            raise DataError(
                f"{self.path}:1: ledger must be one that this dphmm wrote, got another file"
            )
        place = len(HEAD)
        for number, line in enumerate(lines[1:], start=2):
            try:
                self._take(json.loads(line), place, len(line))
                place += len(line)
            except (DataError, ValueError, KeyError, TypeError, ArithmeticError, zlib.error):
                raise DataError(f"{self.path}:{number}: line must be a ledger's record") from None
        self._size = end
        if end < len(content):
            self._shorten()
        if not lines:
            self._append([HEAD])
            sync_folder(self.path.absolute().parent)

    def _take(self, facts: dict[str, Any], place: int, size: int) -> None:
        kind = facts.pop("kind")
        if kind == "answer":
            self._keep(read_record(facts))
        elif kind == "standing":
            standing = _standing(facts)
            self._stand([standing])
            self._standings.clear()
            self._on_disk[standing.line] = (place, size)
            if self._adopting:
                self._adopted_at[standing.line] = (place, size)
            self._written[standing.line] = len(self._records.get(standing.line, ()))
        elif kind == "key":
            super()._write_key(KeyInUse(**facts))
        elif kind not in ("adopted", "end"):
            raise ValueError(kind)
        self._adopting = kind == "adopted"  # the standing that begins it stands on the next line

    def _shorten(self) -> None:
        """Remove what a failed or killed write left behind the last whole line."""
        self._file.truncate(self._size)
        self._file.seek(self._size)


def _may_begin(content: bytes) -> bool:
    """Whether a file without a whole write can be the beginning of a ledger."""
    whole = HEAD + END
    return content.startswith(HEAD) or whole.startswith(content)


def _facts(line: Line) -> dict[str, Any]:
    client = {"client": line.client} if line.client else {}
    return {**client, "person": line.person, "query": line.query}


def _line(kind: str, facts: dict[str, Any]) -> bytes:
    return _encode({"kind": kind, **facts}).encode() + b"\n"


def _standing_line(standing: Standing) -> bytes:
    data = base64.b64encode(zlib.compress(standing.to_bytes(), 1)).decode()
    return _line("standing", _facts(standing.line) | {"slot": standing.time, "standing": data})


def _standing(facts: dict[str, Any]) -> Standing:
    data = zlib.decompress(base64.b64decode(facts["standing"], validate=True))
    return Standing.from_bytes(data)


def read_record(facts: dict[str, Any]) -> Record:
    """The answer of a line of the file."""
    constrained = facts["constrained"]
    return Record(
        line=Line(facts.get("client", ""), facts["person"], facts["query"]),
        time=int(facts["slot"]),
        law=facts["law"],
        epsilon=Fraction(facts["epsilon"]),
        constrained=inf if constrained == "inf" else Fraction(constrained),
        lattice=tuple(int(number) for number in facts["answer"]),
        estimate=tuple(float(number) for number in facts["estimate"]),
        statement=facts["statement"],
        private=facts.get("private", True),
        spacing=Fraction(facts.get("spacing", 1)),
    )
