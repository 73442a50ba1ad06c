"""What several threads may share: one of them at a time, in one process, and no copy of it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, SupportsIndex, TypeVar, cast

from dphmm.errors import ArgumentError

__all__ = ["Single", "Turns", "one_at_a_time"]

Method = TypeVar("Method", bound=Callable[..., Any])


class Turns:
    """A lock for the threads of the process that made it.

    A forked process has everything a second time, and what both said would be two answers.

    Args:
        owner: What is shared, for the message.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._lock = threading.RLock()
        self._process = os.getpid()

    def __enter__(self) -> None:
        # Before the lock, which a thread that was not forked may hold for ever.
        if os.getpid() != self._process:
            raise ArgumentError(
                f"{self._owner} must be used by the process that made it, got a forked one, which "
                f"would answer its moments a second time"
            )
        self._lock.acquire()

    def __exit__(self, *fault: object) -> None:
        self._lock.release()


class Single:
    """Something that answers or counts: a copy of it would do so a second time."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise ArgumentError(
            f"{type(self).__name__.lstrip('_')} must not be copied, which would answer its moments "
            f"a second time; resume another from its standing, or share a book"
        )


def one_at_a_time(method: Method) -> Method:
    """The method of an object with a `_lock`, for one thread after the other."""

    @wraps(method)
    def wait(self: Any, *arguments: Any, **options: Any) -> Any:
        with self._lock:
            return method(self, *arguments, **options)

    return cast(Method, wait)
