"""One self-contained page about a scenario and its releases: plots, prices, plain sentences.

Everything on it is public, except the last section, which is there only when the owner hands
over the true trips, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from dphmm.cost.words import describe_answer, describe_people, show_number
from dphmm.errors import ArgumentError
from dphmm.geometry.exact import as_text
from dphmm.noise.distance import mean_noise
from dphmm.policy.plan import Protected
from dphmm.report.beliefs import name_classes
from dphmm.report.facts import TrackFacts
from dphmm.report.figures import Drawings, count_links
from dphmm.report.ground import Ground
from dphmm.report.people import PersonView, group_rows
from dphmm.report.private import Truth, private_errors
from dphmm.report.rendering import render
from dphmm.report.tracks import TrackMap
from dphmm.scenario.building import unit_of
from dphmm.scenario.checking import Step, check_steps, covered
from dphmm.scenario.scenario import Scenario

__all__ = ["drawn_besides", "scenario_page"]

PEOPLE_LISTED = 50
PEOPLE_DRAWN = 20
STEPS_CHECKED = 6

FIRST_ANSWERS = (
    "Made without the ledger, this page takes the first line about each person for the first "
    "answer ever given about them. After earlier ones other states were possible, so its numbers "
    "may be too small."
)
"""What a page rests on that knows a file alone, where noise follows what is possible."""


def scenario_page(
    scenario: Scenario,
    tracks: Sequence[TrackFacts],
    *,
    person: str | None = None,
    truth: Truth | None = None,
    unit: str = "",
    ground: Ground | None = None,
) -> str:
    """The page as HTML: one file that loads nothing from elsewhere, light, dark and on paper.

    `person` is who is shown first, by default the first. `truth` adds a private section.
    `ground` is the map that is drawn, by default that of the states' places alone.
    """
    people = {facts.track.person: facts for facts in tracks}
    if not people:
        raise ArgumentError("tracks must hold at least one person, got none")
    if person is not None and person not in people:
        raise ArgumentError(f"person must be one of the {len(people)} released people")
    shown = people[person] if person is not None else next(iter(people.values()))
    ground = replace(ground or Ground(scenario), unit=unit or unit_of(scenario))
    drawings, track_map = Drawings(ground), TrackMap(ground)
    last = shown.last
    everybody = list(people.values())
    what = "places" if scenario.states.place_columns else "states"
    views = [
        PersonView(facts, number, track_map, what)
        for number, facts in enumerate([shown, *drawn_besides(everybody, shown)])
    ]
    checked = list(check_steps(scenario, STEPS_CHECKED))
    price = max(said.epsilon for facts in everybody for said in facts.track.stream.said)
    return render(
        "scenario.html",
        scenario=scenario,
        drawings=drawings,
        track_map=track_map,
        people=everybody,
        views=views,
        shown=shown,
        last=last,
        lead=_lead(views, len(everybody), what),
        steps=list(_step_rows(checked)),
        ahead=covered(scenario, checked),
        listed=PEOPLE_LISTED,
        policy_words=_policy_words(scenario, drawings.unit),
        links=count_links(scenario.policy),
        releases=sum(facts.said for facts in everybody),
        degrees=drawings.degrees(last)[last.possible],
        what=what,
        promise=describe_answer(price, what, covered(scenario)),
        only=covered(scenario),
        granted=_granted(scenario, shown),
        usual_error=mean_noise(last.mechanism(scenario.settings.epsilon)),
        hull_size=_hull_size(scenario, last),
        ledger=_ledger(everybody, scenario.settings.limit is not None),
        data=_data(scenario, track_map, views),
        private=None if truth is None else _private(everybody, shown, track_map, truth),
    )


def drawn_besides(people: Sequence[TrackFacts], shown: TrackFacts) -> list[TrackFacts]:
    """The other people whose tracks are drawn too."""
    return [facts for facts in people if facts is not shown][: PEOPLE_DRAWN - 1]


def _lead(views: Sequence[PersonView], people: int, what: str) -> str:
    """What the answers gave away, in one sentence: of one person or, if all are drawn, of all."""
    if people == 1 or people > len(views):
        return views[0].sentence
    heard = any(view.facts.near.heard for view in views)
    return describe_people(people, sum(view.gave_away > 0 for view in views), what, heard=heard)


def _granted(scenario: Scenario, shown: TrackFacts) -> str:
    """What the numbers rest on where no book says how answers began; nothing for a learned model.

    Where every state is always possible, noise is the same whatever was said before.
    """
    follows = scenario.model.has_stated_zeros or scenario.settings.delta
    return FIRST_ANSWERS if follows and shown.track.budget is None else ""


def _data(scenario: Scenario, track_map: TrackMap, views: Sequence[PersonView]) -> dict[str, Any]:
    """What the page's script needs; without a map it has only times to move."""
    drawn = track_map.ground.answers_are_places
    return {
        "labels": list(scenario.labels) if drawn else [],
        "centres": track_map.centres() if drawn else [],
        "reach": round(0.75 * track_map.ground.size(track_map.frame), 1) if drawn else 0,
        "classes": name_classes(),
        "people": [view.data() for view in views],
    }


def _ledger(people: Sequence[TrackFacts], limited: bool) -> list[tuple[str, tuple[Any, ...]]]:
    """What each person spent; people with the same are one row."""
    rows = []
    for facts in people[:PEOPLE_LISTED]:
        left = () if facts.left is None else (as_text(facts.left) if limited else "no limit",)
        worst = show_number(facts.worst_step)
        cells = (f"{facts.said:,}", show_number(facts.track.spent), *left, worst)
        rows.append((facts.track.person, cells))
    return group_rows(rows)


def _step_rows(steps: Any) -> Any:
    """Steps that are alike as one: from which to which, and the last of them."""
    for _, group in groupby(steps, key=_same):
        alike = list(group)
        first, last = alike[0], alike[-1]
        span = str(first.time) if first is last else f"{first.time} to {last.time}"
        yield span, last


def _same(step: Step) -> Step:
    # A guess without answers is less sure every step; the table does not show it.
    return replace(step, time=0, lasts=False, silent_error=0.0)


def _private(
    people: list[TrackFacts], shown: TrackFacts, track_map: TrackMap, truth: Truth
) -> dict[str, Any]:
    known = [facts for facts in people if truth.of(facts) is not None]
    groups = [(facts.track.person, [facts]) for facts in known[:PEOPLE_LISTED]]
    groups += [("everybody", known)] if known else []
    states = truth.of(shown)
    track = None
    if states is not None and track_map.ground.answers_are_places:
        real = truth.places(shown, states)[0]
        track = track_map.draw_truth(shown, real, f"The true track of {shown.track.person}")
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
