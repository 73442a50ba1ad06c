"""What the page offers to open: scenarios of one folder, and those that were opened lately.

The page names a file by a number that it got from here, so nothing else of the disk can be
opened, whoever writes the request.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from dphmm.errors import ArgumentError, DphmmError
from dphmm.tables.files import write_whole

__all__ = ["Start", "name_of", "recent_file"]

MOST_FILES = 400
"""TOML files that are looked at in a folder and the folders in it."""

LARGEST = 2**20
"""Bytes of a TOML file that could be a scenario."""

MOST_RECENT = 8
NEEDED = ("states", "model", "epsilon")


def recent_file() -> Path:
    """Where the names of lately opened files are kept, for this user alone."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "dphmm" / "studio.json"


class Start:
    """The files that may be opened.

    Args:
        folder: Where to look for scenarios; None offers the lately opened ones alone.
        memory: Where those are kept; None keeps nothing.
    """

    def __init__(self, folder: Path | None = None, memory: Path | None = None) -> None:
        self.folder = None if folder is None else folder.resolve()
        self._memory = memory

    def describe(self) -> dict[str, Any]:
        """What the page lists."""
        here, lately = list(self._here()), self._lately()
        return {
            "folder": None if self.folder is None else str(self.folder),
            "scenarios": [_entry(path, self.folder) for path in here],
            "recent": [_entry(path, None) for path in lately if path not in here],
        }

    def find(self, file: str | None) -> Path:
        """The file that a number of the list stands for."""
        for path in (*self._here(), *self._lately()):
            if _number(path) == file:
                return path
        raise ArgumentError("file must be one of the list, got another; reload the page")

    def match(self, name: str, text: str) -> dict[str, Any]:
        """The listed file that was dropped on the page, which only sees its content."""
        for path in (*self._here(), *self._lately()):
            with suppress(OSError, UnicodeDecodeError):
                if path.name == name and path.read_bytes().decode("utf-8") == text:
                    return _entry(path, self.folder)
        raise ArgumentError(
            f"{name} must be in the folder of the studio, since a scenario is more than one file; "
            f"start it with: dphmm studio FOLDER/{name}"
        )

    def remember(self, path: Path) -> None:
        """Put a file first among the lately opened ones."""
        if self._memory is None:
            return
        path = path.resolve()
        kept = [path, *(other for other in self._lately() if other != path)][:MOST_RECENT]
        # A home that cannot be written to, or another studio that writes, is no reason to stop.
        with suppress(OSError, DphmmError):
            self._memory.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._memory, json.dumps([str(one) for one in kept]), private=True)

    def _here(self) -> Iterator[Path]:
        if self.folder is None:
            return
        files = sorted([*self.folder.glob("*.toml"), *self.folder.glob("*/*.toml")])
        yield from (path for path in files[:MOST_FILES] if _is_scenario(path))

    def _lately(self) -> list[Path]:
        if self._memory is None:
            return []
        try:
            kept = json.loads(self._memory.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return []
        paths = [Path(one) for one in kept if isinstance(one, str)]
        return [path for path in paths[:MOST_RECENT] if _is_scenario(path)]


def name_of(path: Path | None) -> dict[str, str]:
    """How the page names a file to open it again."""
    return {} if path is None else {"name": "file", "file": _number(path.resolve())}


def _number(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]


def _entry(path: Path, folder: Path | None) -> dict[str, Any]:
    inside = folder is not None and path.is_relative_to(folder)
    where = path.parent.relative_to(folder) if inside and folder is not None else path.parent
    return {
        "file": _number(path),
        "name": path.name,
        "where": "" if str(where) == "." else str(where),
    }


def _is_scenario(path: Path) -> bool:
    """Whether a TOML file has what a scenario cannot do without."""
    try:
        if path.suffix != ".toml" or not path.is_file() or path.stat().st_size > LARGEST:
            return False
        content = tomllib.loads(path.read_bytes().decode("utf-8").removeprefix("\ufeff"))
    except (OSError, ValueError):
        return False
    return all(key in content for key in NEEDED)
