"""A scenario as it was opened, and drafts of it: its own file with some keys changed.

A draft is never anything but the text of a scenario file, so what the page shows is what the
file will say, and what nobody changed stays byte for byte.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias

import tomlkit
from cachetools import LRUCache

from dphmm.errors import ArgumentError, DataError, ScenarioError
from dphmm.geometry.exact import as_text
from dphmm.scenario import Scenario, Settings
from dphmm.studio.drawing import Drawing, describe
from dphmm.studio.requests import Draft

__all__ = ["Opened", "read_exactly", "rewrite", "stamps_of", "values_of"]

KEPT = 24
"""Drafts that are kept with their plans, so that going back and forth is quick."""

MARK = "\ufeff"
"""A byte order mark, which some editors write first."""

Stamps: TypeAlias = tuple[tuple[str, int, int], ...]
"""Name, size and time of the last change of some files."""

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


@dataclass(frozen=True, eq=False)
class Opened:
    """A scenario, the text of its file, and how it is drawn."""

    scenario: Scenario
    drawing: Drawing
    text: str
    path: Path | None = None
    """The file, if there is one."""
    stamps: Stamps = ()
    """Of it and of the files that it names, from before they were read."""
    _drafts: LRUCache[str, Scenario] = field(default_factory=lambda: LRUCache(KEPT))
    _lock: Any = field(default_factory=Lock)

    @cached_property
    def fingerprint(self) -> str:
        """Of the file and everything that it names."""
        parts = (self.text, self.scenario.law, json.dumps(self.scenario.edges))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    @property
    def file(self) -> str:
        """What the file is called, or would be."""
        return "scenario.toml" if self.path is None else self.path.name

    @cached_property
    def edges(self) -> list[list[int]]:
        """The policy's own edges, as states."""
        number = {label: state for state, label in enumerate(self.scenario.labels)}
        pairs = (sorted((number[a], number[b])) for a, b in self.scenario.edges)
        return [list(pair) for pair in sorted({(a, b) for a, b in pairs})]

    @cached_property
    def described(self) -> dict[str, Any]:
        """What the page needs to draw the scenario and to edit it."""
        return {
            "fingerprint": self.fingerprint,
            "file": None if self.path is None else self.path.name,
            "settings": values_of(self.scenario.settings),
            "edges": self.edges,
            **describe(self.scenario, self.drawing),
        }

    def text_of(self, draft: Draft, apart: bool = False) -> str:
        """The file as the draft has it; `apart` from the one that was opened, edges included."""
        changes: dict[str, Any] = {str(key): value for key, value in draft.changes.items()}
        if changes.get("policy.edges") is not None:
            raise ArgumentError("policy.edges must stay as it is or be nothing, got a name")
        other = apart and draft.edges != self.edges
        drawn = draft.edges and (other or self.scenario.settings.policy.edges is None)
        if drawn and "policy.edges" not in changes:
            changes["policy.edges"] = self._new_file("edges")
        return rewrite(self.text, changes) if changes else self.text

    def scenario_of(self, draft: Draft) -> Scenario:
        """The scenario as the draft has it."""
        if not draft.changes and draft.edges is None:
            return self.scenario
        name = json.dumps([draft.changes, draft.edges], sort_keys=True)
        with self._lock:
            made = self._drafts.get(name)
        if made is None:
            made = self._make(draft)
            with self._lock:
                self._drafts[name] = made
        return made

    def _make(self, draft: Draft) -> Scenario:
        settings, own = (
            Settings.parse(self.text_of(draft).removeprefix(MARK), self.file),
            self.scenario,
        )
        edges, labels = own.edges, own.labels
        if draft.edges is not None:
            edges = tuple((labels[a], labels[b]) for a, b in draft.edges)
        if settings.policy.edges is None:
            edges = ()
        made = Scenario.from_settings(settings, own.states, own.model, own.source, edges)
        kept = (settings.columns, settings.step, settings.query)
        if kept == (own.settings.columns, own.settings.step, own.settings.query):
            vars(made)["query"] = own.query  # so it need not be put on its lattice again
        try:
            _ = made.plan, made.start
        except ScenarioError:
            raise
        except (ArgumentError, DataError) as fault:
            raise ScenarioError(f"{self.file}: {fault}") from None
        return made

    def _new_file(self, stem: str) -> str:
        """The name of a file that is not there yet."""
        taken = set() if self.path is None else {path.name for path in self.path.parent.iterdir()}
        names = (f"{stem}{number}.csv" for number in ("", *range(2, len(taken) + 3)))
        return next(name for name in names if name not in taken)


