"""Compiled inner loops on arrays, and nothing else.

Each module here is a handful of functions over plain arrays that numba compiles when it is
worth it (`kernels.compiling`). A module is imported, and numba with it, when its name is first
used, so `import dphmm` stays light:

    from dphmm import kernels
    kernels.planar.convex_hull(points)
"""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType

VARIABLE = "DPHMM_COMPILE"
"""A variable of the environment: "always" compiles every kernel at its first call."""


def compile_at_once() -> None:
    """Run no kernel as plain Python, here and in processes begun from here.

    A server would rather wait at its start than in the middle of a request.
    """
    os.environ[VARIABLE] = "always"


def __getattr__(name: str) -> ModuleType:
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        raise AttributeError(f"dphmm.kernels has no kernel module {name!r}") from error
