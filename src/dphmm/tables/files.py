"""Files that are written whole or not at all, and read with the place of every mistake."""

from __future__ import annotations

import csv
import fcntl
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from dphmm.errors import ArgumentError, DataError

__all__ = [
    "as_path",
    "check_new",
    "csv_text",
    "hold",
    "is_at",
    "read_text",
    "whole_file",
    "write_whole",
]


def as_path(path: str | Path, argument: str = "path") -> Path:
    """The path of a file, as somebody gave it."""
    try:
        if b"\0" not in os.fsencode(path):
            return Path(path)
    except (TypeError, UnicodeEncodeError):
        pass
    raise ArgumentError(f"{argument} must name a file, got {type(path).__name__}")


@contextmanager
def whole_file(path: str | Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """A file to write that takes its name only when everything is in it and on disk.

    It is written beside, as `.NAME.part`, and renamed; after an error nothing is left, and
    what was there before is as it was. One run at a time: another is refused meanwhile. Pipes
    and devices are written to directly. What is `private` is closed to others from its first
    byte on. A full disk names the file.
    """
    target = Path(os.path.realpath(as_path(path)))
    partial = target.with_name(f".{target.name}.part")
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as out:
                yield out
            return
        with _open_alone(partial, path, 0o600 if private else 0o666) as out:
            try:
                yield out
                out.flush()
                os.fsync(out.fileno())
                os.replace(partial, target)
            except BaseException:
                partial.unlink(missing_ok=True)
                raise
    except OSError as fault:
        fault.filename = fault.filename or str(path)
        raise
    sync_folder(target.parent)


def _open_alone(partial: Path, path: str | Path, mode: int) -> BinaryIO:
    """An empty file to write, locked; another run may have renamed it while it was opened."""
    while True:
        try:
            opened = os.open(partial, os.O_RDWR | os.O_CREAT, mode)
        except OSError as fault:
            fault.filename = str(path)  # which the user named
            raise
        out = os.fdopen(opened, "r+b")
        hold(out, f"{path}: output")
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(opened), partial.stat()):
                out.truncate()
                if mode == 0o600:
                    os.fchmod(opened, mode)
                return out
        out.close()


def hold(file: BinaryIO, what: str) -> None:
    """Lock a file until it is closed, or say in a line that somebody else has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise DataError(f"{what} must be free, got one in use by a run") from None


def is_at(path: str | Path, opened: os.stat_result) -> bool:
    """Whether a path names the file that was opened there, which may be gone or another by now."""
    try:
        return os.path.samestat(os.stat(path), opened)
    except OSError:
        return False


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
        return as_path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{path}: file must be UTF-8 text, got other bytes") from None
    except OSError as fault:
        raise DataError(f"{path}: file must be readable, got: {fault.strerror}") from None


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Rows as CSV lines that read back, whatever their cells hold; None is an empty cell."""
    out = io.StringIO()
    plain = csv.writer(out, lineterminator="\n")
    # The standard writer does not see that a lone carriage return needs quotation marks.
    quoted = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        (quoted if any("\r" in str(cell) for cell in row) else plain).writerow(row)
    return out.getvalue()
