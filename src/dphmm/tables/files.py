"""Files that are written whole or not at all, and read with the place of every mistake."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from dphmm.errors import DataError

__all__ = ["check_new", "csv_text", "read_text", "whole_file", "write_whole"]


@contextmanager
def whole_file(path: str | Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """A file to write that takes its name only when everything is in it and on disk.

    It is written beside, as `.NAME.part`, and renamed; after an error nothing is left, and
    what was there before is as it was. Pipes and devices are written to directly. What is
    `private` is closed to others from its first byte on. A full disk names the file.
    """
    target = Path(os.path.realpath(path))
    partial = target.with_name(f".{target.name}.part")
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as out:
                yield out
            return
        mode = 0o600 if private else 0o666
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with os.fdopen(os.open(partial, flags, mode), "wb") as out:
            if private:
                os.fchmod(out.fileno(), mode)
            yield out
            out.flush()
            os.fsync(out.fileno())
        os.replace(partial, target)
    except BaseException as fault:
        partial.unlink(missing_ok=True)
        if isinstance(fault, OSError) and fault.filename is None:
            fault.filename = str(path)
        raise
    sync_folder(target.parent)


def write_whole(path: str | Path, content: bytes | str, *, private: bool = False) -> None:
    """Write a file whole or not at all."""
    with whole_file(path, private=private) as out:
        out.write(content.encode() if isinstance(content, str) else content)


def check_new(contents: Mapping[Path, str]) -> None:
    """Refuse to write over files that somebody has changed, or that are something else."""
    for path, content in contents.items():
        if path.exists() and (not path.is_file() or path.read_bytes() != content.encode()):
            raise DataError(
                f"{path}: file must be new or as it would be written, got another; "
                f"move it away, or allow to replace it"
            )


def sync_folder(folder: Path) -> None:
    """Make sure that the names in a folder survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_text(path: str | Path) -> str:
    """A text file's content, its line ends as they are; an error names the file."""
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{path}: file must be UTF-8 text, got other bytes") from None
    except OSError as fault:
        raise DataError(f"{path}: file must be readable, got: {fault.strerror}") from None


def csv_text(rows: Iterable[Sequence[str]]) -> str:
    """Rows as CSV lines that read back, whatever their cells hold."""
    out = io.StringIO()
    plain = csv.writer(out, lineterminator="\n")
    # The standard writer does not see that a lone carriage return needs quotation marks.
    quoted = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        (quoted if any("\r" in cell for cell in row) else plain).writerow(row)
    return out.getvalue()
