"""What a scenario protects at each step, computed from public things alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from html import escape
from math import inf, isinf, sqrt
from typing import Any

import numpy as np

from dphmm._types import IntArray
from dphmm.chain.stochastic import entries_of
from dphmm.cost.statement import PrivacyStatement
from dphmm.cost.words import NEARER, UNLESS_NARROWED, conditions
from dphmm.errors import ArgumentError
from dphmm.geometry.exact import as_text, whole
from dphmm.noise.bound import least_error
from dphmm.noise.distance import mean_noise
from dphmm.policy.plan import Plan, Protected
from dphmm.policy.protection import degree_of_protection, exposed
from dphmm.release.schedule import LONGEST_WINDOW, expected_error
from dphmm.scenario.building import unit_of
from dphmm.scenario.planning import plan_costs
from dphmm.scenario.plotting import plot_check
from dphmm.scenario.scenario import Scenario
from dphmm.scenario.speaking import how_often, tell_shortage
from dphmm.scenario.stepping import Moment, begins_at, moments, whenever
from dphmm.tables.units import measure

__all__ = [
    "Check",
    "Step",
    "check_scenario",
    "check_step",
    "check_steps",
    "covered",
    "doubts",
    "guarantee",
    "narrows",
    "unrepaired",
]

STILL = 0.999
"""A model with more stays than this was learned in another time step, or of nobody."""


@dataclass(frozen=True)
class Step:
    """One step of a chain about which nothing has been said yet."""

    time: int
    possible: int
    """How many states are possible."""
    exposed_before: tuple[str, ...]
    """Those that the policy alone leaves exposed."""
    exposed: tuple[str, ...]
    """Those that stay exposed under the noise that is really used."""
    added: tuple[tuple[str, str], ...]
    """The edges that repair adds."""
    rank: int
    volume: float
    """Of the noise's body, in the units of the query."""
    least_protection: int
    most_protection: int
    """The degrees of protection, the smallest and the largest over the possible states."""
    error: float
    """The root of the mean squared error of an answer."""
    least_error: float
    """The same of the best mechanism for this hull, or less (see `dphmm.least_error`)."""
    constrained_epsilon: Fraction | float
    """The epsilon of the worst pair of possible states (Theorem 6.3)."""
    lasts: bool
    """Whether every later step is the same, as long as nothing is released."""
    own_possible: int | None = None
    """How many states the model's own moves lead to, if it can go elsewhere too."""
    own_error: float | None = None
    """The error that an answer would have if they were facts."""
    mean_error: float = 0.0
    """The mean distance of an answer."""
    silent_error: float = 0.0
    """The mean distance of a guess by the model alone, without any answer."""

    @property
    def is_useless(self) -> bool:
        """Whether an answer is no nearer than a guess without it."""
        return self.possible > 1 and self.mean_error >= self.silent_error

    def plain(self) -> dict[str, Any]:
        """The same for JSON, which has no fractions and no infinity."""
        worst = float(self.constrained_epsilon)
        return asdict(self) | {"constrained_epsilon": None if isinf(worst) else worst}


@dataclass(frozen=True)
class Check:
    """What a scenario protects, step by step, before anybody is released.

    Args:
        scenario: Its name.
        guarantee: What every release promises, in a sentence.
        steps: What each step protects; the last may stand for all that follow.
        costs: What an answer at each of the steps asked for at which it speaks would cost at most,
            for every path and by the model's own moves; None where that depends on the answers
            (see `narrows`), or where there are too many steps to look at.
        unit: What errors are measured in, if that is known.
        condition: For whom, and how long, nobody is exposed; nothing for everybody.
        planned: Which answers the costs are about, and from when on.
    """

    scenario: str
    guarantee: str
    steps: tuple[Step, ...]
    costs: PrivacyStatement | None = None
    unit: str = ""
    condition: str = ""
    planned: str = ""

    @property
    def verdict(self) -> str:
        """Whether somebody is exposed, in a sentence with its condition."""
        if self.exposed:
            return "Somebody is exposed."
        return f"Nobody is exposed in these steps{self.condition}."

    @property
    def exposed(self) -> tuple[str, ...]:
        """The states that stay exposed at some step, each once."""
        return tuple(dict.fromkeys(label for step in self.steps for label in step.exposed))

    @property
    def error(self) -> float:
        """The root of the mean squared error of an answer at the last step."""
        return self.steps[-1].error

    def __repr__(self) -> str:
        last = self.steps[-1]
        alone = f"{len(self.exposed)} exposed" if self.exposed else "nobody exposed"
        return (
            f"Check({self.scenario!r}, {len(self.steps)} steps, {alone}, "
            f"hidden among {last.least_protection} or more, error {measure(last.error, self.unit)}"
            f"{self.condition})"
        )

    plot = plot_check

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><td>{s.time}<td>{s.possible}<td>{len(s.exposed_before)}<td>{len(s.added)}"
            f"<td>{s.least_protection} to {s.most_protection}<td>{measure(s.error, self.unit)}"
            f"<td>{measure(s.least_error, self.unit)}"
            for s in self.steps
        )
        head = (
            "<tr><th>step<th>possible<th>exposed<th>repair adds<th>hidden among<th>error"
            "<th>least error"
        )
        planned = f"<p>{escape(self.planned)}:</p>"
        costs = "" if self.costs is None else f"{planned}{self.costs._repr_html_()}"
        said, found = escape(self.guarantee), escape(self.verdict)
        return f"<p>{said}</p><table>{head}{cells}</table><p>{found}</p>{costs}"