def read_exactly(path: Path) -> str:
    """A text file as it is, a byte order mark included, so that it can be written back."""
    return path.read_bytes().decode("utf-8")


def stamps_of(path: Path, settings: Settings) -> Stamps:
    """What tells that nobody wrote a scenario's files since; no stamp where there is no file."""
    named = (settings.states, settings.model, settings.policy.edges, settings.base)
    outlines = Path(settings.states).with_suffix(".geojson")
    files = [path, *(path.parent / name for name in (*named, outlines) if name is not None)]
    found = []
    for file in files:
        with suppress(OSError):
            stat = file.stat()
            found.append((str(file), stat.st_size, stat.st_mtime_ns))
    return tuple(found)


def values_of(settings: Settings) -> dict[str, Any]:
    """What a file says under every key that the page may change, exact numbers as texts."""
    policy, when = settings.policy, settings.when
    values: dict[str, Any] = {
        "epsilon": as_text(settings.epsilon),
        "limit": None if settings.limit is None else str(settings.limit),
        "start": settings.start if isinstance(settings.start, str) else dict(settings.start),
        "mechanism": settings.mechanism,
        "shape": settings.shape,
        "gamma": None if settings.gamma is None else as_text(settings.gamma),
        "repair": settings.repair or "none",
        "full_rank": settings.full_rank,
        "delta": as_text(settings.delta),
        "estimate": settings.estimate,
        "policy.complete": policy.complete,
        "policy.category": policy.category,
        "policy.distance": None if policy.distance is None else as_text(policy.distance),
        "policy.one_step": policy.one_step,
        "policy.edges": policy.edges,
    }
    if when is not None:
        values |= {f"when.{key}": getattr(when, key) for key in ("every", "phase", "apart", "gaps")}
        values["when.hours"] = list(when.hours)
        values["when.error"] = None if when.error is None else str(when.error)
    return values


def rewrite(text: str, changes: Mapping[str, Any]) -> str:
    """A scenario's text with some keys changed, or taken away by None; the rest stays as it is."""
    mark = MARK if text.startswith(MARK) else ""
    body = text.removeprefix(mark)
    wanted = tomllib.loads(body, parse_float=Decimal)
    file = tomlkit.parse(body)
    for key, value in _with_own_price(wanted, changes).items():
        section, _, name = key.rpartition(".")
        table, plain = (file, wanted) if not section else (file.get(section), wanted.get(section))
        if table is None:
            if value is None:
                continue
            file[section], wanted[section] = tomlkit.table(), {}
            table, plain = file[section], wanted[section]
        assert plain is not None
        old = plain.get(name)
        if value is None:
            table.pop(name, None)
            plain.pop(name, None)
        elif old is None or not _is_same(old, value):
            _put(table, name, _like(old, value))
            plain[name] = value
    made = tomlkit.dumps(file)
    if not _is_same(tomllib.loads(made, parse_float=Decimal), wanted):
        raise ArgumentError("file must be simpler TOML to be edited here; edit it by hand")
    return mark + made


def _with_own_price(file: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes with the price where the file has it: a schedule may name its own."""
    asked, price = dict(changes), file.get("when", {}).get("epsilon")
    if price is None:
        return asked
    if "when" in asked:
        return {"epsilon": str(price)} | asked
    if "epsilon" in asked:
        asked["when.epsilon"] = asked.pop("epsilon")
    return asked


def _put(table: Any, name: str, value: Any) -> None:
    """Write a value where the old one stands, unless one of them is a table and the other not."""
    if name in table and (isinstance(value, dict) or isinstance(table[name].unwrap(), dict)):
        del table[name]
    if isinstance(value, dict):
        inline = tomlkit.inline_table()
        inline.update(value)
        value = inline
    table[name] = value


def _like(old: Any, value: Any) -> Any:
    """A number stays a bare number if it was one."""
    bare = isinstance(old, (int, Decimal)) and not isinstance(old, bool)
    if bare and isinstance(value, str) and _NUMBER.fullmatch(value):
        return tomlkit.value(value)
    return value


def _is_same(a: Any, b: Any) -> bool:
    """Whether two values of a file say the same: 2, 2.0 and "2" do, and true is no number."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_is_same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_is_same, a, b))
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    numbers = (int, float, Decimal, str)
    if isinstance(a, numbers) and isinstance(b, numbers):
        return str(a) == str(b) or _number(a) == _number(b) is not None
    return bool(a == b)


def _number(value: object) -> Decimal | None:
    text = str(value)
    return Decimal(text) if _NUMBER.fullmatch(text) else None
