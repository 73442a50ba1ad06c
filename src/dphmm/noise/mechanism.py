"""Exact noise on the lattice: sample, log-probability, error.

P(z | s) is proportional to exp(-epsilon ||z - f(s)||_K) over the lattice points z of
f(s) + span K, or, for a staircase, with that norm rounded up (`noise.staircase`). The
normaliser is the same for every state, so on an edge the ratio is at most e^epsilon, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import exp, expm1, factorial, log, log1p
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import FloatArray, ObjectArray
from dphmm.errors import ArgumentError, expect, expect_one_of
from dphmm.geometry.exact import Exact, as_epsilon, as_text, whole
from dphmm.geometry.hull import SensitivityHull, check_body
from dphmm.geometry.lattice import largest
from dphmm.geometry.query import LATTICE_LIMIT, Query
from dphmm.geometry.shapes import enlarge
from dphmm.geometry.states import as_array, possible_mask, state_number
from dphmm.noise.choice import sampler_of
from dphmm.noise.cones import MAX_SUMMED, fan_of
from dphmm.noise.drawing import Sampler
from dphmm.noise.randomness import Randomness, SecureRandomness
from dphmm.noise.staircase import as_gamma, radial_sum

__all__ = ["Mechanism", "body_for"]

REACH = 1000
"""Answers further out than this many hulls go the plain way, which has no limit."""

BLOCK = 2**15
"""Answers drawn together; their words take 13 MB."""


INT64, BOOLEAN = np.dtype(np.int64), np.dtype(np.bool_)

MECHANISMS = ("knorm", "staircase", "laplace", "isotropic")
SHAPES = ("hull", "enlarged", "l1")


def body_for(
    mechanism: str, shape: str = "hull"
) -> Callable[[SensitivityHull], SensitivityHull] | None:
    """What a mechanism's name makes of the policy's hull; None leaves it as it is.

    `isotropic` is K-norm noise under another name: transforming K and back changes nothing.
    `laplace` is K-norm noise from the cross-polytope, `shape` "l1".

    Args:
        mechanism: "knorm" (the paper's), "staircase", "laplace" or "isotropic".
        shape: "hull", "enlarged" for a larger body with a smaller error, or "l1".
    """
    if isinstance(mechanism, str) and mechanism == "reference_knorm":
        raise ArgumentError(
            f"mechanism must be one of {', '.join(MECHANISMS)}, got 'reference_knorm', which is "
            "for tests and plots: the last bits of its floats tell linked states apart"
        )
    expect_one_of(mechanism, MECHANISMS, "mechanism")
    expect_one_of(shape, SHAPES, "shape")
    if mechanism == "laplace" and shape == "enlarged":
        raise ArgumentError("shape 'enlarged' must go with knorm or staircase, got laplace")
    if shape == "enlarged":
        return enlarge
    return SensitivityHull.l1_ball if shape == "l1" or mechanism == "laplace" else None


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Mechanism:
    """K-norm or staircase noise for one query, one body and one epsilon.

    Args:
        query: What is asked: the answer of every state.
        body: The body that shapes the noise, on the lattice of the query. It keeps the promise of
            every edge whose difference it contains.
        epsilon: What an answer costs between two linked states; 0.1 and "0.1" are both a tenth.
        gamma: Between 0 and 1 for staircase noise, whose first step ends there (see
            `best_gamma`); None for K-norm noise.

    >>> query = Query([[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]])
    >>> mechanism = Mechanism(query, SensitivityHull.from_vertices([[1, -1], [4, 1]]), 1)
    >>> answer = mechanism.sample_lattice(1)
    >>> answer.dtype, answer.shape
    (dtype('int64'), (2,))
    """

    query: Query
    body: SensitivityHull
    epsilon: Fraction
    gamma: Fraction | None

    def __init__(
        self, query: Query, body: SensitivityHull, epsilon: Exact, gamma: Exact | None = None
    ) -> None:
        check_body(body, query, "body")
        law = as_epsilon(epsilon), as_gamma(gamma)
        for name, value in zip(
            ("query", "body", "epsilon", "gamma"), (query, body, *law), strict=True
        ):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        steps = "" if self.gamma is None else f", gamma={as_text(self.gamma)}"
        return f"Mechanism({self.query!r}, {self.body!r}, epsilon={as_text(self.epsilon)}{steps})"

    def sample_lattice(
        self,
        state: int,
        randomness: Randomness | None = None,
        context: tuple[bytes, ...] = (),
        possible: ArrayLike | None = None,
    ) -> ObjectArray:
        """The lattice answer for a state: this is where a true state meets noise.

        A state that is not possible is answered as the possible one with the nearest answer.

        Args:
            state: The true state, which nothing else here ever sees.
            randomness: Where the random words come from; by default the operating system's secure
                source.
            context: What names the answer for keyed noise: the same names, law and state give the
                same answer.
            possible: A mask over the states, or the numbers of the possible ones; all are by
                default.
        """
        points = self.query.points
        state = state_number(state, len(points))
        if possible is not None and not _is_possible(possible, state, len(points)):
            state = int(self.query.nearest_states([state], possible)[0])
        source = _source(randomness)
        if not isinstance(context, tuple) or not all(isinstance(name, bytes) for name in context):
            raise ArgumentError(f"context must be a tuple of bytes, got {context!r}")
        sampler = self.sampler  # checks the body before anything is drawn
        words = source.words((*context, *self.law), state)
        answer = sampler.draw(self.epsilon, words, points[state : state + 1])
        return answer if answer.dtype == INT64 else lattice_vector(answer)

    def sample_lattice_many(
        self, state: int, size: int, randomness: Randomness | None = None
    ) -> ObjectArray:
        """Independent lattice answers for one state, drawn on all cores: (size, d).

        For experiments and audits, whose answers go to nobody. Under a key the answers are
        those of `sample` with the numbers 0, 1, 2, ... as contexts.

        Args:
            state: The state that is answered.
            size: How many answers.
            randomness: Where the random words come from; by default the operating system's secure
                source.

        >>> query = Query([[0], [3]])
        >>> mechanism = Mechanism(query, SensitivityHull.from_vertices([[3]]), 1)
        >>> mechanism.sample_lattice_many(1, 1000).shape
        (1000, 1)
        """
        state_number(state, self.query.n_states)
        whole(size, "size")
        source = _source(randomness)
        parts = [np.empty((0, self.query.dimension), dtype=np.int64)]
        for first in range(0, size, BLOCK):
            names = _Numbered(range(first, min(first + BLOCK, size)))
            states = np.full(len(names), state)
            noise = self.sampler.draw_many(self.epsilon, source, names, self.law, states)
            parts.append(self.query.points[state].astype(noise.dtype) + noise)
        return lattice_vector(np.concatenate(parts))

    @cached_property
    def sampler(self) -> Sampler:
        """What draws the noise: cones, an envelope or layers, by a public rule (`sampler_of`)."""
        return sampler_of(self.body, self.epsilon, self.gamma)

    @cached_property
    def law(self) -> tuple[bytes, ...]:
        """All that decides the distribution of an answer, for keyed noise."""
        steps = () if self.gamma is None else (f"staircase {self.gamma}".encode(),)
        return (self.query.digest, self.body.digest, str(self.epsilon).encode(), *steps)

    def lattice_log_likelihood(self, lattice: ArrayLike) -> FloatArray:
        """-epsilon ||z - f(s)||_K for every state: its log-probability but for one constant.

        With the norm rounded up, in integers, for a staircase. Minus infinity exactly where the
        answer lies outside the state's span.

        Args:
            lattice: One answer in steps of the lattice; `query.on_lattice` makes it of one in
                units.
        """
        answer = lattice_vector(lattice)
        if answer.shape != (self.query.dimension,):
            raise ArgumentError(
                f"lattice must have {self.query.dimension} entries, got shape {answer.shape}"
            )
        apart = answer - self.query.points
        if self.gamma is None:
            norms = self.body.lattice_norms(apart)
        else:
            norms = self.body.lattice_layers(apart, self.gamma)
        return np.multiply(norms, -float(self.epsilon), out=norms)

    @cached_property
    def facets(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray] | None:
        """Points as columns, normals and offsets as floats, if those hold every product.

        The last are the heights that are free in a staircase, none for K-norm noise. None when
        the body is flat or huge: the exact span test and big integers are then needed, and
        `log_likelihood` has them.
        """
        body, rank = self.body.body, self.body.rank
        furthest = 2 * self.query.reach + REACH * largest(body.corners)
        if rank < self.query.dimension or rank * largest(body.normals) * furthest >= 2**53:
            return None
        free = np.zeros(0) if self.gamma is None else body.free_heights(self.gamma)
        normals, offsets, free = (a.astype(np.float64) for a in (body.normals, body.offsets, free))
        return self.query.columns, normals, offsets, free

    @cached_property
    def rate(self) -> float:
        """Epsilon as a float, for beliefs."""
        return float(self.epsilon)

    @cached_property
    def furthest(self) -> int:
        """The largest coordinate of an answer for which `facets` serve; -1 if for none."""
        if self.facets is None:
            return -1
        return self.query.reach + REACH * largest(self.body.body.corners)

    def lattice_log_probability(self, lattice: ArrayLike) -> FloatArray:
        """The logarithm of P(lattice | s) for every state.

        Args:
            lattice: One answer in steps of the lattice; `query.on_lattice` makes it of one in
                units.
        """
        return self.lattice_log_likelihood(lattice) - self.log_normalizer

    @cached_property
    def log_normalizer(self) -> float:
        """log of the sum of exp(-epsilon ||x||_K), or of its staircase, over the span's lattice."""
        return self._moments[0]

    @cached_property
    def mean_squared_error(self) -> float:
        """E|z - f(s)|^2 in the units of the query, summed over the lattice.

        Above 2**25 cosets, where the lattice is a millionth of the hull, the continuous
        formula stands in.
        """
        return self._moments[1] * float(self.query.step) ** 2

    @cached_property
    def _moments(self) -> tuple[float, float]:
        body, rank = self.body, self.body.rank
        if rank == 0:
            return 0.0, 0.0
        epsilon = float(self.epsilon)
        total = sum(body.determinants)
        if total > MAX_SUMMED:
            error = float(body.mean_squared_error(self.epsilon) / body.step**2)
            if self.gamma is None:
                return log(total) - rank * log(epsilon), error
            # Both laws are uniform on spheres of the norm: only its moments differ.
            mass, second = (radial_sum(rank + i, self.gamma, epsilon) for i in (0, 2))
            volume = log(total) - log(factorial(rank))
            error *= epsilon**2 / ((rank + 1) * (rank + 2)) * second / mass
            return volume + log(-expm1(-epsilon) * mass), error
        mass, second = fan_of(body, self.gamma).sums(epsilon)
        return log(mass) - rank * log1p(-exp(-epsilon)), second / mass


@dataclass(frozen=True)
class _Numbered(Sequence[bytes]):
    """The names b"0", b"1", ..., written only when somebody reads them."""

    numbers: range

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, number: Any) -> Any:
        return b"%d" % self.numbers[number]

    def __iter__(self) -> Iterator[bytes]:
        # All at once: a generator, resumed between two hashes, takes a twelfth of a keyed answer.
        return iter([b"%d" % number for number in self.numbers])


