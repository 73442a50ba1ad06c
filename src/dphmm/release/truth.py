"""The true state as it is given: a number, a label or coordinates; no message says which."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dphmm.errors import ArgumentError, DphmmError

__all__ = ["state_of"]


def state_of(true_state: Any, n_states: int, locate: Callable[[Any], int] | None) -> int:
    """The number of a true state; `locate` knows labels and coordinates."""
    if locate is not None and not isinstance(true_state, (int, np.integer)):
        try:
            return locate(true_state)
        except (DphmmError, TypeError, ValueError, IndexError, OverflowError):
            # Whatever went wrong, its words might say where somebody is.
            raise ArgumentError(
                "true_state must be a state's number, its label or its coordinates"
            ) from None
    whole = isinstance(true_state, (int, np.integer)) and not isinstance(true_state, bool)
    if not whole or not 0 <= true_state < n_states:
        raise ArgumentError(f"true_state must be one of the {n_states} states")
    return int(true_state)
