"""Compiled inner loops on arrays, and nothing else.

Each module here is a handful of numba functions over plain arrays. A module is imported,
and numba with it, when its name is first used, so `import dphmm` stays light:

    from dphmm import kernels
    kernels.planar.convex_hull(points)
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        raise AttributeError(f"dphmm.kernels has no kernel module {name!r}") from error
