"""A measured result as a small file: its numbers, how sure they are, and what they depend on.

Whoever writes a number on a page takes it from such a file. The file says which code, data,
seeds and settings it comes from, so that everybody can see whether it still stands. It holds
figures over people only, never anything about one person by name.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from math import isfinite
from pathlib import Path
from typing import Any

from dphmm.errors import ArgumentError, DataError
from dphmm.evaluate.fingerprint import code_digest
from dphmm.tables.files import read_text, write_whole

__all__ = ["Result", "Table", "Value", "machine", "read_result", "read_results"]

DIGITS = 6
"""Significant digits that a file keeps: fewer than differ between machines."""


@dataclass(frozen=True)
class Value:
    """A number or a verdict, how it is printed, and how sure it is.

    Args:
        value: A number, or a word such as "held".
        form: How it is printed, as Python writes a format: ".1%", ".2f".
        low: The lower end of its interval over people; None without one.
        high: The upper end.
        unit: What is written behind it.
        people: How many people it is about.
        seeds: How many draws of noise it is a mean over; None where it is an exact expectation.
        note: What a reader must know, such as the rule of a verdict.
    """

    value: float | str
    form: str = ""
    low: float | None = None
    high: float | None = None
    unit: str = ""
    people: int | None = None
    seeds: int | None = None
    note: str = ""

    def __post_init__(self) -> None:
        for name in ("value", "low", "high"):
            given = getattr(self, name)
            if given is None or isinstance(given, str):
                continue
            if not isfinite(given):
                raise ArgumentError(f"{name} must be finite, got {given!r}")
            object.__setattr__(self, name, _rounded(given))
        if (self.low is None) != (self.high is None):
            raise ArgumentError(f"low and high must come together, got {self.low}, {self.high}")
        self.text()

    def text(self, form: str = "", *, interval: bool = False) -> str:
        """The value as a page shows it, with its interval if that is asked for.

        >>> Value(0.3184, ".1%", 0.301, 0.334).text(interval=True)
        '31.8% (30.1% to 33.4%)'
        """
        if isinstance(self.value, str):
            return self.value
        shown = [_formed(number, form or self.form) for number in self._numbers()]
        unit = f" {self.unit}" if self.unit else ""
        if not interval:
            return shown[0] + unit
        if len(shown) < 3:
            raise ArgumentError("interval must be one that the value has, got none")
        return f"{shown[0]}{unit} ({shown[1]} to {shown[2]}{unit})"

    def _numbers(self) -> list[float]:
        return [x for x in (self.value, self.low, self.high) if isinstance(x, (int, float))]


@dataclass(frozen=True)
class Table:
    """A table as a page shows it: text in every cell.

    Args:
        head: The names of the columns.
        rows: The cells, as many in each row.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "head", tuple(self.head))
        object.__setattr__(self, "rows", tuple(tuple(row) for row in self.rows))
        for row in (self.head, *self.rows):
            if len(row) != len(self.head):
                raise ArgumentError(f"row must have {len(self.head)} cells, got {len(row)}")
            for cell in row:
                if not isinstance(cell, str) or "|" in cell or "\n" in cell:
                    raise ArgumentError(f"cell must be one line of text without |, got {cell!r}")

    def text(self) -> str:
        """The table in Markdown."""
        lines = [self.head, tuple("---" for _ in self.head), *self.rows]
        return "\n".join(f"| {' | '.join(row)} |".replace("|  |", "| |") for row in lines)


@dataclass(frozen=True)
class Result:
    """What was measured, and what it depends on.

    Args:
        name: What its file is called, such as `geolife.readers`.
        about: In a sentence, what was measured on whom.
        module: The module whose code made it.
        values: Numbers and verdicts by name.
        tables: Tables by name.
        settings: Everything that was chosen, from the protocol.
        seeds: The seeds of noise.
        data: The digest of each workload and of each file that was read.
        noise: Without seeds, what is drawn all the same, or that everything is exact.
        code: The digest of the module; by default of the code as it is now.
        version: Of the package; by default this one.
        libraries: Those that the numbers came out of, with their versions.
        machine: What absolute times were taken on; only where there are such.
    """

    name: str
    about: str
    module: str
    values: Mapping[str, Value]
    tables: Mapping[str, Table] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    data: Mapping[str, str] = field(default_factory=dict)
    noise: str = ""
    code: str = ""
    version: str = ""
    libraries: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "seeds", tuple(self.seeds))
        object.__setattr__(self, "code", self.code or code_digest(self.module))
        object.__setattr__(self, "version", self.version or _version("dphmm"))

    @property
    def is_current(self) -> bool:
        """Whether the code that made it is the code that is here."""
        return self.code == code_digest(self.module)

    def value(self, key: str) -> Value:
        """The value of a name."""
        return _of(self.values, key, f"{self.name}: value")

    def table(self, key: str) -> Table:
        """The table of a name."""
        return _of(self.tables, key, f"{self.name}: table")

    def origin(self) -> str:
        """A line for a page: what made it, from what, and where the file is."""
        parts = [f"dphmm {self.version}", f"code {self.code[:8]}"]
        files = {name: digest for name, digest in self.data.items() if "/" in name} or self.data
        parts += [f"data {digest[:8]}" for digest in files.values()]
        if self.seeds:
            several = "s" * (len(self.seeds) > 1)
            parts.append(f"{len(self.seeds)} seed{several} of noise")
        elif self.noise:
            parts.append(self.noise)
        for named in (self.machine, self.libraries):
            if named:
                parts.append(", ".join(named.values()))
        return f"{self.about} ({'; '.join(parts)}; `docs/results/{self.name}.json`)"

    def write(self, folder: Path) -> Path:
        """Write the file NAME.json into a folder."""
        content = asdict(self)
        content["values"] = {
            key: {name: part for name, part in vars(value).items() if part not in (None, "")}
            for key, value in self.values.items()
        }
        path = folder / f"{self.name}.json"
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
        write_whole(path, text + "\n")
        return path


def read_result(path: Path) -> Result:
    """The result that a file holds; everything in it must be known and of its kind."""
    try:
        content = json.loads(read_text(path))
        unknown = set(content) - {part.name for part in fields(Result)}
        if unknown:
            raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
        content["values"] = {key: Value(**value) for key, value in content["values"].items()}
        content["tables"] = {key: Table(**table) for key, table in content["tables"].items()}
        result = Result(**content)
    except (ValueError, TypeError, KeyError, AttributeError) as fault:
        raise DataError(f"{path}: file must hold a result ({fault})") from None
    if path.stem != result.name:
        raise DataError(f"{path}: file must be called {result.name}.json")
    return result


def read_results(folder: Path) -> dict[str, Result]:
    """Every result of a folder by its name."""
    return {path.stem: read_result(path) for path in sorted(folder.glob("*.json"))}


def machine() -> dict[str, str]:
    """What absolute times were taken on."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processors": f"{os.cpu_count()} processors",
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from a folder that was not installed
        return "unknown"


def _rounded(number: float) -> float | int:
    return number if isinstance(number, int) else float(f"{number:.{DIGITS}g}")


def _formed(number: float, form: str) -> str:
    try:
        return format(number, form)
    except ValueError:
        raise ArgumentError(f"form must be a format of a number, got {form!r}") from None


def _of(named: Mapping[str, Any], key: str, what: str) -> Any:
    if key not in named:
        known: Sequence[str] = sorted(named)
        raise ArgumentError(f"{what} must be one of {', '.join(known) or 'none'}, got {key!r}")
    return named[key]
