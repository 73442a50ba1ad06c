"""Integer linear algebra in a few dimensions: spans, coordinates, determinants.

Everything is exact. Arrays are 64-bit where a bound shows that no product can overflow and
Python integers otherwise; callers see the same numbers either way.
"""

from __future__ import annotations

from math import gcd
from typing import Any

import numpy as np

from dphmm._types import IntArray, ObjectArray

FEW = 16
"""Numbers that Python compares sooner than NumPy."""

SAFE = 2**62
"""Sums of products below this are computed in 64 bits."""


def largest(array: ObjectArray) -> int:
    """The largest absolute value in an integer array, as a Python integer."""
    if array.size > FEW:
        return max(abs(int(array.max())), abs(int(array.min())))
    few = array.ravel().tolist()
    # The negative of NumPy's least number is no number of NumPy's.
    return max(int(max(few)), -int(min(few))) if few else 0


def exact_product(a: ObjectArray, b: ObjectArray) -> ObjectArray:
    """The matrix product, in 64 bits if no partial sum can overflow."""
    if a.shape[-1] * largest(a) * largest(b) < SAFE:
        return a.astype(np.int64) @ b.astype(np.int64)
    return a.astype(object) @ b.astype(object)


def span_transform(vectors: ObjectArray) -> tuple[int, IntArray]:
    """The rank k of some integer vectors and a unimodular U that straightens their span.

    The first k entries of `v @ U` are the coordinates of v in a basis of the lattice
    Z^d within the span, and v lies in the span exactly if the other entries are zero. U
    depends on the span alone, and is the identity when they span everything or nothing.
    """
    dimension = vectors.shape[1]
    basis = _echelon(vectors)
    rank = len(basis)
    if rank in (0, dimension):
        return rank, np.eye(dimension, dtype=np.int64)
    saturated = _inverse_unimodular(_straighten(basis, dimension))[:rank]
    transform = _straighten(hermite(saturated), dimension)
    return rank, transform


def row_labels(rows: ObjectArray) -> IntArray:
    """A number for each row, the same for equal rows."""
    if rows.dtype != object:
        labels: IntArray = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
        return labels
    seen: dict[tuple[int, ...], int] = {}
    return np.array([seen.setdefault(tuple(row), len(seen)) for row in rows], dtype=np.int64)


def determinant(matrix: list[list[int]]) -> int:
    """The determinant of a square integer matrix, by fraction-free elimination (Bareiss)."""
    rows = [list(map(int, row)) for row in matrix]
    size, sign, previous = len(rows), 1, 1
    for k in range(size - 1):
        if rows[k][k] == 0:
            swap = next((i for i in range(k + 1, size) if rows[i][k]), None)
            if swap is None:
                return 0
            rows[k], rows[swap], sign = rows[swap], rows[k], -sign
        for i in range(k + 1, size):
            for j in range(k + 1, size):
                rows[i][j] = (rows[i][j] * rows[k][k] - rows[i][k] * rows[k][j]) // previous
        previous = rows[k][k]
    return sign * rows[-1][-1] if rows else 1


def adjugate(matrix: list[list[int]]) -> list[list[int]]:
    """adj(V), with adj(V) V = det(V) I."""
    size = len(matrix)
    if size == 1:
        return [[1]]
    rows = [list(map(int, row)) for row in matrix]
    if size == 2:  # of every cone in the plane
        (a, b), (c, d) = rows
        return [[d, -b], [-c, a]]
    return [
        [
            (-1) ** (i + j)
            * determinant([row[:i] + row[i + 1 :] for k, row in enumerate(rows) if k != j])
            for j in range(size)
        ]
        for i in range(size)
    ]


def primitive(vector: list[int]) -> list[int]:
    """The vector divided by the greatest common divisor of its entries."""
    divisor = gcd(*vector)
    return [entry // divisor for entry in vector] if divisor > 1 else vector


def _echelon(vectors: ObjectArray) -> list[list[int]]:
    """Linearly independent rows that span the same rational space."""
    basis: list[list[int]] = []
    pivots: list[int] = []
    remaining = vectors
    while len(remaining) and len(basis) < vectors.shape[1]:
        nonzero = (remaining != 0).any(axis=1)
        remaining = remaining[nonzero]
        if not len(remaining):
            break
        row = primitive([int(x) for x in remaining[0]])
        pivot = next(i for i, entry in enumerate(row) if entry)
        basis.append(row)
        pivots.append(pivot)
        if len(basis) == vectors.shape[1]:
            break
        # row reduction of everything else: r -> row[pivot] * r - r[pivot] * row
        elimination = row[pivot] * np.eye(len(row), dtype=object)
        elimination[pivot] -= np.array(row, dtype=object)
        remaining = exact_product(remaining, elimination)
        if remaining.dtype == object:
            remaining = np.array([primitive(list(r)) for r in remaining], dtype=object)
    return basis


def _straighten(rows: list[list[int]] | Any, dimension: int) -> IntArray:
    """A unimodular U such that every row times U is zero beyond its own number."""
    transform = [[int(i == j) for j in range(dimension)] for i in range(dimension)]
    for k, row in enumerate(rows):
        image = [
            sum(int(row[i]) * transform[i][j] for i in range(dimension)) for j in range(dimension)
        ]
        for j in range(k + 1, dimension):
            while image[j]:
                quotient = image[k] // image[j]
                for column in transform:
                    column[k], column[j] = column[j], column[k] - quotient * column[j]
                image[k], image[j] = image[j], image[k] - quotient * image[j]
    return np.array(transform, dtype=object)


def _inverse_unimodular(transform: ObjectArray) -> list[list[int]]:
    rows = transform.tolist()
    sign = determinant(rows)
    return [[sign * entry for entry in row] for row in adjugate(rows)]


def hermite(basis: list[list[int]]) -> list[list[int]]:
    """The Hermite normal form of a lattice basis: one form for each lattice."""
    rows = [list(row) for row in basis]
    k = 0
    for column in range(len(rows[0])):
        for i in range(k + 1, len(rows)):
            while rows[i][column]:
                quotient = rows[k][column] // rows[i][column]
                rows[k] = [a - quotient * b for a, b in zip(rows[k], rows[i], strict=True)]
                rows[k], rows[i] = rows[i], rows[k]
        if k == len(rows) or not rows[k][column]:
            continue
        if rows[k][column] < 0:
            rows[k] = [-entry for entry in rows[k]]
        for i in range(k):
            quotient = rows[i][column] // rows[k][column]
            rows[i] = [a - quotient * b for a, b in zip(rows[i], rows[k], strict=True)]
        k += 1
        if k == len(rows):
            break
    return rows
