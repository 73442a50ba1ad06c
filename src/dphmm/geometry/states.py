"""States as people name them, by number or by mask, checked once and turned into arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import FloatArray, IntArray, Mask
from dphmm.errors import ArgumentError

__all__ = ["as_array", "as_floats", "possible_mask", "state_number", "state_numbers"]


def as_array(values: ArrayLike, argument: str) -> np.ndarray[Any, Any]:
    """Values as an array; rows of different lengths are none.

    Args:
        values: What was given.
        argument: What a message calls it.
    """
    try:
        return np.asarray(values)
    except ValueError:
        raise ArgumentError(f"{argument} must be an array, got rows of different lengths") from None


def as_floats(values: ArrayLike, argument: str) -> FloatArray:
    """Values as an array of floats.

    Args:
        values: What was given.
        argument: What a message calls it.
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{argument} must hold numbers, got something else") from None


def state_numbers(
    states: ArrayLike, n_states: int, argument: str, *, private: bool = False
) -> IntArray:
    """State numbers as an array of 64-bit integers, in the shape in which they were given.

    Args:
        states: Numbers from 0 to n_states - 1.
        n_states: How many states there are.
        argument: What a message calls the numbers.
        private: Whether the numbers are true states, which a message must not show.
    """
    array = as_array(states, argument)
    if array.size == 0:
        return array.astype(np.int64)
    if not np.issubdtype(array.dtype, np.integer):
        raise ArgumentError(f"{argument} must hold state numbers, got dtype {array.dtype}")
    unknown = array[(array < 0) | (array >= n_states)]
    if unknown.size:
        got = "" if private else f", got {unknown.flat[0]}"
        raise ArgumentError(f"{argument} must name states 0..{n_states - 1}{got}")
    return array.astype(np.int64)


def state_number(state: int | np.integer[Any], n_states: int, argument: str = "state") -> int:
    """One state's number. It may be a true state, so a message never shows it.

    Args:
        state: A number from 0 to n_states - 1.
        n_states: How many states there are.
        argument: What a message calls the number.
    """
    if isinstance(state, bool) or not isinstance(state, (int, np.integer)):
        raise ArgumentError(f"{argument} must be a state's number, got {type(state).__name__}")
    if not 0 <= state < n_states:
        raise ArgumentError(f"{argument} must be one of the {n_states} states, by number from 0")
    return int(state)


def possible_mask(possible: ArrayLike | None, n_states: int, *, empty: bool = False) -> Mask:
    """The boolean mask of the possible states.

    A mask of zeros and ones would be read as numbers, so a number that is there twice is refused.

    Args:
        possible: A mask over the states, the numbers of the possible ones, or None for all.
        n_states: How many states there are.
        empty: Whether it is fine that no state is possible.

    >>> possible_mask([2, 0], 4).tolist()
    [True, False, True, False]
    >>> possible_mask([0, 1, 1], 3)
    Traceback (most recent call last):
    dphmm.errors.ArgumentError: possible must name each state once, got one twice; a mask holds \
booleans
    """
    if possible is None:
        return np.ones(n_states, dtype=bool)
    given = as_array(possible, "possible")
    if given.dtype == np.bool_ and given.shape == (n_states,):
        mask: Mask = given
    elif given.ndim == 1 and (given.size == 0 or np.issubdtype(given.dtype, np.integer)):
        chosen = state_numbers(given, n_states, "possible")
        mask = np.zeros(n_states, dtype=bool)
        mask[chosen] = True
        if np.count_nonzero(mask) != chosen.size:
            raise ArgumentError(
                "possible must name each state once, got one twice; a mask holds booleans"
            )
    else:
        raise ArgumentError(
            f"possible must be a mask over {n_states} states or their numbers, "
            f"got {given.dtype} of shape {given.shape}"
        )
    if not empty and not mask.any():
        raise ArgumentError("possible must contain at least one state, got none")
    return mask
