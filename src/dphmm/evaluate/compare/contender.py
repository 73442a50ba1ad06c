"""What a mechanism must be to be compared: a promise, answers along a path, likelihoods.

A new mechanism is one class. One whose noise does not depend on the past derives from `OneLaw`
and says how it draws and how likely an answer is; any other derives from `Contender` and
returns all it told.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from dphmm._types import FloatArray, IntArray
from dphmm.errors import ArgumentError
from dphmm.evaluate.compare.world import World

__all__ = ["Budget", "Contender", "OneLaw", "Told"]


@dataclass(frozen=True)
class Budget:
    """So much in any so many steps, for two paths that are linked or equal at every time."""

    total: float
    steps: int

    def __post_init__(self) -> None:
        if not (self.total > 0 and np.isfinite(self.total)):
            raise ArgumentError(f"total must be a number above 0, got {self.total!r}")
        if not self.steps >= 1:
            raise ArgumentError(f"steps must be at least 1, got {self.steps!r}")

    @property
    def each(self) -> float:
        """What a step may cost if all cost the same."""
        return self.total / self.steps

    def part(self, width: int, argument: str) -> int:
        """A number of steps that divides the budget's, or a refusal."""
        if not (1 <= width <= self.steps and self.steps % width == 0):
            raise ArgumentError(f"{argument} must divide {self.steps} steps, got {width!r}")
        return width

    @property
    def parts(self) -> list[int]:
        """Every number of steps that divides the budget's."""
        return [width for width in range(1, self.steps + 1) if self.steps % width == 0]

    @property
    def words(self) -> str:
        """The budget in words."""
        return f"{self.total:g} in any {self.steps} steps"


@dataclass(frozen=True, eq=False)
class Told:
    """All that a mechanism published along some paths: public but for the paths themselves."""

    shown: FloatArray = field(repr=False)
    """(k, steps, 2) what a map without a reader would show at each step."""
    spent: FloatArray = field(repr=False)
    """(k, steps) what each step cost two linked places."""
    log_likelihood: Callable[[int], FloatArray | None] = field(repr=False)
    """For a step, how likely every place makes what was published there: (k, n) logarithms, each
    row up to a constant; None where nothing was said to anybody."""

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return int(self.spent.shape[1])

    def most_in(self, width: int) -> float:
        """The most that anybody spent in `width` steps in a row."""
        sums = np.concatenate([np.zeros((len(self.spent), 1)), self.spent.cumsum(axis=1)], axis=1)
        width = min(width, self.steps)
        return float((sums[:, width:] - sums[:, : sums.shape[1] - width]).max(initial=0.0))


class Contender(ABC):
    """A mechanism with its settings, for one world and one budget.

    Args:
        world: What is public.
        budget: What it may spend.
    """

    name: ClassVar[str]
    """What tables call it."""
    promise: ClassVar[str]
    """What it guarantees, with the condition, in a sentence."""
    source: ClassVar[str] = ""
    """Where it comes from."""

    def __init__(self, world: World, budget: Budget) -> None:
        self.world, self.budget = world, budget

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.budget.words})"

    @abstractmethod
    def release(self, paths: IntArray, rng: np.random.Generator) -> Told:
        """What is published along each of some paths of equal length: (k, steps) true places."""

    @property
    def knobs(self) -> str:
        """The settings that a table should name; none by default."""
        return ""


class OneLaw(Contender):
    """A mechanism that speaks every few steps, each time with fresh noise of one law.

    Args:
        world: What is public.
        budget: What it may spend: each time it speaks, all that `every` steps may cost.
        every: It speaks in the middle of every so many steps.
        at: Or only at these steps of the budget's, for a share each.
    """

    def __init__(
        self, world: World, budget: Budget, every: int = 1, at: tuple[int, ...] = ()
    ) -> None:
        super().__init__(world, budget)
        if any(not 0 <= step < budget.steps for step in at) or len(set(at)) < len(at):
            raise ArgumentError(f"at must be steps from 0 to {budget.steps - 1}, got {at!r}")
        self.at = at
        # Otherwise some window would hold one answer too many.
        self.every = budget.part(every, "every")

    @property
    def knobs(self) -> str:
        """How often it speaks, if not always."""
        if self.at:
            return f"{len(self.at)} times in {self.budget.steps} steps"
        return "" if self.every == 1 else f"every {self.every} steps"

    @cached_property
    def epsilon(self) -> float:
        """What one answer costs two linked places."""
        return self.budget.total / len(self.at) if self.at else self.budget.each * self.every

    @abstractmethod
    def draw(self, places: IntArray, rng: np.random.Generator) -> FloatArray:
        """An answer for each place: (k, 2). The one line that touches the truth."""

    @abstractmethod
    def log_likelihoods(self, answers: FloatArray) -> FloatArray:
        """How likely each answer is at every place, up to a constant a row: (k, n) logarithms."""

    def show(self, answers: FloatArray) -> FloatArray:
        """What a map shows for each answer; the answer itself by default."""
        return answers

    def speaks(self, step: int) -> bool:
        """Whether something is said at a step: a function of the clock alone."""
        if self.at:
            return step % self.budget.steps in self.at
        return step % self.every == self.every // 2

    def release(self, paths: IntArray, rng: np.random.Generator) -> Told:
        """Answers at the steps that are spoken at; in between the last one stays on the map."""
        people, steps = paths.shape
        said: dict[int, FloatArray] = {}
        shown = np.empty((people, steps, 2))
        spent = np.zeros((people, steps))
        last = np.tile(self.world.nearest_to_all(self.world.prior[None]), (people, 1))
        for step in range(steps):
            if self.speaks(step):
                said[step] = self.draw(paths[:, step], rng)
                last = self.show(said[step])
                spent[:, step] = self.epsilon
            shown[:, step] = last

        def log_likelihood(step: int) -> FloatArray | None:
            return self.log_likelihoods(said[step]) if step in said else None

        return Told(shown, spent, log_likelihood)
