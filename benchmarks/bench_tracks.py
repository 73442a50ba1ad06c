"""What it costs to bring somebody else's tracks to a map."""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks import Figure
from dphmm import Clock, datasets

CABS = 80
FIXES = 6250
START = 1_211_000_000


def write_cabs(folder: Path) -> None:
    """Headerless files of latitude, longitude, occupied and seconds since 1970, newest first."""
    rng = np.random.default_rng(1)
    for cab in range(CABS):
        times = START + np.cumsum(rng.integers(30, 90, FIXES))
        place = np.cumsum(rng.normal(0, 0.0016, (FIXES, 2)), axis=0)
        place = np.abs((place + 0.126) % 0.504 - 0.252) - 0.126
        rows = zip(37.77 + place[:, 0], -122.42 + place[:, 1], times, strict=True)
        lines = [f"{a:.5f} {b:.5f} 0 {t}\n" for a, b, t in rows]
        (folder / f"cab{cab:02}.txt").write_text("".join(reversed(lines)))


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory() as name:
        write_cabs(Path(name))
        began = process_time()
        table, _ = datasets.load_tracks(name)
        read = process_time() - began
        town = datasets.Map.squares(37.77, -122.42, kilometres=26, cell=0.5)
        placed = datasets.place_trips(table, town, Clock("5 min"))
        both = process_time() - began
    assert placed.fixes == CABS * FIXES
    what = f"{placed.fixes} headerless fixes of {CABS} people"
    return [
        Figure(f"{what} read", read, "s of processor time"),
        Figure(f"{what} on {len(town.states)} states", both, "s", target="value < 15"),
    ]
