"""Read a ledger file while others write it: without a lock, and without changing a byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import BinaryIO

from dphmm.books.journal import END, HEAD, read_record
from dphmm.errors import DataError
from dphmm.release.said import Record

__all__ = ["Tail"]


class Tail:
    """The answers of a ledger file, as they come.

    Only what was written whole is read: a write that is under way, or that was killed, ends
    before its last line, and none of its answers has left.

    Args:
        path: The file.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._read = 0
        with self._open() as file:
            if file.read(len(HEAD)) != HEAD:
                raise DataError(f"{self.path}: ledger must be one that this dphmm wrote")

    def _open(self) -> BinaryIO:
        try:
            return self.path.open("rb")
        except OSError as fault:
            raise DataError(
                f"{self.path}: ledger must be readable, got: {fault.strerror}"
            ) from None

    def more(self) -> list[Record]:
        """The answers that were written since the last time."""
        with self._open() as file:
            file.seek(self._read)
            content = file.read()
        end = content.rfind(b"\n" + END) + 1
        # A name may hold the same letters, so only the beginning of a line counts.
        end = end + len(END) if end else (len(END) if content.startswith(END) else 0)
        place = self._read
        self._read += end
        try:
            lines = [json.loads(line) for line in content[:end].splitlines()]
            return [read_record(facts) for facts in lines if facts.get("kind") == "answer"]
        except (ValueError, KeyError, TypeError, ArithmeticError):
            raise DataError(f"{self.path}: ledger must hold records after byte {place}") from None
