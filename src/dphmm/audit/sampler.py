"""What can be audited: a claim, the answers without noise, and a way to draw answers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphmm._types import FloatArray, IntArray
from dphmm.errors import ArgumentError, expect
from dphmm.geometry.exact import Exact, as_epsilon, whole
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.states import as_array
from dphmm.noise.mechanism import Mechanism
from dphmm.noise.randomness import Randomness
from dphmm.noise.staircase import as_gamma

__all__ = [
    "Answers",
    "GivenSampler",
    "MechanismSampler",
    "Sampler",
    "checked",
    "drawn",
    "load",
    "maker_of",
]

CLAIM = ("claimed", "points", "edges")

Answers: TypeAlias = NDArray[Any]
"""(size, d) integers or floats."""


@runtime_checkable
class Sampler(Protocol):
    """Somebody's mechanism: this much is enough to hold it against its claim.

    Five more attributes make the audit sharper. `lattice = True` says that every answer is
    a vector of integers. `log_probability(answer)` gives the claimed log-probability of one
    answer in every state. `body`, a `SensitivityHull`, says that the noise is claimed to be
    exact K-norm noise from it, or, with `gamma`, staircase noise. `moments = n` says that a
    "state" is a path, and that a row holds the n answers given along it, one after the other.
    """

    @property
    def claimed(self) -> Exact | Sequence[Exact]:
        """The epsilon that is claimed between the two states of every edge, or one an edge."""

    @property
    def points(self) -> ArrayLike:
        """(n_states, d) the answer of each state without noise."""

    @property
    def edges(self) -> ArrayLike:
        """(m, 2) the pairs of states that the claim is about."""

    def sample(self, state: int, size: int) -> ArrayLike:
        """(size, d) independent noisy answers of one state."""


@dataclass(frozen=True, eq=False)
class MechanismSampler:
    """One of our own mechanisms, with the edges that it is claimed for."""

    mechanism: Mechanism
    edges: IntArray
    claimed: Fraction
    randomness: Randomness | None = None
    lattice: bool = True

    @property
    def points(self) -> IntArray:
        """The lattice points of the states."""
        return self.mechanism.query.points

    @property
    def body(self) -> SensitivityHull:
        """The body of the noise."""
        return self.mechanism.body

    @property
    def gamma(self) -> Fraction | None:
        """That of staircase noise."""
        return self.mechanism.gamma

    def sample(self, state: int, size: int) -> Answers:
        """Lattice answers."""
        return self.mechanism.sample_lattice_many(state, size, self.randomness)


@dataclass(frozen=True, eq=False)
class GivenSampler:
    """A function `sample(state, size)`, with what is claimed for it."""

    sample: Callable[[int, int], ArrayLike]
    claimed: Exact | Sequence[Exact]
    points: ArrayLike
    edges: ArrayLike
    moments: int = 1
    lattice: bool = False


@dataclass(frozen=True, eq=False)
class Checked:
    """A sampler's claim, read once."""

    sampler: Sampler
    epsilon: Fraction
    """The largest that is claimed for an edge."""
    points: Answers
    edges: IntArray
    lattice: bool
    body: SensitivityHull | None
    """Of the noise at each moment."""
    log_probability: Callable[[Answers], ArrayLike] | None
    moments: int
    limits: Mapping[tuple[int, int], Fraction]
    gamma: Fraction | None = None
    """Of staircase noise; None for K-norm noise."""

    @property
    def dimension(self) -> int:
        """Of the answer at one moment."""
        return int(self.points.shape[1]) // self.moments

    def limit(self, state: int, other: int) -> Fraction:
        """The epsilon that is claimed between two states, in either order."""
        return self.limits[min(state, other), max(state, other)]

    @cached_property
    def facets(self) -> FloatArray:
        """(d, facets) the linear functions whose largest absolute value is the norm in the span."""
        body = self.body
        assert body is not None
        inside = body.transform[:, : body.rank].astype(np.float64)
        offsets = body.body.offsets.astype(np.float64)[:, None]
        return np.asarray(inside @ (body.body.normals.astype(np.float64) / offsets).T)

    def norms(self, noise: Answers) -> FloatArray:
        """How far noise is in the body's norm."""
        assert self.body is not None
        if noise.dtype.kind == "f":
            return np.asarray(np.abs(noise @ self.facets).max(axis=1))
        return self.body.lattice_norms(noise)

    def exponents(self, noise: Answers) -> FloatArray:
        """By how many epsilons noise is less likely than none: its norm, or its layer."""
        if self.gamma is None or self.body is None:
            return self.norms(noise)
        if noise.dtype.kind == "f":
            return np.ceil(np.maximum(self.norms(noise) - float(self.gamma), 0))
        return self.body.lattice_layers(noise, self.gamma)


