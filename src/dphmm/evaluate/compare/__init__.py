"""Other people's mechanisms beside ours: one harness, one reader, one budget. Private.

A mechanism is one class (`Contender`): what it promises, what it answers along a path, and how
likely each place makes an answer. The same reader stands behind all of them.
"""

from __future__ import annotations

from dphmm.evaluate.compare.contender import Budget, Contender, OneLaw, Told
from dphmm.evaluate.compare.field import CONTENDERS, contender_of
from dphmm.evaluate.compare.harness import Outcome, compare
from dphmm.evaluate.compare.reading import Beliefs, read
from dphmm.evaluate.compare.world import World

__all__ = [
    "CONTENDERS",
    "Beliefs",
    "Budget",
    "Contender",
    "OneLaw",
    "Outcome",
    "Told",
    "World",
    "compare",
    "contender_of",
    "read",
]
