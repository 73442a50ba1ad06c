"""One self-contained page about a scenario and its releases: plots, prices, plain sentences.

Everything on it is public, except the last section, which is there only when the owner hands
over the true trips, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dphmm.errors import ArgumentError
from dphmm.geometry.exact import as_text
from dphmm.policy.plan import Protected
from dphmm.report.facts import TrackFacts
from dphmm.report.figures import Drawings, Layer, count_links
from dphmm.report.private import Truth, private_errors
from dphmm.report.rendering import render
from dphmm.report.svg import Curve, curves
from dphmm.scenario.building import unit_of
from dphmm.scenario.checking import check_steps, covered
from dphmm.scenario.scenario import Scenario

__all__ = ["scenario_page"]

PEOPLE_LISTED = 50
PEOPLE_DRAWN = 20
PLACES_LISTED = 10
ROWS_LISTED = 2000
STEPS_CHECKED = 6


def scenario_page(
    scenario: Scenario,
    tracks: Sequence[TrackFacts],
    *,
    person: str | None = None,
    truth: Truth | None = None,
    unit: str = "",
) -> str:
    """The page as HTML: no scripts, no links to elsewhere, light and dark.

    `person` is whose track is drawn, by default the first. `truth` adds a private section.
    """
    people = {facts.track.person: facts for facts in tracks}
    if not people:
        raise ArgumentError("tracks must hold at least one person, got none")
    if person is not None and person not in people:
        raise ArgumentError(f"person must be one of the {len(people)} released people")
    shown = people[person] if person is not None else next(iter(people.values()))
    drawings = Drawings(scenario, unit or unit_of(scenario))
    last = shown.last
    times = _short_times(shown.track.times)
    everybody = list(people.values())
    return render(
        "scenario.html",
        scenario=scenario,
        drawings=drawings,
        people=everybody,
        shown=shown,
        last=last,
        steps=list(check_steps(scenario, STEPS_CHECKED)),
        listed=PEOPLE_LISTED,
        policy_words=_policy_words(scenario, drawings.unit),
        links=count_links(scenario.policy),
        releases=sum(facts.said for facts in everybody),
        degrees=drawings.degrees(last)[last.possible],
        what="places" if scenario.states.place_columns else "states",
        price=max(said.epsilon for facts in everybody for said in facts.track.stream.said),
        conditions=covered(scenario),
        usual_error=float(last.mechanism(scenario.settings.epsilon).mean_squared_error) ** 0.5,
        hull_size=_hull_size(scenario, last),
        track=drawings.tracks(_layers(shown), times),
        error_chart=_error_chart(shown, drawings, times),
        answer_head=[
            f"{kind}{column}"
            for kind in ("", "estimate ", f"{shown.lag} steps later ", "smoothed ")
            for column in scenario.columns
        ],
        answers=_answers(scenario, shown),
        given=_given(scenario, shown),
        besides=[_other(scenario, facts, drawings) for facts in drawn_besides(everybody, shown)],
        private=None if truth is None else _private(everybody, shown, drawings, truth, times),
    )


def drawn_besides(people: Sequence[TrackFacts], shown: TrackFacts) -> list[TrackFacts]:
    """The other people whose tracks are drawn too."""
    return [facts for facts in people if facts is not shown][: PEOPLE_DRAWN - 1]


def _layers(facts: TrackFacts) -> list[Layer]:
    first, *others, last = _quick_layers(facts)
    return [first, *others, Layer(f"{facts.lag} steps later", "late", facts.lagged), last]


def _quick_layers(facts: TrackFacts) -> list[Layer]:
    """What is drawn of everybody."""
    return [
        Layer("released", "answer", facts.answers, dotted=True),
        Layer("estimate", "estimate", facts.estimates),
        Layer("smoothed", "smooth", facts.smoothed),
    ]


def _other(scenario: Scenario, facts: TrackFacts, drawings: Drawings) -> dict[str, Any]:
    times = _short_times(facts.track.times)
    return {
        "facts": facts,
        "track": drawings.tracks(_quick_layers(facts), times, plain=True),
        "given": _given(scenario, facts),
    }


def _given(scenario: Scenario, facts: TrackFacts) -> list[dict[str, Any]]:
    """For each place that was given away its name, from when to when, and how surely."""
    times = _short_times(facts.track.times)
    return [
        {
            "place": scenario.labels[one.state],
            "first": times[one.first],
            "last": times[one.last],
            "facts": one,
        }
        for one in facts.given_away[:PLACES_LISTED]
    ]


def _error_chart(shown: TrackFacts, drawings: Drawings, times: list[str]) -> str:
    """The expected errors and, below, the estimates over time."""
    lines = [
        Curve(layer.name, layer.kind, errors.tolist())
        for layer, errors in zip(_layers(shown), shown.expected_errors.T, strict=True)
    ]
    chart = curves(lines, times, "expected distance to the truth", drawings.unit)
    return chart + drawings.coordinates(_layers(shown)[1:], times)


def _answers(scenario: Scenario, shown: TrackFacts) -> list[tuple[Any, ...]]:
    """The time, the numbers and the price of each answer; of silence the numbers are none."""
    kinds = (shown.answers, shown.estimates, shown.lagged, shown.smoothed)
    numbers = np.concatenate([scenario.in_places(kind) for kind in kinds], axis=1)
    prices = [release.epsilon for release in shown.track.releases]
    rows = zip(shown.track.times, numbers.tolist(), prices, strict=True)
    return list(rows)[:ROWS_LISTED]


def _private(
    people: list[TrackFacts],
    shown: TrackFacts,
    drawings: Drawings,
    truth: Truth,
    times: list[str],
) -> dict[str, Any]:
    known = [facts for facts in people if truth.of(facts) is not None]
    groups = [(facts.track.person, [facts]) for facts in known[:PEOPLE_LISTED]]
    groups += [("everybody", known)] if known else []
    states = truth.of(shown)
    track = None
    if states is not None:
        real = Layer("true", "truth", truth.places(shown, states)[0])
        track = drawings.tracks([*_layers(shown), real], times)
    errors = [(name, private_errors(those, truth)) for name, those in groups]
    return {
        "errors": errors,
        "fixes": errors[-1][1].fixes if errors else 0,
        "steps": errors[-1][1].steps if errors else 0,
        "missing": len(people) - len(known),
        "track": track,
    }


def _policy_words(scenario: Scenario, unit: str) -> list[str]:
    chosen = scenario.settings.policy
    length = "" if chosen.distance is None else f"{as_text(chosen.distance)} {unit}".strip()
    parts = (
        (chosen.complete, "all states must look alike"),
        (chosen.category is not None, f"states with the same {chosen.category} must look alike"),
        (chosen.distance is not None, f"states at most {length} apart must look alike"),
        (chosen.one_step, "states that one state leads to must look alike"),
        (chosen.edges is not None, "the pairs listed by the owner must look alike"),
    )
    return [words for given, words in parts if given]


def _hull_size(scenario: Scenario, last: Protected) -> str:
    size = f"rank {last.body.rank}"
    if last.body.rank < scenario.query.dimension:
        return size
    ratio = float(last.hull.l1_ball().volume / last.body.volume)
    return f"{size}; the l1 ball is {ratio:.3g} times as large"


def _short_times(times: Sequence[str]) -> list[str]:
    """Times for an axis: of dates on one day the clock alone."""
    days = {time[:10] for time in times}
    if len(days) == 1 and all(len(time) >= 16 and time[10:11] in "T " for time in times):
        return [time[11:16] for time in times]
    return [time[:16].replace("T", " ") for time in times]
