"""Whether a model helps, on people it was not learned from. Private: computed from true states.

A model may be worse than none: too little data, too much noise, the wrong time step. So it is
judged before it is used: by how likely it finds moves of other people, and by releases to them
that are only simulated. Whoever publishes a model because of it, or does not, tells something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from dphmm._types import FloatArray, IntArray
from dphmm.chain.belief import Belief
from dphmm.chain.ground import Ground, normalised
from dphmm.chain.markov import Chain, MarkovModel
from dphmm.errors import ArgumentError, DataError
from dphmm.noise.randomness import SeededRandomness
from dphmm.release.stream import Stream
from dphmm.scenario.building import unit_of
from dphmm.scenario.counting import runs_of
from dphmm.scenario.scenario import Scenario
from dphmm.tables.trips import TOGETHER, read_trips, tracks_of
from dphmm.tables.units import measure

__all__ = [
    "Judgement",
    "People",
    "cross_validate",
    "deal_folds",
    "evaluate_trips",
    "judge",
    "region_of",
    "sample_walks",
    "walk_of",
]

People = Sequence[tuple[Any, Any]]
"""For each person slots, and the states in them."""

Watch = Callable[[Any], Iterable[Any]]
"""What sees work come by, for a progress bar."""

REGIONS = (0.5, 0.9)
STEPS = 1200
LONGEST = 60
MOST_WALKS = 200
"""So many steps are released in all, of walks of at most so many, and their moves scored."""

LAG = 10
FOLDS = 5
SEED = 150
SELDOM = 0.01
"""How often the baselines go anywhere, so that no move is impossible for them."""

TOLERATED = 1.05
"""A model this much worse than a walk without data counts as equal: so few walks tell no better."""

FEWEST = 5
FEWEST_MOVES = 100
"""Fewer people, or moves, tell nothing."""


@dataclass(frozen=True)
class Judgement:
    """How a model does on people it was not learned from. Private.

    Args:
        people: How many of them were looked at.
        moves: How many of their moves were scored.
        log_likelihoods: The mean log-probability of a move, in nats: by the model, and by those
            that know no data.
        only_anywhere: The share of moves that are none of the model's own.
        answers: The mean distance of an answer to the truth, in `unit`.
        shares: The mean distance of estimates as a share of that: `now`, `lagged`, in
            `hindsight`, and `walk`, now by a walk that knows no data.
        regions: For each region the mass it states, and the share of the truth it holds.
        expected: The mean distance that the beliefs expect now, as a share of the real one.
        unit: What distances are measured in.
    """

    people: int
    moves: int
    log_likelihoods: dict[str, float]
    only_anywhere: float
    answers: float
    shares: dict[str, float]
    regions: tuple[tuple[float, float], ...]
    expected: float
    unit: str = ""

    @property
    def is_worse(self) -> bool:
        """Whether the model is worse than none: than the answers alone, or than no data."""
        now, walk = self.shares["now"], self.shares.get("walk", 1.0)
        return now >= 1 or now > TOLERATED * walk

    @property
    def is_sure(self) -> bool:
        """Whether there were enough people to tell."""
        return self.people >= FEWEST and self.moves >= FEWEST_MOVES

    @property
    def verdict(self) -> str:
        """In a sentence."""
        now, late = self.shares["now"], self.shares["hindsight"]
        if not self.is_sure:
            return f"Nobody can tell: {self.people} people and {self.moves} moves are too few."
        if now >= 1:
            return f"Worse than none: estimates are {now:.2f} times as far off as the answers."
        if self.is_worse:
            walk = self.shares["walk"]
            return (
                f"Worse than none: estimates are at {now:.0%} of the answers' distance, by a walk "
                f"that knows no data at {walk:.0%}."
            )
        trust = "" if self.is_calibrated else " Its regions are not to be trusted."
        return f"It helps: {now:.0%} of the answers' distance, {late:.0%} in hindsight.{trust}"

    @property
    def is_calibrated(self) -> bool:
        """Whether every region holds as much as it states, within a tenth."""
        return self.miss <= 0.1

    @property
    def miss(self) -> float:
        """How far the worst region is from holding as much as it states."""
        return max(abs(stated - held) for stated, held in self.regions)

    def lines(self) -> list[str]:
        """What was found, line by line."""
        scores = ", ".join(f"{name} {score:.2f}" for name, score in self.log_likelihoods.items())
        shares = ", ".join(f"{name} {share:.0%}" for name, share in self.shares.items())
        regions = ", ".join(
            f"{held:.0%} in regions of {stated:.0%}" for stated, held in self.regions
        )
        return [
            f"{self.people} people it was not learned from, {self.moves} moves of theirs",
            f"log-likelihood of a move, in nats: {scores}",
            f"moves that only going anywhere explains: {self.only_anywhere:.1%}",
            f"distance of an answer: {measure(self.answers, self.unit)}; of estimates: {shares}",
            f"the truth lies: {regions}; expected error {self.expected:.2f} of the real one",
            self.verdict,
        ]

    def __str__(self) -> str:
        return "\n".join(self.lines())


class _Read(NamedTuple):
    """One walk, released and read."""

    scores: FloatArray
    """Log-probabilities of its moves by each model: a row each."""
    own: list[bool]
    """Whether each move is one of the model's own."""
    distances: dict[str, FloatArray]
    regions: list[list[tuple[float, bool]]]
    expected: list[float]