def checked(sampler: Sampler) -> Checked:
    """The claim of a sampler, or an error that says what it lacks."""
    if not isinstance(sampler, Sampler):
        raise ArgumentError(
            f"sampler must have claimed, points, edges and sample, got {type(sampler).__name__}"
        )
    points = as_array(sampler.points, "points")
    if points.ndim != 2 or points.dtype.kind not in "iuf":
        raise ArgumentError(f"points must be a table of numbers, got shape {points.shape}")
    if points.dtype.kind != "f":
        points = points.astype(np.int64)
    edges = as_array(sampler.edges, "edges")
    if edges.ndim != 2 or edges.shape[1:] != (2,) or not len(edges) or edges.dtype.kind not in "iu":
        raise ArgumentError(f"edges must be pairs of states, got shape {edges.shape}")
    if edges.min() < 0 or edges.max() >= len(points):
        raise ArgumentError(f"edges must join two of the {len(points)} states")
    moments = whole(getattr(sampler, "moments", 1), "moments", least=1)
    if points.shape[1] % moments:
        raise ArgumentError(f"moments must divide the {points.shape[1]} columns, got {moments}")
    body = getattr(sampler, "body", None)
    if body is not None and body.dimension * moments != points.shape[1]:
        raise ArgumentError(
            f"body must have the {points.shape[1] // moments} dimensions of the points, "
            f"got {body.dimension}"
        )
    lattice = getattr(sampler, "lattice", False)
    expect(lattice, bool, "lattice")
    limits = _limits(sampler.claimed, edges)
    return Checked(
        sampler,
        max(limits.values()),
        points,
        edges.astype(np.int64),
        lattice,
        body,
        getattr(sampler, "log_probability", None),
        moments,
        limits,
        as_gamma(getattr(sampler, "gamma", None)),
    )


def _limits(claimed: Exact | Sequence[Exact], edges: Answers) -> dict[tuple[int, int], Fraction]:
    """What is claimed for each edge: the least, if it is listed twice."""
    several = isinstance(claimed, (list, tuple)) or (
        isinstance(claimed, np.ndarray) and claimed.ndim > 0
    )
    each = list(claimed) if several else [claimed] * len(edges)  # type: ignore[arg-type]
    if len(each) != len(edges):
        raise ArgumentError(f"claimed must be one epsilon, or {len(edges)}, got {len(each)}")
    limits: dict[tuple[int, int], Fraction] = {}
    for (a, b), one in zip(edges.tolist(), each, strict=True):
        pair, epsilon = (min(a, b), max(a, b)), as_epsilon(one, "claimed")  # type: ignore[arg-type]
        limits[pair] = min(epsilon, limits.get(pair, epsilon))
    return limits


def drawn(claim: Checked, sampler: Sampler, state: int, size: int) -> Answers:
    """Answers of a state, whose shape and kind are checked and whose values are not."""
    answers = np.asarray(sampler.sample(state, size))
    if answers.dtype == object:
        answers = np.array(answers, dtype=np.float64)
    if answers.shape != (size, claim.points.shape[1]) or answers.dtype.kind not in "iuf":
        raise ArgumentError(
            f"sample must return {size} answers of {claim.points.shape[1]} numbers, "
            f"got {answers.dtype} of shape {answers.shape}"
        )
    return answers


def load(name: str) -> Callable[[], Sampler]:
    """What makes fresh samplers, from `module:object`; a module here or installed.

    The object is a class or function without arguments that returns a sampler; or a sampler,
    which then is its own only instance; or a function `sample(state, size)` with attributes
    `claimed`, `points` and `edges`.
    """
    module_name, colon, attribute = name.partition(":")
    if not colon or not module_name or not attribute:
        raise ArgumentError(f"mechanism must be module:object, got {name!r}")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        found = getattr(import_module(module_name), attribute)
    except (ImportError, AttributeError) as fault:
        raise ArgumentError(f"mechanism must be importable, got {name!r}: {fault}") from None
    finally:
        sys.path.remove(here)
    return maker_of(found, repr(name))


def maker_of(found: Any, name: str) -> Callable[[], Sampler]:
    """What makes fresh samplers, from a sampler, a callable that claims, or what makes one."""
    if isinstance(found, Sampler) and not isinstance(found, type):
        return lambda: found
    if not callable(found):
        raise ArgumentError(f"mechanism must be a sampler or make one, got {name}")
    if not isinstance(found, type) and all(hasattr(found, part) for part in CLAIM):
        lattice, moments = getattr(found, "lattice", False), getattr(found, "moments", 1)
        given = GivenSampler(
            found,
            found.claimed,
            found.points,
            found.edges,
            moments,
            lattice,
        )
        return lambda: given
    maker: Callable[[], Sampler] = found
    return maker
