"""What releases cost, in words and numbers for the people who pay."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from html import escape
from math import inf
from typing import TYPE_CHECKING, Any

from dphmm.cost.bracket import Bracket, sequence_bracket
from dphmm.cost.budget import Budget
from dphmm.cost.charges import Loss
from dphmm.cost.composition import TIGHT_STATES
from dphmm.cost.history import History
from dphmm.cost.limit import Limit
from dphmm.cost.pair_tables import PairTables
from dphmm.cost.plotting import plot_statement
from dphmm.cost.realised import Beliefs, realised_factor
from dphmm.cost.sequences import (
    is_within_reach,
    paper_sequence_epsilon,
    sequence_epsilon,
    worst_losses,
)
from dphmm.cost.windows import window_bracket
from dphmm.cost.words import (
    EACH_QUESTION,
    EARLIER,
    ITS_OWN_STEP,
    NEARER,
    OWN_MOVES,
    SHAPED,
    THESE_ANSWERS,
    conditions,
    describe_bracket,
    is_useful,
    show_factor,
    show_number,
)
from dphmm.errors import ArgumentError, expect
from dphmm.geometry.exact import Exact, exact

if TYPE_CHECKING:
    from dphmm.cost.tells import Tells

__all__ = [
    "PathCosts",
    "PrivacyStatement",
    "privacy_statement",
]

UNCOUNTED = "which nothing here counts"

WINDOW_WORK, SEQUENCE_WORK = 2**34, 2**31
"""Entries of tables that a statement looks at: some ten seconds, and one, for large models."""


@dataclass(frozen=True)
class PathCosts:
    """What a history costs between two paths."""

    event: Loss | Bracket | None
    """Between two paths that differ at one time; None if there were too many states."""
    window: Loss | Bracket | None
    """Between two paths that differ within the statement's `width` steps, or a bracket."""
    sequence: Loss | Bracket
    """Between any two paths, tight, or a bracket around it."""

    @classmethod
    def of(cls, history: History, width: int) -> PathCosts:
        """The costs of a history."""
        if not is_within_reach(history):
            return cls(None, None, sequence_bracket(history))
        event, window = (window_bracket(history, w, WINDOW_WORK).found for w in (1, width))
        return cls(event, window, _sequence(history))


def _sequence(history: History) -> Loss | Bracket:
    """The cost of a whole path: by tables, or within a bracket where they would take long."""
    if history.is_free or PairTables(history).work(len(history)) <= SEQUENCE_WORK:
        return sequence_epsilon(history)
    return sequence_bracket(history).found


def plain_costs(
    costs: PathCosts | PrivacyStatement, condition: str | None
) -> dict[str, str | None]:
    """The costs between two paths as texts for programs, and for whom they hold."""
    values = {"event": costs.event, "window": costs.window, "sequence": costs.sequence}
    texts = {name: None if cost is None else str(_upper(cost)) for name, cost in values.items()}
    return {"condition": condition, **texts}


def _upper(cost: Loss | Bracket) -> Loss:
    return cost.upper if isinstance(cost, Bracket) else cost


