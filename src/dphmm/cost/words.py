"""The words in which prices and promises are printed, here and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from math import inf

from dphmm.cost.charges import Loss
from dphmm.geometry.exact import Exact, as_text, exact, round_up
from dphmm.policy.plan import Protected

__all__ = [
    "CONDITION",
    "EACH_QUESTION",
    "EARLIER",
    "FILLED",
    "ITS_OWN_STEP",
    "NEARER",
    "OWN_MOVES",
    "SHAPED",
    "THESE_ANSWERS",
    "UNLESS_NARROWED",
    "WORST_PAIRS",
    "conditions",
    "describe_answer",
    "describe_bracket",
    "describe_chance",
    "describe_given",
    "describe_lone",
    "describe_people",
    "is_useful",
    "release_statement",
    "show_factor",
    "show_number",
    "show_odds",
    "show_share",
    "to_protect",
]

CONDITION = "for people who move as the model says is possible from its start"
"""What every sentence says that rests on a zero which somebody stated."""

FILLED = "for people who were where they were answered, also at steps without a row"
"""What every sentence about paths says where gaps are answered: a row may stand for many steps."""

ITS_OWN_STEP = "each answer taken for one about its own step"
"""What a sentence says of a reader where gaps are answered, beside what they know."""

OWN_MOVES = "people who make only the model's own moves, from its start"
"""Whom a value holds for that takes the zeros of a learned model for facts."""

EARLIER = "what was said before"
"""What a reader knows beside the model where earlier answers led to what is believed."""

THESE_ANSWERS = "by these answers alone"
"""What a sentence says where more was said about the same person, or may have been."""

SHAPED = "a flat hull, or delta above zero"
"""How earlier answers come to shape later noise."""

THESE_TIMES = "at the times in this file"
"""What was given away is looked for at these: where steps have no row, more may be known."""

UNLESS_NARROWED = "as long as no answer narrows down what is possible"
"""What a sentence says before any answer where one may change who is exposed."""

WORST_PAIRS = "as the sum of each step's worst pair"
"""Where an upper bound comes from that needs no table."""

NEARER = (
    "Staircase noise rounds losses up: states nearer to each other than linked ones may lose as "
    "much as those, where K-norm noise loses less in proportion."
)
"""What a staircase trades for its smaller error."""

EACH_QUESTION = (
    "Where a step had several questions, linked are the states that each of them links; others "
    "may lose as much as any two possible states."
)
"""Whom a statement calls linked: repair may add a link for a later question of a step alone."""

LARGEST_LOSS = 13.8
"""Above this loss a factor may be over a million, which limits nothing: words stand for it."""

LARGEST_FACTOR = 1_000_000
"""The same for a factor."""


def release_statement(
    step: Protected,
    epsilon: Fraction,
    *,
    delta: Exact = 0,
    stated_zeros: bool = False,
    filled: bool = False,
) -> str:
    """What a release at one step does and does not hide, in a sentence or two.

    Args:
        step: What was possible, and the noise that followed.
        epsilon: The price of the release.
        delta: That of the plan.
        stated_zeros: Whether some states are impossible because somebody said so, so that the
            sentence has a condition.
        filled: Whether this step, or an earlier one that narrowed down what is possible, may have
            been answered from the state of another one.
    """
    about = (epsilon.as_integer_ratio(), delta or 0, stated_zeros, filled)
    text = step.sentences.get(about)
    if text is None:
        text = step.sentences[about] = _sentence(step, epsilon, delta, stated_zeros, filled)
    return text


def _sentence(
    step: Protected, epsilon: Fraction, delta: Exact, stated_zeros: bool, filled: bool
) -> str:
    rests = stated_zeros and not step.possible.all()
    if step.is_lone:
        only = describe_lone("state", stated_zeros=rests, delta=delta, filled=filled)
        return f"{only}, so the answer is public; nothing was drawn."
    only = conditions(stated_zeros=rests, delta=delta, filled=filled)
    text = (
        f"Odds between two linked states change by at most a factor exp({as_text(epsilon)}){only}."
    )
    if step.noise.staircase:
        text += f" {NEARER}"
    if step.worst_norm == inf:
        text += " Some possible states are told apart with certainty."
    return text


def describe_lone(what: str, *, stated_zeros: bool, delta: Exact, filled: bool = False) -> str:
    """That there is one state to protect, and why.

    Args:
        what: What a state is called, such as "place".
        stated_zeros: Whether others are impossible because somebody said so.
        delta: That of the plan.
        filled: Whether steps without a row may have been answered.
    """
    rests = ""
    if stated_zeros and not delta:
        rests = conditions(stated_zeros=True, delta=0, filled=filled).removeprefix(",")
    return f"Only one {what} is {to_protect(delta)}{rests}"


def to_protect(delta: Exact) -> str:
    """What states are that noise is made for: possible, or in a location set.

    Args:
        delta: That of the plan.
    """
    return f"in {_location_set(delta)}" if delta else "possible"


def conditions(
    *, stated_zeros: bool, delta: Exact, alone: bool = False, filled: bool = False
) -> str:
    """For whom a promise to linked states holds, to end its sentence with; nothing for everybody.

    Args:
        stated_zeros: Whether it rests on a zero that somebody stated.
        delta: That of the plan.
        alone: Whether it counts some of the answers about a person alone.
        filled: Whether steps without a row may have been answered.
    """
    only = f", {CONDITION}" if stated_zeros else ""
    only = f", {FILLED}{only}" if filled else only
    only = f", {THESE_ANSWERS}{only}" if alone else only
    return f"{only}; states outside {_location_set(delta)} are not protected" if delta else only


def _location_set(delta: Exact) -> str:
    return f"the {as_text(1 - exact(delta))} location set"


def describe_answer(price: Fraction, what: str, only: str) -> str:
    """What one answer cannot tell of two linked states, in a sentence; of a high price that it may.

    Args:
        price: The epsilon of the answer.
        what: What states are called, such as "places".
        only: For whom it holds, to end a sentence with; nothing for everybody.
    """
    if price > LARGEST_LOSS:
        return (
            f"At this price (epsilon {as_text(price)}) one answer may tell two linked {what} "
            f"apart: there is no useful limit."
        )
    return (
        f"One answer never settles which of two linked {what} it was: odds of 1 to 1 "
        f"become at most {show_odds(price)} to 1 (epsilon {as_text(price)}), whatever else is "
        f"known about the person{only}."
    )


def describe_chance(loss: Loss, chance: Fraction, only: str) -> str:
    """What two linked paths lose if a chance is left out of it, in a sentence.

    Odds may move further with a larger chance than this one: it is added to that of each set of
    answers, and is not the chance of a bad one.

    Args:
        loss: What is lost besides.
        chance: The delta.
        only: For whom it holds, to end a sentence with; nothing for everybody.
    """
    return (
        f"The same for the chance of any conclusion from all answers, if times and prices were not "
        f"chosen after earlier ones: between two such paths it differs {show_factor(loss)}, and by "
        f"{as_text(chance)} besides{only}."
    )


def describe_bracket(lower: Loss, lower_from: str, upper: Loss, upper_from: str) -> str:
    """What is known of a worst case that lies between two losses, and where these come from."""
    useless = "no useful limit: " if lower > LARGEST_LOSS else ""
    return (
        f"{useless}the worst case lies between epsilon {_write(-round_up(-lower, 4))} "
        f"({lower_from}) and {show_number(upper)} ({upper_from})"
    )


def describe_given(
    person: str,
    what: str,
    given: Sequence[tuple[str, str, float, float]],
    *,
    is_sure: bool,
    heard: bool = False,
) -> str:
    """Which places some answers gave away, in sentences for everybody, with their condition.

    Args:
        person: Whom the answers are about.
        what: What states are called, such as "places".
        given: For each its name, when that was, how sure a reader is and was without answers.
        is_sure: Whether readers are more sure than not of them; else the first is the surest.
        heard: Whether they know what was said before, too.
    """
    one, (place, when, sure, before) = what.removesuffix("s"), given[0]
    reader = (
        f"whoever knows only the published model{', ' + EARLIER if heard else ''} and all of them"
    )
    share = f"{show_share(sure)} by the model's reckoning, {show_share(before)} without them"
    more = "whoever knows more can be surer"
    if not is_sure:
        return (
            f"These answers gave away no {one} of {person} {THESE_TIMES}: {reader} holds no single "
            f"{one} for likelier than all others together at any of them. The surest is {place} "
            f"{when} ({share}); {more}."
        )
    count = f"one {one}" if len(given) == 1 else f"{len(given)} {what}"
    there = "at" if len(given) == 1 else "there, for longest at"
    return (
        f"These answers gave away {count} of {person} {THESE_TIMES}: {reader} believes {person} to "
        f"have been {there} {place} {when}, rather than anywhere else ({share}); {more}."
    )


def describe_people(people: int, given: int, what: str, *, heard: bool = False) -> str:
    """Of how many people some answers gave a place away, with the condition.

    Args:
        people: How many people there are.
        given: Of how many of them at least one place was given away.
        what: What states are called, such as "places".
        heard: Whether readers know what was said before of some of them, too.
    """
    one = what.removesuffix("s")
    before = f", {EARLIER}" if heard else ""
    whom = f"{given} of {people} people" if given else f"none of the {people} people"
    return (
        f"These answers gave away a {one} of {whom} {THESE_TIMES}, to a reader who knows only the "
        f"published model{before} and the answers about them: a {one} and a time at which it is "
        f"likelier than all others together. Whoever knows more can be surer."
    )


def is_useful(factor: float) -> bool:
    """Whether a factor of odds limits anything: above a million to one it does not."""
    return factor <= LARGEST_FACTOR


def show_number(value: Loss) -> str:
    """A loss or a factor in at most four digits, never less than it is; no powers of ten.

    >>> show_number(Fraction(1, 3)), show_number(1807.32), show_number(Fraction(360))
    ('0.3334', '1,808', '360')
    """
    return "infinite" if value == inf else _write(round_up(value, 4))


def show_share(probability: float) -> str:
    """A probability in percent, never as certain or impossible.

    >>> show_share(0.583), show_share(0.00384), show_share(0.999), show_share(0.0)
    ('58%', '0.38%', 'more than 99%', 'less than 0.01%')
    """
    if probability > 0.99:
        return "more than 99%"
    if probability < 0.0001:
        return "less than 0.01%"
    return f"{_write(float(f'{100 * probability:.2g}'))}%"


def show_odds(loss: Loss) -> str:
    """What even odds become at most by a loss that is useful: e^loss, never less than it is."""
    return _write(round_up(Context(prec=30).exp(round_up(loss, 30)), 3))


def show_factor(loss: Loss) -> str:
    """By how much a loss moves odds, in words; a factor above a million is no limit."""
    if loss == inf:
        return "without limit (epsilon infinite: some releases tell them apart for certain)"
    if loss > LARGEST_LOSS:
        return f"without a useful limit (epsilon {show_number(loss)})"
    return f"by at most ×{show_odds(loss)} (epsilon {show_number(loss)})"


def _write(number: Decimal | float) -> str:
    """A number with commas between thousands and no zeros at its end."""
    text = f"{Decimal(str(number)):,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
