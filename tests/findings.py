"""Tables of what was found, by which the tests are found that hold it."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module


def check_tests(names: Iterable[str]) -> None:
    """Each name must be that of a test."""
    for name in names:
        module, _, test = name.partition(".")
        assert callable(getattr(import_module(f"tests.{module}"), test)), name
