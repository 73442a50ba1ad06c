"""A made-up city of taxis, as their files are: headerless, newest first, with gaps."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dphmm._types import FloatArray, IntArray

MIDDLE = (37.77, -122.42)
BEGAN = 1_211_000_100
PACE = 60
"""Seconds between two fixes."""
METRES = 111_195.0
"""A degree of latitude."""


def drive(vehicles: int, steps: int, seed: int, reach: float = 12_000.0) -> FloatArray:
    """(steps, vehicles, 2) metres from the middle: fares between places that many ask for."""
    rng = np.random.default_rng(seed)
    towns = np.random.default_rng(0).normal(0, reach / 3, (40, 2)).clip(-reach, reach)
    here, goal = towns[rng.integers(40, size=(2, vehicles))]
    waits = np.zeros(vehicles, dtype=np.int64)
    track = np.empty((steps, vehicles, 2))
    for step in range(steps):
        apart = goal - here
        # Along the streets: one direction first, then the other.
        first = np.abs(apart[:, 0]) > 1
        along = np.where(np.stack([first, ~first], axis=1), apart, 0.0)
        speed = rng.uniform(150, 700, vehicles)
        moves = waits == 0
        here = here + moves[:, None] * np.clip(along, -speed[:, None], speed[:, None])
        waits = np.maximum(waits - 1, 0)
        arrived = moves & (np.abs(goal - here).sum(axis=1) < 2)
        waits[arrived] = rng.integers(1, 25, int(arrived.sum()))
        places = towns[rng.integers(40, size=int(arrived.sum()))]
        goal[arrived] = (places + rng.normal(0, reach / 15, places.shape)).clip(-reach, reach)
        track[step] = here + rng.normal(0, 15, here.shape)
    return track


def lose(vehicles: int, steps: int, seed: int) -> IntArray:
    """(steps, vehicles) whether a fix was heard: no signal now and then, nothing at night."""
    rng = np.random.default_rng(seed)
    heard = np.ones((steps, vehicles), dtype=bool)
    for vehicle in range(vehicles):
        for begin in np.flatnonzero(rng.random(steps) < 1 / 90):
            heard[begin : begin + rng.integers(5, 30), vehicle] = False
        for begin in range(int(rng.integers(0, 1440)), steps, 1440):
            heard[begin : begin + rng.integers(240, 420), vehicle] = False
    return heard


def write_cabs(folder: Path, vehicles: int, fixes: int, seed: int) -> int:
    """Write so many fixes, or a few more, of some vehicles, a file each; how many it were."""
    folder.mkdir(parents=True)
    steps = int(fixes / vehicles * 1.75) + 1
    track, heard = drive(vehicles, steps, seed), lose(vehicles, steps, seed)
    east = METRES * np.cos(np.radians(MIDDLE[0]))
    count = 0
    for vehicle in range(vehicles):
        times = np.flatnonzero(heard[:, vehicle])[: -(-fixes // vehicles)]
        places = track[times, vehicle]
        rows = zip(
            (MIDDLE[0] + places[:, 1] / METRES).tolist(),
            (MIDDLE[1] + places[:, 0] / east).tolist(),
            (BEGAN + PACE * times).tolist(),
            strict=True,
        )
        lines = [f"{a:.5f} {b:.5f} {t // 600 % 2} {t}\n" for a, b, t in rows]
        name = f"new_{seed}_{vehicle:03}.txt"
        (folder / name).write_text("".join(reversed(lines)), encoding="utf-8")
        count += len(lines)
    return count