@dataclass(frozen=True)
class PrivacyStatement:
    """The price of a history of releases; every field can be shown to anybody."""

    releases: int
    """How many answers were given that noise was drawn for."""
    linked: Fraction
    """The largest loss of one time step between two states that the policy links."""
    spent: Fraction
    """The sum of all epsilons."""
    worst_pair: Loss
    """The largest loss of one time step between any two possible states."""
    event: Loss | Bracket | None
    """Between two paths that differ at one time; None if there were too many states."""
    window: Loss | Bracket | None
    """Between two paths that differ within `width` steps, or a bracket around it."""
    width: int
    """The steps that `window` is about."""
    sequence: Loss | Bracket
    """Between any two paths, tight, or a bracket around it."""
    paper_sequence: Loss
    """The paper's bound for the same (Theorem 7.2)."""
    realised: float | None
    """The largest factor by which these answers moved a state's odds until the last of them."""
    adaptive: bool
    """Whether the hulls depended on earlier answers, so that values hold for this history."""
    stated_zeros: bool = False
    """Whether all of it holds only for people who move as the model says is possible."""
    delta: Fraction = Fraction(0)
    """The chance of the states that a delta-location set left out, which nothing here covers."""
    own: PathCosts | None = None
    """The costs between two paths of the model's own moves, if other paths are possible too."""
    before: Fraction = Fraction(0)
    """What was spent before these releases, which no other value counts."""
    besides: Fraction | None = Fraction(0)
    """What else was spent on the same person, which no other value counts; None if nobody knows."""
    windows: tuple[tuple[str, Fraction], ...] = ()
    """How long each window of the limit is, and the most that any of that length cost."""
    staircase: bool = False
    """Whether some noise was a staircase, whose losses are whole numbers of epsilons."""
    several: bool = False
    """Whether some step had several questions: linked are the states that each of them links."""
    filled: bool = False
    """Whether steps without a row may have been answered, from the state of another one."""
    tells: Tells | None = None
    """What they tell together of linked paths, of moments and of places, if that was asked."""

    def text(self) -> str:
        """The statement in plain words, a line each."""
        only = self.condition
        lines = [
            self._total(),
            f"Two states that the policy links: one step moves the odds between them "
            f"{show_factor(self.linked)}{only}.",
            f"Any two possible states: one step moves the odds between them "
            f"{show_factor(self.worst_pair)}{only}.",
        ]
        if self.several:
            lines.append(EACH_QUESTION)
        if self.staircase:
            lines.append(NEARER)
        if self.event is None or self.window is None:
            lines.append(
                f"One moment, or {_count(self.width, 'step')}: not computed, there are more than "
                f"{TIGHT_STATES} possible states."
            )
        else:
            lines += [
                f"Where you were at one moment, all else being the same: "
                f"{_within(self.event)}{only}.",
                f"Where you were during {_count(self.width, 'step')}, all else being the same: "
                f"{_within(self.window)}{only}.",
            ]
        bound = f"; the paper's bound is epsilon {show_number(self.paper_sequence)}"
        lines.append(
            f"Your whole path against any other: {_between_paths(self.sequence, bound)}{only}."
        )
        if self.own is not None:
            lines.append(self._own_moves(self.own))
        if self.realised is not None:
            lines.append(self._realised(self.realised))
        if self.tells is not None:
            lines += self.tells.lines(only, filled=self.filled)
        if self.adaptive:
            lines.append(
                f"The noise may have been shaped by earlier answers ({SHAPED}), so these values "
                f"hold for this history only and were not known beforehand; states that delta "
                f"left out are not covered."
            )
        return "\n".join(lines)

    @property
    def condition(self) -> str:
        """For whom all of it holds, to end a sentence with; nothing for everybody."""
        return self._conditions(self.stated_zeros)

    @property
    def is_part(self) -> bool:
        """Whether more was said about the person than is counted, or may have been."""
        return self.besides is None or bool(self.besides or self.before)

    @property
    def prices(self) -> str:
        """The epsilon at an instant, within any window of the limit, and in all, in words."""
        whole = show_number(self.spent)
        if not self.windows:
            return f"{whole} {THESE_ANSWERS if self.is_part else 'in all'}"
        within = [f"{show_number(most)} at most in any {length}" for length, most in self.windows]
        parts = [f"{show_number(self.linked)} at an instant", *within]
        rest = [f"{whole} together", THESE_ANSWERS] if self.is_part else [f"{whole} in all"]
        return ", ".join(parts + rest)

    def plain(self) -> dict[str, Any]:
        """The same in fields for programs: exact fractions as texts, `inf` without limit."""
        own = self.own
        movers = f"for {OWN_MOVES}{self._conditions(False)}"
        return {
            "releases": self.releases,
            "spent": str(self.spent),
            "before": str(self.before),
            "besides": None if self.besides is None else str(self.besides),
            "text": self.text(),
            "linked": str(self.linked),
            "worst_pair": str(self.worst_pair),
            "width": self.width,
            "windows": {length: str(most) for length, most in self.windows},
            "adaptive": self.adaptive,
            **plain_costs(self, self.condition.lstrip(",; ") or None),
            "own": None if own is None else plain_costs(own, movers),
            "tells": None if self.tells is None else self.tells.plain(),
        }

    def __str__(self) -> str:
        return self.text()

    plot = plot_statement

    def _repr_html_(self) -> str:
        lines = "".join(f"<li>{escape(line)}</li>" for line in self.text().splitlines())
        return f"<ul>{lines}</ul>"

    def _total(self) -> str:
        total = f"{_count(self.releases, 'release')}, epsilon {self.prices}"
        for spent, when in ((self.besides, "on this person besides"), (self.before, "before")):
            if spent:
                total += f"; epsilon {show_number(spent)} was spent {when}, {UNCOUNTED}"
        if self.besides is None:
            total += f"; more may have been spent on this person, {UNCOUNTED}"
        return f"{total}."

    def _realised(self, factor: float) -> str:
        heard = bool(self.before) if self.tells is None else self.tells.whereabouts.heard
        known = EARLIER if heard else "only the model"
        taken = f", {ITS_OWN_STEP}" if self.filled else ""
        told = f"What these answers really told somebody who knew {known}{taken}"
        if not is_useful(factor):
            return (
                f"{told}: the odds of some place, at some time from the first to the last of "
                f"them, moved by more than a factor of a million."
            )
        return (
            f"{told}: the odds of no place, at no time from the first to the last of them, moved "
            f"by more than a factor of {show_number(factor)}."
        )

    def _own_moves(self, own: PathCosts) -> str:
        """The same values under the condition that the model's zeros are right."""
        values = []
        if own.event is not None and own.window is not None:
            values = [
                f"one moment {_within(own.event)}",
                f"{_count(self.width, 'step')} {_within(own.window)}",
            ]
        values.append(f"the whole path {_between_paths(own.sequence)}")
        limited = self.stated_zeros or self.delta or self.filled
        whoever = "For" if limited else "These hold whatever you did; for"
        return f"{whoever} {OWN_MOVES}: {', '.join(values)}{self._conditions(False)}."

    def _conditions(self, stated_zeros: bool) -> str:
        return conditions(
            stated_zeros=stated_zeros, delta=self.delta, alone=self.is_part, filled=self.filled
        )


