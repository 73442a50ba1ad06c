"""What an answer's noise tells of two states, over blocks of lattice points.

A cone's points have coordinates c = n / volume + m with whole multiples m (see
`dphmm.noise.cones`). Going out along a generator never raises the loss, so the lowest corner
of a block of coordinates bounds the loss of all its points.
"""

from __future__ import annotations

import numpy as np

from dphmm._types import FloatArray, IntArray, Mask
from dphmm.kernels.compiling import kernel
from dphmm.kernels.gauge import first_above, layer

SLACK = 1e-14
"""More than the rounding of a norm, as a part of what it is made of."""


@kernel(nogil=True)
def cell_masses(
    diagonal: IntArray,
    inverse: IntArray,
    volume: int,
    strict: Mask,
    free: int,
    edges: IntArray,
    layers: int,
    epsilon: float,
) -> FloatArray:
    """The weights of a cell's points, by block of coordinates and by norm within the block.

    Block b of an axis begins at n = edges[b], one further on a strict side; blocks are numbered
    with the first axis slowest.
    A weight is exp(-epsilon norm), or exp(-epsilon layer) where `free` is not negative: the
    largest n up to which a staircase's first layer goes. The other arguments are those of
    `cells.moments`.
    """
    rank, bins = len(diagonal), len(edges) - 1
    masses = np.zeros((bins**rank, layers))
    x = np.zeros(rank, dtype=np.int64)
    for _ in range(volume):
        total, low, wide, place = np.int64(0), np.int64(0), np.int64(1), np.int64(0)
        for j in range(rank):
            n = np.int64(0)
            for i in range(rank):
                n = (n + x[i] * inverse[i, j]) % volume
            if strict[j] and n == 0:
                n = np.int64(volume)
            block = first_above(edges, n - strict[j]) - 1
            total += n
            low += edges[block] + strict[j]
            wide += edges[block + 1] - edges[block] - 1
            place = place * bins + block
        level = total / volume
        if free >= 0:
            level = np.float64(layer(total, np.int64(free), np.int64(volume)))
        masses[place, (total - low) * layers // wide] += np.exp(-epsilon * level)
        axis = 0
        while axis < rank:
            x[axis] += 1
            if x[axis] < diagonal[axis]:
                break
            x[axis] = 0
            axis += 1
    return masses


@kernel(nogil=True)
def tabulate(
    masses: FloatArray,
    edges: IntArray,
    strict: Mask,
    volume: int,
    generators: FloatArray,
    shift: FloatArray,
    starts: IntArray,
    weights: FloatArray,
    extra: float,
    epsilon: float,
    gamma: float,
    grain: float,
    table: FloatArray,
) -> None:
    """Add one cone's blocks to a table of losses from -epsilon to epsilon, pessimistically.

    `masses`, `edges`, `strict` and `volume` are those of the cell. `generators` and `shift` hold
    the facets' heights, over their offsets, at the generators and at the difference; `starts`
    the first multiple of each range of multiples and `weights` the ranges' weights. `extra` is
    added to every norm. `gamma` is that of a staircase, or negative, and norms less gamma are
    multiples of `grain`, so that a float within half a grain of a whole number is that number.
    """
    facets, rank = generators.shape
    bins, ranges, layers = len(edges) - 1, len(starts), masses.shape[1]
    half = len(table) // 2
    reach = 0.0
    for f in range(facets):
        reach = max(reach, abs(shift[f]))
    reach = min(reach + extra, 1.0)
    corner = np.empty(rank)
    for block in range(bins**rank):
        weighs = False
        for part in range(layers):
            weighs |= masses[block, part] != 0.0
        if not weighs:
            continue
        for many in range(ranges**rank):
            place, left = block, many
            low, wide, multiples, weight = np.int64(0), np.int64(1), np.int64(0), 1.0
            for j in range(rank - 1, -1, -1):
                bin_, range_ = place % bins, left % ranges
                place //= bins
                left //= ranges
                weight *= weights[range_]
                begin = edges[bin_] + strict[j]
                corner[j] = begin / volume + starts[range_]
                low += begin
                wide += edges[bin_ + 1] - edges[bin_] - 1
                multiples += starts[range_]
            norm = 0.0
            for f in range(facets):
                height = shift[f]
                for j in range(rank):
                    height += corner[j] * generators[f, j]
                norm = max(norm, abs(height))
            here = low / volume + multiples
            apart = min(norm + extra - here + SLACK * (1 + rank * here), reach)
            if gamma < 0:
                _add(table, half, apart, masses[block, 0] * weight, epsilon)
                continue
            for part in range(layers):
                least = here + -(-part * wide // layers) / volume - SLACK * (1 + here)
                most = here + (-(-(part + 1) * wide // layers) - 1) / volume
                most += apart + SLACK * (1 + here)
                if grain > 1e6 * SLACK * (1 + here) and extra == 0:
                    most -= grain / 2
                told = max(np.ceil(most - gamma), 0.0) - max(np.ceil(least - gamma), 0.0)
                told = min(max(told, -1.0), 1.0)
                table[half + half * int(told)] += masses[block, part] * weight


@kernel(nogil=True)
def _add(table: FloatArray, half: int, apart: float, mass: float, epsilon: float) -> None:
    """Add a mass to the two entries around its loss so that it weighs as much in both states.

    So the table tells at least as much ("connect the dots", Doroshenko et al. 2022).
    """
    entry = max(min(int(np.floor((apart + 1) * half)), 2 * half - 1), 0)
    over = max((apart - (entry - half) / half) * epsilon, 0.0)
    up = min(mass * np.expm1(-over) / np.expm1(-epsilon / half), mass)
    table[entry + 1] += up
    table[entry] += mass - up
