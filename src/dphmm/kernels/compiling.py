"""Kernels that compile when it is worth it: a small call runs as plain Python until then.

Compiling costs tenths of a second a function, once, on everybody's first run; what is compiled
is kept on disk where a place can be written. A kernel that says how many inner steps a call
takes (`steps`) is not compiled for a few of them: the same source runs as plain Python, with
plain twins of all kernels it calls, and gives the same bits. Others compile at their first call.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial, update_wrapper
from hashlib import sha256
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

from numba import njit, types
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.extending import typeof_impl

from dphmm.kernels import VARIABLE

ONCE = 100_000
"""A call of more inner steps than this is never plain; as plain Python it takes some 50 ms."""

TOGETHER = 400_000
"""After this many inner steps of all its plain calls a kernel is compiled."""

KEPT = 20_000
"""The same where an earlier process left it compiled: to load it takes some 15 ms."""


class Kernel:
    """A function on arrays: plain while its calls are few and small, compiled from then on.

    It may be called from other kernels like any function that numba compiles.
    """

    def __init__(
        self, function: Callable[..., Any], steps: Callable[..., int] | None, **options: Any
    ) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self.steps = steps
        self.targetoptions = options
        self.compiled = _compiler(function, options)
        self.done = 0
        self._run: Callable[..., Any] = self._choose

    def __call__(self, *args: Any) -> Any:
        """What the function gives, whichever way it runs."""
        return self._run(*args)

    def __reduce__(self) -> str:
        return self.py_func.__name__

    @property
    def signatures(self) -> list[Any]:
        """The signatures that are compiled, or loaded from disk, in this process."""
        return list(self.compiled.signatures)

    @property
    def plain(self) -> Callable[..., Any]:
        """The same function as plain Python, down to the last kernel that it calls."""
        home = _plain_names(sys.modules[self.py_func.__module__])
        return getattr(home, self.py_func.__name__)

    def _choose(self, *args: Any) -> Any:
        """Run plain, if that is as well, or else be compiled from now on."""
        if self.steps is not None and os.environ.get(VARIABLE) != "always":
            steps = self.steps(*args)
            self.done += steps
            if steps <= ONCE and self.done <= (KEPT if _is_kept(self.compiled) else TOGETHER):
                return self.plain(*args)
        self._run = self.compiled
        return self.compiled(*args)


def kernel(steps: Callable[..., int] | None = None, **options: Any) -> Callable[..., Any]:
    """A decorator that makes a function a `Kernel`; options are numba's.

    Args:
        steps: how many inner steps a call takes, from its arguments. Without it the kernel is
            always compiled, which is right where a call may be long whatever its arguments.
        options: numba's, such as nogil.
    """
    return lambda function: Kernel(function, steps, **options)


def _compiler(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    # Its options for wrappers are missing in numba's types. No kernel is a callback.
    compiler: Any = partial(njit, no_cfunc_wrapper=True)
    if function.__name__.startswith("_"):
        # Called by other kernels only, whose compiled code holds it; a door from Python would
        # be a fifth of what is compiled.
        return compiler(no_cpython_wrapper=True, **options)(function)
    compiled = compiler(**options)(function)
    # Without a place to write, neither beside the source nor at home, numba refuses to keep it.
    with suppress(RuntimeError):
        compiled._cache = _Kept(function)  # type: ignore[no-untyped-call]
    return compiled


class _Files(CompileResultCacheImpl):
    """Where compiled code is kept: in other files for every version of the kernels.

    A kernel holds the code of those that it calls, and numba looks at its own file alone: it would
    go on with the old ones when theirs has changed.
    """

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        base = super().get_filename_base(fullname, abiflags)  # type: ignore[no-untyped-call]
        return f"{base}-{_version()}"


class _Kept(FunctionCache):
    """Compiled code on disk."""

    _impl_class = _Files


@cache
def _version() -> str:
    """What all kernels are compiled from."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def _is_kept(compiled: Any) -> bool:
    """Whether an earlier process left compiled code of a function on disk."""
    file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    return os.path.exists(getattr(file, "_index_path", ""))


@cache
def _plain_names(module: ModuleType) -> SimpleNamespace:
    """A module's names with every kernel as plain Python, also those of other modules."""
    names = dict(vars(module))
    for name, value in vars(module).items():
        if isinstance(value, Kernel):
            function = value.py_func
            if function.__module__ == module.__name__:
                assert isinstance(function, FunctionType)
                names[name] = FunctionType(function.__code__, names, name)
            else:
                names[name] = value.plain
        elif isinstance(value, ModuleType) and value.__name__.startswith(f"{__package__}."):
            names[name] = _plain_names(value)
    return SimpleNamespace(**names)


@typeof_impl.register(Kernel)
def _type_of_kernel(value: Kernel, _: object) -> Any:
    """To numba a kernel is the function that it compiles, so that kernels may call kernels."""
    return types.Dispatcher(value.compiled)