def evaluate_trips(
    scenario: Scenario, trips: Any, columns: Any = None, watch: Watch = iter
) -> Judgement:
    """See `Scenario.evaluate`."""
    clock = scenario.settings.clock
    rows = read_trips(trips, scenario.states, clock, columns=columns, together=TOGETHER)
    return judge([(scenario, tracks_of(rows))], watch=watch)


def cross_validate(
    learn: Callable[[People], Scenario], people: People, watch: Watch = iter
) -> Judgement:
    """How a way of learning does on people who are left out in turn.

    Args:
        learn: The scenario with the model of some people.
        people: Everybody.
        watch: Sees every part of the work come by.
    """
    folds = list(deal_folds(people))
    parts = [(learn(others), held) for others, held in watch(folds)]
    return judge(parts, lag=None, watch=watch)


def deal_folds(people: People) -> Iterator[tuple[People, People]]:
    """Everybody but some, and these, in turn until each was left out once.

    Args:
        people: Everybody, at least two.
    """
    if len(people) < 2:
        raise ArgumentError(f"people must be at least 2 to leave some out, got {len(people)}")
    order = np.random.default_rng(SEED).permutation(len(people))
    for fold in range(min(FOLDS, len(people))):
        held = set(order[fold::FOLDS].tolist())
        others = [one for place, one in enumerate(people) if place not in held]
        yield others, [people[place] for place in sorted(held)]


