"""What a long stream tells: of linked paths, of one moment, and of where somebody is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dphmm.chain.belief import Belief
from dphmm.cost.charges import Loss
from dphmm.cost.history import History
from dphmm.cost.leakage import Leakage, bound_leakage, realised_leakage
from dphmm.cost.moments import follow_work
from dphmm.cost.privacy_loss import PrivacyLoss, privacy_loss
from dphmm.cost.realised import as_factor
from dphmm.cost.whereabouts import Whereabouts
from dphmm.cost.words import (
    EARLIER,
    ITS_OWN_STEP,
    describe_chance,
    is_useful,
    show_factor,
    show_number,
)
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Protected

__all__ = ["DELTA", "Tells", "linked_loss", "tell"]

DELTA = Fraction(1, 10**6)
"""The chance that a statement leaves out of what linked paths lose."""

OFTEN = 8
"""The law of an answer's loss is worked out if so many answers have it; it pays with many."""

MOST_LAWS = 3
"""How many such laws a statement works out; other answers count with their price alone."""

CHEAP = 2**24
"""Entries of rows up to which a statement follows what moments tell: about two seconds."""


@dataclass(frozen=True)
class Tells:
    """What a history of releases tells beyond single steps; every field is public."""

    linked: Fraction
    """Between two paths that are equal or linked at every time: the sum of the epsilons."""
    linked_delta: Loss | None
    """The same with `delta` left out, if times, prices and bodies depend on no answer."""
    delta: Fraction
    """What the chance of a set of answers may differ by, beside the factor of `linked_delta`."""
    leakage: Leakage | None
    """What all answers tell of one moment until the last, over all paths; None if not computed."""
    realised: float
    """The largest factor by which they moved the odds between linked states until the last."""
    whereabouts: Whereabouts
    """How near somebody comes who knows only the model and the answers."""

    def plain(self) -> dict[str, Any]:
        """The same in fields for programs: losses as texts, lengths as numbers."""
        near = self.whereabouts
        moment = None if self.leakage is None else self.leakage.linked
        return {
            "linked": str(self.linked),
            "linked_delta": None if self.linked_delta is None else str(self.linked_delta),
            "delta": str(self.delta),
            "moment": None if moment is None else str(moment),
            "realised": str(self.realised),
            "near": [{"when": when, "radius": radius} for when, radius in near.radii],
            "near_before": near.before if near.has_places else None,
            "home": near.home,
            "unit": near.unit,
            "zone": near.zone,
        }

    def lines(self, only: str, *, filled: bool = False) -> list[str]:
        """Each of them in plain words, with its condition.

        Args:
            only: For whom it holds, to end a sentence with; nothing for everybody.
            filled: Whether steps without a row may have been answered.
        """
        knowing = f" and knew {EARLIER}" if self.whereabouts.heard else ""
        taken = f", {ITS_OWN_STEP}" if filled else ""
        lines = [
            f"Two paths that are equal or linked at every time, such as home and the house next "
            f"door all day: {show_factor(self.linked)}{only}."
        ]
        if self.linked_delta is not None and self.linked_delta < self.linked:
            lines.append(describe_chance(self.linked_delta, self.delta, only))
        if self.leakage is not None and self.leakage.linked is not None:
            kind = "" if self.leakage.is_exact else ", an upper bound"
            kind = f", counted {self.leakage.counted}" if self.leakage.counted else kind
            lines.append(
                f"Of one moment from the first answer to the last, whatever came before and after, "
                f"to somebody who takes the model for true{knowing}: the odds between two linked "
                f"states move {show_factor(self.leakage.linked)}{kind}{only}."
            )
        lines += [self._realised(f"{knowing}{taken}"), self.whereabouts.text()]
        return lines

    def _realised(self, taken: str) -> str:
        whoever = f"to whoever takes the model for true{taken}"
        if not is_useful(self.realised):
            return (
                f"Of some moment from the first to the last these very answers moved the odds "
                f"between two linked states by more than a factor of a million, {whoever}."
            )
        return (
            f"Of no moment from the first to the last did these very answers move the odds between "
            f"two linked states by more than a factor of {show_number(self.realised)}, {whoever}."
        )


def linked_loss(answers: Sequence[tuple[Protected, Fraction]]) -> PrivacyLoss | None:
    """The law of what some answers tell of two linked paths; None if nothing was drawn.

    Args:
        answers: What protected each answer, and its price.
    """
    drawn = Counter((step, price) for step, price in answers if not step.is_lone)
    total = None
    for number, ((step, price), count) in enumerate(drawn.most_common()):
        one = PrivacyLoss.pure(price)
        if number < MOST_LAWS and count >= OFTEN:
            one = _law(step, price)
        total = one * count if total is None else total + one * count
    return total


def _law(step: Protected, price: Fraction) -> PrivacyLoss:
    """The law of one answer's loss, made once for everybody who shares its rules."""
    made: dict[Fraction, PrivacyLoss] = step.__dict__.setdefault("_privacy_losses", {})
    if price not in made:
        made[price] = privacy_loss(step.mechanism(price), step.policy)
    return made[price]


def tell(
    history: History,
    start: Belief | None,
    answers: Sequence[tuple[Protected, Fraction]],
    policy: PolicyGraph,
    prior: Sequence[Belief],
    posterior: Sequence[Belief],
    places: Whereabouts,
    *,
    adaptive: bool,
    fixed: bool,
) -> Tells:
    """What a history tells, as far as that is cheap to know.

    Args:
        history: What was released, step by step.
        start: What was known before; None for a chain with memory, of which the history knows
            which paths are possible but not how probable they are.
        answers: What protected each answer, and its price.
        policy: Which states are linked.
        prior: The belief about every step before any release.
        posterior: The same, given all of them.
        places: How near somebody comes.
        adaptive: Whether bodies depended on answers, so that only sums are known.
        fixed: Whether times and prices may have been fixed beforehand; no schedule that looks at
            what is believed fixes them.
    """
    linked = sum((price for _, price in answers), Fraction(0))
    chance, leakage = None, None
    if fixed and not adaptive and len(answers) >= OFTEN:
        law = linked_loss(answers)
        chance = None if law is None else law.epsilon(DELTA)
    work = 2 * sum(follow_work(history, step) for step in range(len(history)))
    if start is not None and not adaptive and work <= CHEAP:
        leakage = bound_leakage(history, start, policy)
    moved = realised_leakage(prior, posterior, policy)
    return Tells(linked, chance, DELTA, leakage, as_factor(moved), places)