def privacy_statement(
    history: History,
    *,
    width: int = 10,
    prior: Beliefs | None = None,
    posterior: Beliefs | None = None,
    adaptive: bool | None = None,
    delta: Exact = 0,
    before: Exact = 0,
    besides: Exact | None = 0,
    limit: Limit | None = None,
) -> PrivacyStatement:
    """The statement about a history, with the realised odds if both beliefs are given.

    Args:
        history: What was released, or will be, step by step.
        width: How many steps the statement about a few steps is for.
        prior: The belief about each step before any release, or its probabilities, for the
            realised odds.
        posterior: The same, given all releases; both or neither.
        adaptive: Whether hulls depended on earlier answers. By default whether `delta` is above
            zero or some release could single out a part of the possible states: the two ways in
            which answers shape later hulls.
        delta: That of the plan.
        before: What was spent before the history began.
        besides: What else was spent on the same person; None if nobody knows.
        limit: What may be spent, if the statement should tell about its windows.

    >>> from dphmm.geometry.hull import SensitivityHull
    >>> from dphmm.chain.markov import MarkovModel
    >>> from dphmm.geometry.query import Query
    >>> walk = MarkovModel([[0.5, 0.5, 0], [0.25, 0.5, 0.25], [0, 0.5, 0.5]])
    >>> body = SensitivityHull.from_vertices([[1]])
    >>> history = History.of(Query([0, 1, 2]), walk, [body] * 3, 1, start=1)
    >>> print(privacy_statement(history, width=2).text())
    3 releases, epsilon 3 in all.
    Two states that the policy links: one step moves the odds between them by at most ×2.72 ...
    """
    if limit is not None:
        expect(limit, Limit, "limit")
    expect(history, History, "history")
    if (prior is None) != (posterior is None):
        raise ArgumentError("prior and posterior must be given together, got one of them")
    steps = [sum((c.epsilon for c in answers), Fraction(0)) for answers in history.charges]
    worst = max(worst_losses(history))
    costs, left_out = PathCosts.of(history, width), exact(delta, "delta")
    own = None if history.own is history else history.own
    realised = None
    if prior is not None and posterior is not None:
        realised = realised_factor(prior, posterior)
    return PrivacyStatement(
        releases=sum(map(len, history.charges)),
        linked=max(steps),
        spent=sum(steps, Fraction(0)),
        worst_pair=worst,
        event=costs.event,
        window=costs.window,
        width=width,
        sequence=costs.sequence,
        paper_sequence=paper_sequence_epsilon(history),
        realised=realised,
        adaptive=bool(left_out) or worst == inf if adaptive is None else adaptive,
        stated_zeros=history.stated_zeros,
        delta=left_out,
        own=None if own is None else PathCosts.of(own, width),
        before=exact(before, "before"),
        besides=None if besides is None else exact(besides, "besides"),
        windows=_windows(steps, limit),
        several=any(len(answers) > 1 for answers in history.charges),
        staircase=any(charge.gamma is not None for step in history.charges for charge in step),
    )


def _windows(steps: list[Fraction], limit: Limit | None) -> tuple[tuple[str, Fraction], ...]:
    budget = Budget(limit)
    for step, price in enumerate(steps):
        budget.add(step, price)
    return tuple((window.length, budget.most(window.width)) for window in budget.windows)


def _between_paths(sequence: Loss | Bracket, bound: str = "") -> str:
    if isinstance(sequence, Bracket) and not sequence.is_tight:
        lower, upper = sequence.lower, sequence.upper
        return describe_bracket(lower, sequence.lower_from, upper, sequence.upper_from)
    return f"{show_factor(_upper(sequence))}{bound}"


def _within(cost: Loss | Bracket) -> str:
    """The factor of paths that differ for a while, and where it comes from if it is a bound."""
    if isinstance(cost, Bracket):
        return f"{show_factor(cost.upper)}, counted {cost.upper_from}"
    return show_factor(cost)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
