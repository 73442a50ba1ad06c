"""Which files somebody means: files, folders, patterns and archives, each of a known kind."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from glob import glob, has_magic
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

from dphmm.errors import DataError, expect_one_of
from dphmm.tables.datasets.streams import Chunks, Source, existing, file_source, member_source

__all__: list[str] = []

KINDS = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "text"),
    **dict.fromkeys((".jsonl", ".ndjson", ".geojsonl", ".geojsons"), "lines"),
    **dict.fromkeys((".json", ".geojson"), "json"),
    **{".plt": "plt", ".gpx": "gpx", ".parquet": "parquet"},
}
ARCHIVE = ".zip"
OTHERS = (".kml", ".kmz", ".fit", ".tcx", ".nmea", ".xlsx", ".xls", ".ods", ".shp", ".gpkg", ".rec",
          ".feather", ".avro", ".dbf", ".db", ".sqlite", ".bz2", ".xz", ".zst", ".tar", ".tgz",
          ".7z")  # fmt: skip
"""Files that may hold tracks, and are not read."""

_Found: TypeAlias = tuple[str, Source, tuple[str, ...]]

Owner: TypeAlias = Literal["file", "folder"]
"""Whose rows they are if no column says so: everybody has a file, or a folder of files."""


def find_sources(
    paths: Iterable[str | Path], owner: Owner, person: str | None = None
) -> list[tuple[str, Source]]:
    """The kind and the content of every file of tracks, in order of their names.

    Files of one name in several folders are several people's, who are told apart by the folder;
    unless all of them are of one `person`.
    """
    expect_one_of(owner, ("file", "folder"), "owner")
    found = [source for path in paths for source in _expand(str(path))]
    if not found:
        raise DataError(f"path must hold tracks ({', '.join(KINDS)}, {ARCHIVE}), got none")
    folders: dict[str, set[tuple[str, ...]]] = {}
    for _, _, parts in found:
        folders.setdefault(person_of(parts, owner), set()).add(parts[:-1])
    named = []
    for kind, source, parts in found:
        whose = person_of(parts, owner)
        if owner == "file" and len(folders[whose]) > 1 and not _in_trajectory(parts):
            whose = f"{parts[-2]}/{whose}"
        named.append((kind, replace(source, person=person or whose)))
    return named


def _expand(path: str) -> list[_Found]:
    named = False
    if not Path(path).exists() and has_magic(path):
        files = sorted(Path(name) for name in glob(path, recursive=True))
        files = [file for file in files if file.is_file() and _kind(file.name)]
    elif existing(Path(path)).is_dir():
        files = sorted(p for p in Path(path).rglob("*") if p.is_file() and _kind(p.name))
    elif _kind(path) is None:
        known = ", ".join((*KINDS, ARCHIVE))
        raise DataError(f"path must end in one of {known}, got {path!r}")
    else:
        files, named = [Path(path)], True
    found: list[_Found] = []
    for file in files:
        kind = _kind(file.name) or ""
        if kind == ARCHIVE:
            try:
                found += _members(file)
            except DataError:
                if named:
                    raise
                found.append(_broken(file))
        else:
            found.append((kind, file_source(file), file.absolute().parts))
    return found


def unread(paths: Iterable[str | Path]) -> dict[str, int]:
    """How many files may hold tracks and are not read, by their ending; in archives too."""
    counts: Counter[str] = Counter()
    for path in map(str, paths):
        is_folder = Path(path).is_dir()
        files = Path(path).rglob("*") if is_folder else map(Path, glob(path, recursive=True))
        for file in files:
            if not file.is_file():
                continue
            ending = _ending(file.name)
            counts.update([ending] if ending in OTHERS else ())
            if ending == ARCHIVE and zipfile.is_zipfile(file):
                with open_archive(file) as archive:
                    within = [_ending(info.filename) for info in archive.infolist()]
                counts.update(f"{e} in {ARCHIVE}" for e in within if e in (*OTHERS, ARCHIVE))
    return dict(counts)


def _ending(name: str) -> str:
    return PurePosixPath(name.lower().removesuffix(".gz")).suffix


def _members(path: Path) -> list[_Found]:
    with open_archive(path) as archive:
        return [
            (kind, member_source(path, info, ""), (path.stem, *PurePosixPath(info.filename).parts))
            for info in sorted(archive.infolist(), key=lambda info: info.filename)
            if not info.filename.startswith("__MACOSX")
            and (kind := _kind(info.filename) or ARCHIVE) != ARCHIVE
        ]


def _broken(path: Path) -> _Found:
    """An archive among other files that is none: a file that is damaged from its first byte."""

    def chunks() -> Chunks:
        raise zipfile.BadZipFile("no archive")
        yield

    return "text", Source(path.name, path.stat().st_size, chunks), path.absolute().parts


def open_archive(path: Path) -> zipfile.ZipFile:
    """A zip file, which must be whole."""
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError):
        raise DataError(f"path must be a whole zip archive, got {str(path)!r}") from None


def _kind(name: str) -> str | None:
    suffix = _ending(name)
    return ARCHIVE if suffix == ARCHIVE else KINDS.get(suffix)


def person_of(parts: tuple[str, ...], owner: Owner) -> str:
    """Whose file it is, from its path; GeoLife's people have a folder above `Trajectory`."""
    if _in_trajectory(parts):
        return parts[-3]
    if owner == "folder" and len(parts) >= 2:
        return parts[-2]
    name = parts[-1][:-3] if parts[-1].lower().endswith(".gz") else parts[-1]
    return PurePosixPath(name).stem


def _in_trajectory(parts: tuple[str, ...]) -> bool:
    return len(parts) >= 3 and parts[-2].lower() == "trajectory"
