"""How far a long repair is, told to whoever listens.

A listener is called from inside the search, and what it raises ends the search. A repair is a
function of public inputs, so how far it is tells nothing about anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["listening", "tell"]

_LISTENER: ContextVar[Callable[[float | None], None] | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Callable[[float | None], None]) -> Iterator[None]:
    """Tell a function how far every repair of this thread is.

    Args:
        listener: Called with the share of the exposed states that are looked at, or with None
            where that is what it was; what it raises ends the repair.
    """
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def tell(share: float | None = None) -> None:
    """Say how far the present repair is, or only that it goes on."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(share)
