"""One step of a block of people at once: predict, weigh by their answers, normalise.

States are rows and people are columns, so that every inner loop runs over neighbouring
numbers of different people and the processor does several at a time. Each person's sums are
taken in the order of the states, whoever else is in the block, by the operations of
`kernels.release`. The exponential is left to NumPy between the two calls.
"""

from __future__ import annotations

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.kernels.compiling import kernel


def _weights(*arrays: FloatArray) -> int:
    """The inner steps of a prediction and of the exponents of everybody's answers."""
    moves, heights, people = arrays[1], arrays[5], arrays[10].shape[1]
    return (2 * len(moves) + 2 * heights.size + 4 * len(heights)) * people


def _states(after: FloatArray, *rest: object) -> int:
    """The inner steps of everybody's weights that become probabilities."""
    return 8 * after.size


@kernel(_weights, nogil=True)
def weigh(
    indptr: IntArray,
    indices: IntArray,
    data: FloatArray,
    jumps: FloatArray,
    before: FloatArray,
    heights: FloatArray,
    answers: FloatArray,
    offsets: FloatArray,
    free: FloatArray,
    epsilon: float,
    after: FloatArray,
    logs: FloatArray,
) -> None:
    """Predicted probabilities, and -epsilon (norm - the person's least norm), for every state.

    The norm of z - f(s) is the largest |a z - a f(s)| / b over facets: `heights` holds a f(s)
    by facet and state, `answers` a z by facet and person. `free` as in `kernels.release`.
    """
    states, people = after.shape
    for state in range(states):
        row = after[state]
        for person in range(people):
            row[person] = jumps[state]
        for entry in range(indptr[state], indptr[state + 1]):
            weight = data[entry]
            source = before[indices[entry]]
            for person in range(people):
                row[person] += weight * source[person]
    # Places, of which a chain with memory has fewer than states.
    least = np.full(people, np.inf)
    for state in range(len(logs)):
        norm = logs[state]
        for person in range(people):
            norm[person] = 0.0
        for facet in range(len(offsets)):
            height, offset = heights[facet, state], offsets[facet]
            answer = answers[facet]
            if len(free):
                least_height = free[facet]
                for person in range(people):
                    above = abs(answer[person] - height) - least_height
                    norm[person] = max(norm[person], above / offset)
            else:
                inverse = 1.0 / offset
                for person in range(people):
                    norm[person] = max(norm[person], abs(answer[person] - height) * inverse)
        if len(free):
            for person in range(people):
                norm[person] = np.ceil(norm[person])
        for person in range(people):
            least[person] = min(least[person], norm[person])
    for state in range(len(logs)):
        norm = logs[state]
        for person in range(people):
            norm[person] = -epsilon * (norm[person] - least[person])


@kernel(_states, nogil=True)
def settle(
    after: FloatArray, factors: FloatArray, values: FloatArray, means: FloatArray
) -> FloatArray:
    """Multiply and normalise every person, and take the means, a row for each axis.

    Gives the least weight of a possible state of each person.
    """
    states, people = after.shape
    total = np.zeros(people)
    for axis in range(len(means)):
        for person in range(people):
            means[axis, person] = 0.0
    least = np.full(people, np.inf)
    for state in range(states):
        row, factor = after[state], factors[state]
        for person in range(people):
            weight = row[person] * factor[person]
            # What was possible had a probability above zero; the rest is no one's least.
            least[person] = min(least[person], weight if row[person] > 0.0 else np.inf)
            row[person] = weight
            total[person] += weight
    for person in range(people):
        # A zero has no inverse; its person's least weight is zero too, and sends it elsewhere.
        total[person] = 1.0 / total[person] if total[person] > 0.0 else 0.0
    for state in range(states):
        row = after[state]
        for person in range(people):
            row[person] *= total[person]
        for axis in range(len(means)):
            value = values[state, axis]
            for person in range(people):
                means[axis, person] += row[person] * value
    return least