def check_scenario(
    scenario: Scenario, steps: int, show: Callable[[Iterable[Step]], Iterable[Step]] = tuple
) -> Check:
    """See `Scenario.check`; `show` passes the steps on as they are found."""
    if whole(steps, "steps", 1) > LONGEST_WINDOW:
        raise ArgumentError(f"steps must be at most {LONGEST_WINDOW}, got {steps!r}")
    found = tuple(show(check_steps(scenario, steps)))
    planned, costs = plan_costs(scenario, steps)
    words, unit = (covered(scenario, found), planned), unit_of(scenario)
    return Check(scenario.name, guarantee(scenario), found, costs, unit, *words)


def check_steps(scenario: Scenario, steps: int) -> Iterator[Step]:
    """What the scenario protects at each step; ends early once nothing changes any more."""
    bare = unrepaired(scenario)
    for moment in moments(scenario, steps):
        yield check_step(scenario, bare, moment)


def check_step(
    scenario: Scenario, bare: Plan, moment: Moment, degrees: IntArray | None = None
) -> Step:
    """What the scenario protects at one step; `bare` is its plan before repair.

    `degrees` of protection as released may be known already.
    """
    plan, query, labels, model = scenario.plan, scenario.query, scenario.labels, scenario.model
    time, possible, lasts, own, prior = moment
    step, before = plan.at(possible), bare.at(possible)
    into = model.moves_into(begins_at(scenario) + time)
    guessed = any(one.anywhere for one in into) and not plan.delta
    beside = plan.at(model.place_mask(own)) if guessed else None
    if degrees is None:
        degrees = degree_of_protection(query, step.policy, possible, hull=step.body)
    alone_before = alone = np.flatnonzero(degrees == 1)
    if len(step.added):
        alone_before = exposed(query, before.policy, possible, hull=before.body)
    return Step(
        time=time,
        possible=int(possible.sum()),
        exposed_before=tuple(labels[state] for state in alone_before),
        exposed=tuple(labels[state] for state in alone),
        added=tuple((labels[a], labels[b]) for a, b in sorted(map(sorted, step.added.tolist()))),
        rank=step.body.rank,
        volume=float(step.body.volume),
        least_protection=int(degrees[possible].min()),
        most_protection=int(degrees[possible].max()),
        error=_error(step, scenario),
        least_error=least_error(step.hull, scenario.settings.epsilon),
        constrained_epsilon=step.constrained(scenario.settings.epsilon),
        lasts=lasts,
        own_possible=None if beside is None else int(model.place_mask(own).sum()),
        own_error=None if beside is None else _error(beside, scenario),
        mean_error=mean_noise(step.mechanism(scenario.settings.epsilon)),
        silent_error=expected_error(model, prior, query.values),
    )


def unrepaired(scenario: Scenario) -> Plan:
    """The scenario's plan as it is before repair."""
    bare = scenario.plan.replace(repair=None, full_rank=False)
    # Of the same policy and query, so they need not be found again.
    vars(bare)["_differences"] = scenario.plan._differences
    return bare


def doubts(scenario: Scenario) -> tuple[str, ...]:
    """What looks wrong between a model and its scenario's time step, or should be known of them."""
    model, found = scenario.model, []
    if model.steps > 1:
        found.append(f"A step of the scenario is {model.steps} steps of its model.")
    moves = model.base.moves_into(1)[-1]
    sources, targets = (moves.current[ends] for ends in entries_of(moves.transition))
    stays = float(moves.transition.data[sources == targets].sum()) / moves.n_states
    if stays > STILL and len(scenario.states) > 1:
        found.append(
            f"By the model hardly anybody ever moves ({stays:.2%} of steps are stays): was it "
            f"learned in steps of {scenario.settings.clock.step!r}?"
        )
    if scenario.terms.fills_gaps and model.has_stated_zeros:
        found.append(
            "Steps without a row are answered as stays. Where the model says that nobody stays, "
            "its promises do not hold for whoever is answered so."
        )
    return (*found, *filter(None, [tell_shortage(scenario.settings)]))


def guarantee(scenario: Scenario) -> str:
    """What every release promises, in a sentence."""
    price = as_text(scenario.settings.epsilon)
    limit = scenario.settings.limit
    budget = "no limit on the sum" if limit is None else f"at most {limit.words} a person"
    besides = f" {NEARER}" if scenario.settings.mechanism == "staircase" else ""
    often = how_often(scenario)
    return (
        f"Each answer changes the odds between two linked states by at most a factor "
        f"exp({price}){covered(scenario)}; {budget}.{besides}{f' {often}' if often else ''}"
    )


def narrows(scenario: Scenario, steps: Iterable[Step]) -> bool:
    """Whether answers at some steps may change what is possible later: delta, or a flat hull."""
    told = any(step.constrained_epsilon == inf for step in steps)
    return bool(scenario.settings.delta) or (told and scenario.model.has_stated_zeros)


def covered(scenario: Scenario, steps: Sequence[Step] = ()) -> str:
    """For whom a scenario's promises hold, to end a sentence with; nothing for everybody.

    What is said of several `steps` before any answer holds as long as none changes them.
    """
    zeros, delta = scenario.model.has_stated_zeros, scenario.settings.delta
    unless = f", {UNLESS_NARROWED}" if steps and narrows(scenario, steps) else ""
    unless = f"{whenever(scenario) if steps else ''}{unless}"
    return unless + conditions(stated_zeros=zeros, delta=delta, filled=scenario.terms.fills_gaps)


def _error(step: Protected, scenario: Scenario) -> float:
    return sqrt(step.mechanism(scenario.settings.epsilon).mean_squared_error)
