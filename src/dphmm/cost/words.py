"""The words in which prices and promises are printed, here and nowhere else."""

from __future__ import annotations

from decimal import Context
from fractions import Fraction
from math import inf

from dphmm.cost.charges import Loss
from dphmm.geometry.exact import Exact, as_text, exact, round_up
from dphmm.policy.plan import Protected

__all__ = [
    "CONDITION",
    "NEARER",
    "OWN_MOVES",
    "THESE_ANSWERS",
    "WORST_PAIRS",
    "conditions",
    "release_statement",
    "show_factor",
    "show_number",
    "show_odds",
]

CONDITION = "for people who move as the model says is possible from its start"
"""What every sentence says that rests on a zero which somebody stated."""

OWN_MOVES = "people who make only the model's own moves, from its start"
"""Whom a value holds for that takes the zeros of a learned model for facts."""

THESE_ANSWERS = "by these answers alone"
"""What a sentence says where more was said about the same person, or may have been."""

WORST_PAIRS = "as the sum of each step's worst pair"
"""Where an upper bound comes from that needs no table."""

NEARER = (
    "Staircase noise rounds losses up: states nearer to each other than linked ones may lose as "
    "much as those, where K-norm noise loses less in proportion."
)
"""What a staircase trades for its smaller error."""

LARGEST_FACTOR = 14.0
"""Above this loss a factor is over a million and is no longer written out."""


def release_statement(
    step: Protected, epsilon: Fraction, *, delta: Exact = 0, stated_zeros: bool = False
) -> str:
    """What a release at one step does and does not hide, in a sentence or two.

    Args:
        step: What was possible, and the noise that followed.
        epsilon: The price of the release.
        delta: That of the plan.
        stated_zeros: Whether some states are impossible because somebody said so, so that the
            sentence has a condition.
    """
    about = (epsilon.as_integer_ratio(), delta, stated_zeros)
    text = step.sentences.get(about)
    if text is None:
        text = step.sentences[about] = _sentence(step, epsilon, delta, stated_zeros)
    return text


def _sentence(step: Protected, epsilon: Fraction, delta: Exact, stated_zeros: bool) -> str:
    rests = stated_zeros and not step.possible.all()
    if step.is_lone:
        one = f"possible {CONDITION}" if rests else "possible"
        one = f"in {_location_set(delta)}" if delta else one
        return f"Only one state is {one}, so the answer is public; nothing was drawn."
    text = (
        f"Odds between two linked states change by at most a factor "
        f"exp({as_text(epsilon)}){conditions(stated_zeros=rests, delta=delta)}."
    )
    if step.noise.staircase:
        text += f" {NEARER}"
    if step.worst_norm == inf:
        text += " Some possible states are told apart with certainty."
    return text


def conditions(*, stated_zeros: bool, delta: Exact, alone: bool = False) -> str:
    """For whom a promise to linked states holds, to end its sentence with; nothing for everybody.

    Args:
        stated_zeros: Whether it rests on a zero that somebody stated.
        delta: That of the plan.
        alone: Whether it counts some of the answers about a person alone.
    """
    only = f", {CONDITION}" if stated_zeros else ""
    only = f", {THESE_ANSWERS}{only}" if alone else only
    return f"{only}; states outside {_location_set(delta)} are not protected" if delta else only


def _location_set(delta: Exact) -> str:
    return f"the {as_text(1 - exact(delta))} location set"


def show_number(value: Loss) -> str:
    """A loss in at most four digits, never less than it is."""
    return "infinite" if value == inf else f"{float(round_up(value, 4)):.4g}"


def show_odds(loss: Loss) -> str:
    """What even odds become at most by a finite loss: e^loss, never less than it is."""
    if loss > LARGEST_FACTOR:
        return f"e^{show_number(loss)}"
    return f"{float(round_up(Context(prec=30).exp(round_up(loss, 30)), 3)):.3g}"


def show_factor(loss: Loss) -> str:
    """By how much a loss moves odds, in words."""
    if loss == inf:
        return "without limit (epsilon infinite: some releases tell them apart for certain)"
    if loss > LARGEST_FACTOR:
        return f"by at most {show_odds(loss)} (epsilon {show_number(loss)}: no useful limit)"
    return f"by at most ×{show_odds(loss)} (epsilon {show_number(loss)})"
