"""What is believed at each step, in six classes of probability, small enough for a page."""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dphmm._types import FloatArray
from dphmm.chain.belief import Belief

__all__ = ["BOUNDS", "classify", "name_classes", "pack"]

BOUNDS = (0.0005, 0.003, 0.01, 0.05, 0.2, 0.5)
"""Where each class begins; a place in the last one is likelier than all others together."""


def classify(probabilities: FloatArray) -> NDArray[np.uint8]:
    """The class of each probability: 0 below all bounds, else 1 and more.

    >>> classify(np.array([0.0, 0.001, 0.5, 0.51])).tolist()
    [0, 1, 5, 6]
    """
    return np.searchsorted(BOUNDS, probabilities, side="left").astype(np.uint8)


def name_classes() -> list[str]:
    """What a legend calls the classes."""
    ends = [f"{100 * bound:g}" for bound in BOUNDS]
    return [*(f"{low} to {high}%" for low, high in pairwise(ends)), f"more than {ends[-1]}%"]


def pack(beliefs: Sequence[Belief]) -> str:
    """The classes of every state at every step: one byte each, deflated, in base 64."""
    rows = np.stack([classify(one.probabilities) for one in beliefs])
    return b64encode(zlib.compress(rows.tobytes(), 9)).decode("ascii")
