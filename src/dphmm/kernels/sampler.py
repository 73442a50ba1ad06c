"""Cone noise on the lattice, word for word that of `noise.cones`, in one or two words a number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphmm._types import IntArray, Mask
from dphmm.kernels import gauge, wide
from dphmm.kernels.coins import below, bernoulli_exp, geometric, wide_bernoulli_exp
from dphmm.kernels.compiling import kernel


@kernel(lambda words, *rest: 1000 * len(words), nogil=True)
def draw_many(
    words: IntArray,
    edges: IntArray,
    volumes: IntArray,
    inverses: IntArray,
    strict: Mask,
    generators: IntArray,
    free: IntArray,
    p: int,
    q: int,
    reach: int,
    places: IntArray,
    done: Mask,
) -> None:
    """Add a noise vector to every row of places, and say which are done.

    The others need Python integers: places must be below 2**62, and so must be where noise leads.

    Cones come as arrays: cumulated volumes, volumes, adjugates modulo the volume, strict
    sides, and generators in the query's own coordinates. `free` is empty, or of staircase noise
    what `gauge.layer` asks for. `reach` bounds the multiples m.
    """
    cursor = np.empty(1, dtype=np.int64)
    layer = np.empty(inverses.shape[1], dtype=np.int64)
    x = np.empty(inverses.shape[1], dtype=np.int64)
    for row in range(len(words)):
        cursor[0] = 0
        cone = _draw(
            words[row], edges, volumes, inverses, strict, generators, free, p, q, places[row],
            cursor, layer, x,
        )  # fmt: skip
        _add_multiples(words[row], generators[cone], p, q, reach, places[row], cursor)
        done[row] = cursor[0] >= 0 and gauge.is_narrow(places, row)


@kernel(nogil=True)
def wide_draw_many(
    words: IntArray,
    edges: IntArray,
    volumes: NDArray[np.uint64],
    inverses: NDArray[np.uint64],
    strict: Mask,
    generators: IntArray,
    free: IntArray,
    p: int,
    q: int,
    reach: int,
    places: IntArray,
    done: Mask,
) -> None:
    """`draw_many` for cones whose products need two words; volumes and inverses are unsigned."""
    cursor = np.empty(1, dtype=np.int64)
    layer = np.empty(inverses.shape[1], dtype=np.uint64)
    x = np.empty(inverses.shape[1], dtype=np.uint64)
    for row in range(len(words)):
        cursor[0] = 0
        cone = _wide_draw(
            words[row], edges, volumes, inverses, strict, generators, free, np.uint64(p),
            np.uint64(q), places[row], cursor, layer, x,
        )  # fmt: skip
        _add_multiples(words[row], generators[cone], p, q, reach, places[row], cursor)
        done[row] = cursor[0] >= 0 and gauge.is_narrow(places, row)


@kernel()
def _draw(
    words: IntArray,
    edges: IntArray,
    volumes: IntArray,
    inverses: IntArray,
    strict: Mask,
    generators: IntArray,
    free: IntArray,
    p: int,
    q: int,
    place: IntArray,
    cursor: IntArray,
    layer: IntArray,
    x: IntArray,
) -> int:
    """Add an accepted point of a cell; the number of its cone."""
    rank = len(layer)
    while True:
        cone = gauge.first_above(edges, below(edges[-1], words, cursor))
        volume = volumes[cone]
        for j in range(rank):
            x[j] = below(volume, words, cursor)
        total = np.int64(0)
        for j in range(rank):
            n = np.int64(0)
            for i in range(rank):
                n = (n + x[i] * inverses[cone, i, j]) % volume
            if strict[cone, j] and n == 0:
                n = volume
            layer[j] = n
            total += n
        height, size = total, volume
        if len(free):
            height, size = gauge.layer(total, free[cone], volume), np.int64(1)
        if bernoulli_exp(p * height, q * size, words, cursor):
            break
    for axis in range(len(place)):
        part = np.int64(0)
        for j in range(rank):
            part += layer[j] * generators[cone, j, axis]
        place[axis] += part // volume
    return int(cone)


@kernel()
def _wide_draw(
    words: IntArray,
    edges: IntArray,
    volumes: NDArray[np.uint64],
    inverses: NDArray[np.uint64],
    strict: Mask,
    generators: IntArray,
    free: IntArray,
    p: wide.Word,
    q: wide.Word,
    place: IntArray,
    cursor: IntArray,
    layer: NDArray[np.uint64],
    x: NDArray[np.uint64],
) -> int:
    """`_draw` with two words a number."""
    rank = len(layer)
    while True:
        cone = gauge.first_above(edges, below(edges[-1], words, cursor))
        volume = volumes[cone]
        for j in range(rank):
            x[j] = np.uint64(below(np.int64(volume), words, cursor))
        total = wide.ZERO
        for j in range(rank):
            wrapped = (wide.ZERO, wide.ZERO)
            for i in range(rank):
                wrapped = wide.plus(wrapped, wide.product(x[i], inverses[cone, i, j]))
            n = wide.divide((wrapped[0] % volume, wrapped[1]), volume)[1]
            if strict[cone, j] and n == wide.ZERO:
                n = volume
            layer[j] = n
            total += n
        height, size = total, volume
        if len(free):
            layers = gauge.layer(np.int64(total), free[cone], np.int64(volume))
            height, size = np.uint64(layers), wide.ONE
        if wide_bernoulli_exp(wide.product(p, height), wide.product(q, size), words, cursor):
            break
    for axis in range(len(place)):
        up, down = (wide.ZERO, wide.ZERO), (wide.ZERO, wide.ZERO)
        for j in range(rank):
            entry = generators[cone, j, axis]
            part = wide.product(layer[j], np.uint64(abs(entry)))
            if entry > 0:
                up = wide.plus(up, part)
            else:
                down = wide.plus(down, part)
        if wide.is_less(up, down):
            place[axis] -= np.int64(wide.divide(wide.minus(down, up), volume)[0])
        else:
            place[axis] += np.int64(wide.divide(wide.minus(up, down), volume)[0])
    return int(cone)


@kernel()
def _add_multiples(
    words: IntArray,
    generators: IntArray,
    p: int,
    q: int,
    reach: int,
    place: IntArray,
    cursor: IntArray,
) -> None:
    """Add a geometric number of each corner of a cone, each at most `reach`."""
    for j in range(len(generators)):
        m = geometric(p, q, words, cursor)
        if m > reach:
            cursor[0] = -1
            m = np.int64(0)
        for axis in range(len(place)):
            place[axis] += m * generators[j, axis]
