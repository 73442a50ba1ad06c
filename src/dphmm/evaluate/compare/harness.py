"""One mechanism on some paths: what a reader gets, an adversary gets, and it cost. Private."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.chain.belief import Belief
from dphmm.chain.chain import Chain
from dphmm.errors import ArgumentError
from dphmm.evaluate.compare.contender import Contender, Told
from dphmm.evaluate.compare.identity import own_ranks
from dphmm.evaluate.compare.reading import filter_rows, likelihoods, looks, read
from dphmm.evaluate.compare.world import World
from dphmm.evaluate.metrics import distances

__all__ = ["LAG", "Outcome", "Seen", "compare", "error_so_far", "see"]

LAG = 10
"""How many steps later the late estimate comes."""


@dataclass(frozen=True, eq=False)
class Seen:
    """How close beliefs come to the truth: (k, steps) each. Private."""

    error: FloatArray = field(repr=False)
    """The distance of the best guess."""
    expected: FloatArray = field(repr=False)
    """The expected distance of the belief, not of its best guess (Shokri et al. 2011)."""
    within: FloatArray = field(repr=False)
    """The belief's mass up to the policy's radius from the truth."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one mechanism gave on some paths: a number a person each. Private: of true places."""

    name: str
    knobs: str
    budget: str
    promise: str
    raw: FloatArray = field(repr=False)
    """The mean error of what a map without a reader shows."""
    filtered: FloatArray = field(repr=False)
    """The mean error of the best guess from all that was told so far."""
    lagged: FloatArray = field(repr=False)
    """The same from what was told until some steps later."""
    hindsight: FloatArray = field(repr=False)
    """The same from all that was told: an adversary's, who knows how other people move."""
    expected: FloatArray = field(repr=False)
    """That adversary's expected distance."""
    within: FloatArray = field(repr=False)
    """The mass of that adversary's belief up to the policy's radius from the truth."""
    own: FloatArray = field(repr=False)
    """The error of an adversary in hindsight who also knows the person's own past."""
    own_within: FloatArray = field(repr=False)
    """The mass of that adversary's belief within the radius."""
    rank: FloatArray = field(repr=False)
    """How many suspects explain a path without a name better than its owner."""
    spent: dict[str, float]
    """Of the dearest path: at an instant, in the budget's steps; and a step, on average."""


def see(world: World, beliefs: FloatArray, paths: IntArray) -> Seen:
    """How close the beliefs, (steps, k, n), come to the true places, (k, steps). Private."""
    people, steps = paths.shape
    error, expected, within = np.empty((3, people, steps))
    near = world.apart <= float(world.radius) + 1e-6
    for step in range(steps):
        truth = paths[:, step]
        cost = beliefs[step] @ world.apart
        error[:, step] = world.apart[truth, cost.argmin(axis=1)]
        expected[:, step] = cost[np.arange(people), truth]
        within[:, step] = (beliefs[step] * near[truth]).sum(axis=1)
    return Seen(error, expected, within)


def compare(
    contender: Contender,
    paths: IntArray,
    rng: np.random.Generator,
    *,
    lag: int | None = LAG,
    own: Sequence[tuple[Chain, Belief]] | None = None,
    suspects: Sequence[tuple[Chain, Belief]] | None = None,
) -> Outcome:
    """Release the paths with a mechanism and read them with the world's chain.

    Args:
        contender: The mechanism.
        paths: (k, steps) true places.
        rng: Of the noise.
        lag: Steps that the late estimate waits for; None for none, which takes less time.
        own: For each path a chain and a start that know the person's past, for the adversary.
        suspects: The same of everybody a path without a name may be of: the owner of the first
            path, of the second, and so on, again from the first when there are more paths.
    """
    paths = np.asarray(paths)
    if paths.ndim != 2 or not paths.size:
        raise ArgumentError(f"paths must be rows of places, got shape {paths.shape}")
    if paths.dtype.kind not in "iu" or paths.min() < 0 or paths.max() >= contender.world.size:
        raise ArgumentError(f"paths must be among the {contender.world.size} places")
    if own is not None and len(own) != len(paths):
        raise ArgumentError(f"own must have a chain for each of {len(paths)} paths, got {len(own)}")
    if suspects is not None and (not suspects or len(paths) % len(suspects)):
        raise ArgumentError(
            f"suspects must divide the {len(paths)} paths among them, got {len(suspects)}"
        )
    world = contender.world
    told = contender.release(paths, rng)
    rows, at = likelihoods(told), looks(paths.shape[1])
    there = paths[:, at]
    beliefs = read(rows, world.chain, world.start, len(paths), lag, at)
    hindsight = see(world, beliefs.hindsight, there)
    late = beliefs.lagged
    unknown = np.full(len(paths), np.nan)
    mine, mine_within = unknown, unknown
    if own is not None:
        mine, mine_within = _with_own_past(world, rows, own, paths)
    return Outcome(
        name=contender.name,
        knobs=contender.knobs,
        budget=contender.budget.words,
        promise=contender.promise,
        raw=distances(told.shown, world.places[paths]).mean(axis=1),
        filtered=see(world, beliefs.filtered, there).error.mean(axis=1),
        lagged=unknown if late is None else see(world, late, there).error.mean(axis=1),
        hindsight=hindsight.error.mean(axis=1),
        expected=hindsight.expected.mean(axis=1),
        within=hindsight.within.mean(axis=1),
        own=mine,
        own_within=mine_within,
        rank=unknown if suspects is None else own_ranks(rows, suspects, len(paths)),
        spent=spending(contender, told),
    )


def error_so_far(contender: Contender, paths: IntArray, rng: np.random.Generator) -> float:
    """The mean error of the best guess so far: for choosing settings."""
    world, at = contender.world, looks(paths.shape[1])
    rows = likelihoods(contender.release(paths, rng))
    beliefs = filter_rows(rows, world.chain, world.start, len(paths), at)
    return float(see(world, beliefs, paths[:, at]).error.mean())


def spending(contender: Contender, told: Told) -> dict[str, float]:
    """What the dearest path cost at an instant and in the budget's steps, and a step on average."""
    return {
        "instant": told.most_in(1),
        "window": told.most_in(contender.budget.steps),
        "step": float(told.spent.mean()),
    }


def _with_own_past(
    world: World,
    rows: list[FloatArray | None],
    own: Sequence[tuple[Chain, Belief]],
    paths: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """The errors and masses of an adversary with each person's own chain."""
    errors, masses = np.empty((2, len(paths)))
    at = looks(paths.shape[1])
    # Several draws of one path are read together.
    alike: dict[int, list[int]] = {}
    for place, known in enumerate(own):
        alike.setdefault(id(known), []).append(place)
    for places in alike.values():
        chain, start = own[places[0]]
        mine = [None if row is None else row[:, places] for row in rows]
        beliefs = read(mine, chain, start, len(places), at=at).hindsight
        seen = see(world, beliefs, paths[places][:, at])
        errors[places], masses[places] = seen.error.mean(axis=1), seen.within.mean(axis=1)
    return errors, masses
