"""What several threads may share: one of them at a time, in one process, and no copy of it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any, NoReturn, SupportsIndex, TypeVar, cast
from weakref import WeakValueDictionary

from dphmm.errors import ArgumentError

__all__ = ["UNSHARED", "Single", "one_at_a_time"]

Method = TypeVar("Method", bound=Callable[..., Any])


class Single:
    """Something that answers or counts, for one thread at a time: a second one would do it again.

    A copy of it is refused, and so is its use in a forked process, which has everything twice.
    """

    _lock: AbstractContextManager[object]

    def _share(self, owner: str) -> None:
        """Have a lock, which says what is shared where it cannot be taken."""
        self._owner = owner
        self._lock = threading.RLock()
        _SHARED[id(self)] = self

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise ArgumentError(
            f"{self._owner} must not be copied, which would answer its moments a second time; "
            f"resume another from its standing, or share a book"
        )


class _Foreign(AbstractContextManager[object]):
    """The lock of what another process made."""

    def __init__(self, owner: str) -> None:
        self._owner = owner

    def __enter__(self) -> NoReturn:
        raise ArgumentError(
            f"{self._owner} must be used by the process that made it, got a forked one, which "
            f"would answer its moments a second time"
        )

    def __exit__(self, *fault: object) -> None:
        pass


_SHARED: WeakValueDictionary[int, Single] = WeakValueDictionary()
"""Each by its identity: two that call themselves equal are two all the same."""


def _close_inherited() -> None:
    # Once in a fork instead of a look at the process before every answer.
    for one in _SHARED.values():
        one._lock = _Foreign(one._owner)


os.register_at_fork(after_in_child=_close_inherited)


UNSHARED: AbstractContextManager[object] = nullcontext()
"""The lock of what one thread makes, uses and forgets."""


def one_at_a_time(method: Method) -> Method:
    """The method of an object with a `_lock`, for one thread after the other."""

    @wraps(method)
    def wait(self: Any, *arguments: Any, **options: Any) -> Any:
        with self._lock:
            return method(self, *arguments, **options)

    return cast(Method, wait)