def _is_possible(possible: ArrayLike, state: int, n_states: int) -> bool:
    """Whether a state is in a mask, or among the numbers, of the possible ones."""
    # A mask that holds the state is not empty: the rest of what is checked is about others.
    if (
        isinstance(possible, np.ndarray)
        and possible.dtype == BOOLEAN
        and possible.shape == (n_states,)
        and possible[state]
    ):
        return True
    return bool(possible_mask(possible, n_states)[state])


def _source(randomness: Randomness | None) -> Randomness:
    if randomness is None:
        return SecureRandomness()
    expect(randomness, Randomness, "randomness")
    return randomness


def read_lattice(given: ArrayLike, query: Query) -> ObjectArray:
    """An answer that was given before, if it has the coordinates of a query."""
    said = lattice_vector(given)
    if said.shape != (query.dimension,):
        raise ArgumentError(
            f"lattice must have {query.dimension} coordinates, got shape {said.shape}"
        )
    return said


def lattice_vector(entries: ArrayLike) -> ObjectArray:
    """Integers as an array: 64-bit if their differences from a query's points fit, else Python's.

    NumPy left alone would make floats of integers beyond 63 bits.
    """
    vector = as_array(entries, "lattice")
    if vector.dtype == INT64:
        return vector if largest(vector) < LATTICE_LIMIT else vector.astype(object)
    vector = np.array(entries, dtype=object)
    kinds = (int, np.integer)
    if not all(isinstance(x, kinds) and not isinstance(x, bool) for x in vector.flat):
        raise ArgumentError(
            f"lattice must be integers that count steps, got {np.asarray(entries).dtype}; "
            f"query.on_lattice makes them of answers"
        )
    return vector.astype(np.int64) if largest(vector) < LATTICE_LIMIT else vector