def judge(
    parts: Sequence[tuple[Scenario, People]], lag: int | None = LAG, watch: Watch = iter
) -> Judgement:
    """How models do on people they were not learned from, all together.

    Args:
        parts: Models in their scenarios, and the people of each.
        lag: How many steps late estimates are late, which takes longest; None for none.
        watch: Sees every walk come by.
    """
    walks, seen = [], set()
    for fold, (scenario, people) in enumerate(parts):
        rng = np.random.default_rng([SEED, fold])
        for person, when, where in sample_walks(people, -(-STEPS // len(parts)), rng):
            walks.append((scenario, when, where, rng, lag))
            # Walks of one person may overlap: a move is one however often it was drawn.
            seen |= {(fold, person, slot) for slot in when[1:].tolist()}
    found: list[_Read] = [_read(*walk) for walk in watch(walks)]
    if not found:
        raise DataError("trips must hold neighbouring steps, got no move; is the time step right?")
    scenario = parts[0][0]
    scores = np.concatenate([one.scores for one in found], axis=1).mean(axis=1)
    apart = {
        name: float(np.concatenate([one.distances[name] for one in found]).mean())
        for name in found[0].distances
    }
    answers = apart.pop("answers")
    regions = np.array([region for one in found for region in one.regions]).mean(axis=0)
    expected = float(np.concatenate([one.expected for one in found]).mean())
    return Judgement(
        people=len({(fold, person) for fold, person, _ in seen}),
        moves=len(seen),
        log_likelihoods={
            **dict(zip(_baselines(scenario), scores.tolist(), strict=True)),
            "no data": -log(scenario.query.n_states),
        },
        only_anywhere=1 - float(np.mean([own for one in found for own in one.own])),
        answers=answers,
        shares={name: distance / answers for name, distance in apart.items()},
        regions=tuple((float(stated), float(held)) for stated, held in regions),
        expected=expected / max(apart["now"], 1e-12),
        unit=unit_of(scenario),
    )


def sample_walks(
    people: People, steps: int, rng: np.random.Generator, most: int = MOST_WALKS
) -> list[tuple[int, IntArray, IntArray]]:
    """Walks without gaps, of one person after the other, from anywhere in their trips.

    Args:
        people: Whose.
        steps: About how many in all.
        rng: What draws them.
        most: How many walks at most.
    """
    runs = [[run for run in runs_of(*person) if len(run[0]) > 1] for person in people]
    known = [person for person, some in enumerate(runs) if some]
    steps = min(steps, sum(len(when) for some in runs for when, _ in some))
    walks: list[tuple[int, IntArray, IntArray]] = []
    while known and steps > 0 and len(walks) < most:
        for person in rng.permutation(known).tolist():
            lengths = np.array([len(when) for when, _ in runs[person]], dtype=np.float64)
            chosen = int(rng.choice(len(lengths), p=lengths / lengths.sum()))
            when, where = runs[person][chosen]
            first = int(rng.integers(max(1, len(when) - LONGEST + 1)))
            part = slice(first, first + LONGEST)
            walks.append((person, when[part], where[part]))
            steps -= len(walks[-1][1])
            if steps <= 0:
                break
    return walks


def walk_of(ground: Ground) -> MarkovModel:
    """A walk that knows no data: a stay and the nearest neighbours, all alike.

    >>> walk_of(Ground([0, 1, 2])).transition.toarray().round(2)
    array([[0.5 , 0.5 , 0.  ],
           [0.33, 0.33, 0.33],
           [0.  , 0.5 , 0.5 ]])
    """
    sources, targets, _ = ground.within(2)
    size = len(ground.places)
    steps = sparse.csr_array((np.ones(len(sources)), (sources, targets)), shape=(size, size))
    return MarkovModel(normalised(steps), anywhere=SELDOM)


def _baselines(scenario: Scenario) -> dict[str, Chain]:
    """The model, and those that know no data."""
    stay = MarkovModel(sparse.eye_array(scenario.query.n_states), anywhere=SELDOM)
    found: dict[str, Chain] = {"the model": scenario.model, "staying": stay}
    if scenario.query.dimension <= 2:
        found["a walk"] = walk_of(Ground(scenario.query.values))
    return found


def _read(
    scenario: Scenario,
    slots: IntArray,
    states: IntArray,
    rng: np.random.Generator,
    lag: int | None,
) -> _Read:
    models = _baselines(scenario)
    scored = [_score(model, slots, states) for model in models.values()]
    query, begin = scenario.query, int(slots[0]) - 1
    stream = Stream(
        scenario.model, scenario.plan, epsilon=scenario.settings.epsilon, start=scenario.start,
        time=begin, randomness=SeededRandomness(rng), estimate=scenario.settings.estimate,
    )  # fmt: skip
    late = None if lag is None else stream.estimates(lag=lag)
    answers, now, lagged, regions, expected = [], [], [], [], []
    for state in states.tolist():
        release = stream.release(state)
        answers.append(release.answer)
        now.append(release.estimate)
        lagged += [] if late is None else late.ready()
        belief = scenario.model.place_belief(stream.posterior).probabilities
        regions.append([region_of(belief, mass, state) for mass in REGIONS])
        expected.append(float(belief @ np.linalg.norm(query.values - release.estimate, axis=1)))
    estimates: dict[str, Any] = {"answers": answers, "now": now}
    if late is not None:
        estimates["lagged"] = [one.value for one in [*lagged, *late.finish()]]
    estimates["hindsight"] = stream.smoothed()
    if "a walk" in models:
        read = models["a walk"].filter(stream.observations(), start=Belief.uniform(query.n_states))
        estimates["walk"] = [belief.mean(query.values) for belief in read]
    truth = query.values[states]
    apart = {
        name: np.linalg.norm(np.asarray(values) - truth, axis=1)
        for name, values in estimates.items()
    }
    return _Read(np.array([score for score, _ in scored]), scored[0][1], apart, regions, expected)


def _score(model: Chain, slots: IntArray, states: IntArray) -> tuple[list[float], list[bool]]:
    """How likely each move of a walk is after those before it, and whether it is an own move."""
    belief, scores, own = model.known(int(states[0])), [], []
    for slot, state in zip(slots[1:].tolist(), states[1:].tolist(), strict=True):
        reached = belief.possible
        for part in model.moves_into(slot):
            reached = part.own.successors(reached)
        own.append(bool(model.place_mask(reached)[state]))
        belief = model.predict(belief, slot)
        chance = float(model.place_belief(belief).probabilities[state])
        scores.append(log(max(chance, 1e-12)))
        if model.place_mask(belief.possible)[state]:
            belief = belief.condition(model.lift(_only(state, model.n_places)))
        else:
            belief = model.known(state)
    return scores, own


def region_of(belief: FloatArray, mass: float, state: int) -> tuple[float, bool]:
    """The mass of the likeliest places that have at least so much, and whether one is the state.

    Whole places, so the mass is mostly more; places as likely as the last belong to it.
    """
    order = np.sort(belief)[::-1]
    last = order[min(int(np.searchsorted(np.cumsum(order), mass)), len(order) - 1)]
    return float(belief[belief >= last].sum()), bool(belief[state] >= last)


def _only(state: int, size: int) -> FloatArray:
    logs = np.full(size, -np.inf)
    logs[state] = 0.0
    return logs
