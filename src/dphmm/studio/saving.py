"""Drafts on disk: what saving would change, and the files as other commands read them."""

from __future__ import annotations

import difflib
import io
import tempfile
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from dphmm.errors import ArgumentError, DataError
from dphmm.scenario import Scenario, Settings, write_whole
from dphmm.studio.drawing import draw
from dphmm.studio.opened import MARK, Opened, read_exactly, stamps_of
from dphmm.studio.requests import Draft, Save
from dphmm.tables.files import csv_text

__all__ = ["difference", "open_again", "open_file", "save", "to_zip"]


def open_file(path: str | Path) -> Opened:
    """A scenario's file, as it is."""
    stamps = stamps_of(Path(path), Settings.read(path))
    scenario = Scenario.load(path)
    drawing = draw(scenario, Path(path).parent)
    return Opened(scenario, drawing, read_exactly(Path(path)), Path(path), stamps)


def open_again(opened: Opened) -> Opened:
    """The scenario as its files have it now; the same one if nobody wrote them since."""
    if opened.path is None or _has_same_stamps(opened, opened.path):
        return opened
    return open_file(opened.path)


def _has_same_stamps(opened: Opened, path: Path) -> bool:
    return stamps_of(path, opened.scenario.settings) == opened.stamps


def difference(opened: Opened, draft: Draft) -> dict[str, Any]:
    """What saving would change, line by line, for people to read."""
    lines: list[str] = []
    for name, (old, new) in _files(opened, draft).items():
        if old != new:
            parts = ((old or "").splitlines(), new.splitlines(), f"{name} as opened", name)
            lines += difflib.unified_diff(*parts, lineterm="", n=2)
    return {"file": opened.file, "lines": lines}


def save(opened: Opened, request: Save) -> Opened:
    """Write a draft to the file it was opened from, or to a new one beside it."""
    if opened.path is None:
        raise ArgumentError("scenario must come from a file to be saved, got an example")
    target = opened.path
    if request.name is None:
        _check_as_opened(opened, opened.path)
    else:
        target = opened.path.with_name(request.name)
        if target.exists():
            raise DataError(f"{request.name}: file must be new, got one that is there")
    opened.scenario_of(request)  # a draft that cannot be read is not written
    files = _files(opened, request, apart=request.name is not None)
    _, text = files.pop(opened.file)
    for name, (old, new) in files.items():
        if old != new:
            write_whole(opened.path.with_name(name), new)
    if text != opened.text or target != opened.path:
        write_whole(target, text)
    return open_file(target)


def _check_as_opened(opened: Opened, path: Path) -> None:
    """Refuse to write over what somebody else wrote since, in the file or in those it names."""
    way_out = "save under another name, or open it again"
    try:
        is_same = read_exactly(path) == opened.text
    except (OSError, UnicodeDecodeError):
        raise DataError(
            f"{opened.file}: file must be as it was opened, got none that can be read; {way_out}"
        ) from None
    name = opened.file
    if is_same and not _has_same_stamps(opened, path):
        now = Scenario.load(path)
        if now.edges != opened.scenario.edges:
            is_same, name = False, opened.scenario.settings.policy.edges or name
        elif now.law != opened.scenario.law:
            is_same, name = False, f"what {opened.file} names"
    if not is_same:
        raise DataError(f"{name}: file must be as it was opened, got one changed since; {way_out}")


def to_zip(opened: Opened, draft: Draft) -> bytes:
    """A draft with all its files in one archive; its own file as the page shows it."""
    out = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, ZipFile(out, "w", ZIP_DEFLATED) as archive:
        opened.scenario_of(draft).save(Path(folder) / opened.file)
        write_whole(Path(folder) / opened.file, opened.text_of(draft))
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder))
        base = opened.scenario.settings.base
        if base is not None and opened.path is not None and Path(base).name == base:
            archive.write(opened.path.parent / base, base)
    return out.getvalue()


def _files(opened: Opened, draft: Draft, apart: bool = False) -> dict[str, tuple[str | None, str]]:
    """The files that saving may write: what is there, and what would be."""
    text = opened.text_of(draft, apart)
    files: dict[str, tuple[str | None, str]] = {opened.file: (opened.text, text)}
    edges = Settings.parse(text.removeprefix(MARK), opened.file).policy.edges
    before = opened.scenario.settings.policy.edges
    if edges is not None and draft.edges not in (None, opened.edges):
        old = csv_text([("a", "b"), *opened.scenario.edges]) if edges == before else None
        files[edges] = (old, csv_text([("a", "b"), *opened.scenario_of(draft).edges]))
    return files
