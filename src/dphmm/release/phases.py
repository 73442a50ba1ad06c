"""Where a release is: heard by whoever wants to know, and by nobody else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["enter", "listening"]

_LISTENER: ContextVar[Callable[[str], object] | None] = ContextVar("phases", default=None)


def enter(phase: str) -> None:
    """Say that a phase begins: admission, draw or commit."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(phase)


@contextmanager
def listening(listener: Callable[[str], object]) -> Iterator[None]:
    """Have the phases of what is done in here told to somebody.

    Args:
        listener: Hears each phase when it begins.
    """
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)
