"""One self-contained page about a scenario and its releases: plots, prices, plain sentences.

Everything on it is public, except the last section, which is there only when the owner hands
over the true trips, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from html import escape
from importlib.resources import files
from math import exp, inf

import numpy as np

from dphmm import __version__
from dphmm.errors import ArgumentError
from dphmm.geometry.exact import as_text
from dphmm.policy.plan import Protected
from dphmm.report.facts import TrackFacts, cannot_learn
from dphmm.report.figures import Drawn, Layer, count_links, legend
from dphmm.report.private import Truth, private_errors
from dphmm.report.svg import Curve, curves
from dphmm.scenario.checking import Step, check_steps
from dphmm.scenario.scenario import Scenario

__all__ = ["scenario_page"]

PEOPLE_LISTED = 50
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
    drawn = Drawn(scenario, unit or ("m" if scenario._on_earth else ""))
    steps = list(check_steps(scenario, STEPS_CHECKED))
    last = shown.track.protected[-1]
    sections = [
        _opening(scenario, people, shown, drawn, last),
        _learnable(scenario, shown, steps, drawn, last),
        _pictures(scenario, drawn, last),
        _person(shown, drawn),
        _prices(scenario, people, shown, steps),
    ]
    if truth is not None:
        sections.append(_private(people, shown, drawn, truth))
    return _document(f"{scenario.name}: privacy report", "".join(sections))


def _document(title: str, body: str) -> str:
    style = (files("dphmm.report") / "page.css").read_text(encoding="utf-8")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(title)}</title>'
        f"<style>\n{style}</style></head><body><main>{body}"
        f"<footer>Written by dphmm {__version__}. This page is one file and loads nothing from "
        f"elsewhere.</footer></main></body></html>\n"
    )


def _opening(
    scenario: Scenario,
    people: dict[str, TrackFacts],
    shown: TrackFacts,
    drawn: Drawn,
    last: Protected,
) -> str:
    releases = sum(len(facts.track.releases) for facts in people.values())
    errors = shown.expected_errors.mean(axis=0)
    degrees = drawn.degrees(last)[last.possible]
    tiles = [
        (f"{len(scenario.states):,}", "states"),
        (count_links(scenario.policy), "pairs that must look alike"),
        (
            f"{releases:,}",
            f"answers about {len(people):,} {'person' if len(people) == 1 else 'people'}",
        ),
        (as_text(scenario.settings.epsilon), "ε, the price of an answer"),
        (f"{int(degrees.min()):,}", "states or more hide each state"),
        (_budget(scenario), "ε in all, the limit of each person"),
        (_length(errors[0], drawn.unit), "usual error of a raw answer (root mean square)"),
        (_length(errors[1], drawn.unit), "expected error of the estimate, by the model"),
    ]
    boxes = "".join(
        f'<div class="tile"><b>{escape(number)}</b><span>{escape(what)}</span></div>'
        for number, what in tiles
    )
    return (
        f"<h1>{escape(scenario.name)}: privacy report</h1>"
        f'<p class="badge">Public: everything here follows from the scenario and from released '
        f"answers</p>"
        f'<p class="lead">At every step each person\'s {_columns(scenario)} was answered with '
        f"noise. {escape(_policy_in_words(scenario, drawn.unit))}</p>"
        f'<p class="soft">Model of how people move: {escape(scenario.source)}.</p>'
        f'<div class="tiles">{boxes}</div>'
    )


def _learnable(
    scenario: Scenario, shown: TrackFacts, steps: list[Step], drawn: Drawn, last: Protected
) -> str:
    what = "places" if scenario.states.place_columns else "states"
    degrees = drawn.degrees(last)[last.possible]
    price = max(release.epsilon for release in shown.track.releases)
    alone = any(step.exposed for step in steps)
    cannot = [cannot_learn(price, what)]
    if alone:
        cannot.append("At some steps somebody is exposed: see the steps below.")
    else:
        cannot.append(
            f"Each possible state is hidden among {int(degrees.min())} to {int(degrees.max())} "
            f"states, itself included: no answer is evidence against them beyond that factor."
        )
    cannot.append(
        "Which noise was drawn, or how far an answer is from the truth: it is recorded nowhere."
    )
    statement = shown.statement
    errors = shown.expected_errors.mean(axis=0)
    can = [
        f"Roughly where somebody is. {what.capitalize()} that are not linked can be told apart: "
        f"one answer moves the odds of the worst pair {_factor(statement.worst_pair)}.",
        f"More from many answers than from one. Together with how people usually move they give "
        f"an estimate that is expected to be {_length(errors[1], drawn.unit)} off, and "
        f"{_length(errors[2], drawn.unit)} when all is known in hindsight.",
        "Where somebody stays for long. Each answer is protected; hours at one place are "
        "many answers about it, and their prices add up. If that is the secret, release less "
        "often or set a lower limit.",
        "All that was public before: the map, the policy, the model.",
    ]
    lines = statement.text().splitlines()
    return (
        "<h2>What an adversary can and cannot learn</h2>"
        '<p class="note">The adversary knows this page, the model and the policy, and may know '
        "anything else.</p>"
        f'<div class="pair"><div class="card"><h3 class="good">Cannot</h3>{_list(cannot)}</div>'
        f'<div class="card"><h3 class="bad">Can</h3>{_list(can)}</div></div>'
        f'<div class="card" style="margin-top:18px"><h3>The numbers for '
        f"{escape(shown.track.person)}</h3>{_list(lines)}</div>"
    )


def _pictures(scenario: Scenario, drawn: Drawn, last: Protected) -> str:
    near, others = drawn.neighbourhood()
    error = float(last.mechanism(scenario.settings.epsilon).mean_squared_error) ** 0.5
    entries = [("body", "the noise's body"), ("ball", "l1 ball (Laplace noise)")]
    if last.body != last.hull:
        entries.append(("inner", "the policy's own hull"))
    entries.append(("difference", "differences of linked states"))
    size = f"rank {last.body.rank}"
    ball = last.hull.l1_ball()
    if last.body.rank == scenario.query.dimension:
        ratio = float(ball.volume / last.body.volume)
        size += f"; the l1 ball is {ratio:.3g} times as large"
    return (
        "<h2>The map and the policy</h2>"
        '<div class="pair">'
        + _figure(
            drawn.map(),
            drawn.map_caption(),
            drawn.map_legend(),
        )
        + _figure(
            near,
            f"One state in the middle of the map (red) and the {others} that it must look like.",
            legend([("self", "a state"), ("near", "must look the same"), ("land", "others")]),
        )
        + _figure(
            drawn.hull(last),
            f"The sensitivity hull: the shape of the noise ({size}). An answer is usually "
            f"{_length(error, drawn.unit)} from the truth.",
            legend(entries),
        )
        + _figure(
            drawn.protection(last),
            "Degree of protection: how many possible states hide each state, itself included.",
            drawn.protection_legend(last),
        )
        + "</div>"
    )


def _layers(facts: TrackFacts) -> list[Layer]:
    return [
        Layer("released", "answer", facts.answers, dotted=True),
        Layer("estimate", "estimate", facts.estimates),
        Layer("smoothed", "smooth", facts.smoothed),
    ]


_TRACK_LEGEND = [
    ("answer", "released answers"),
    ("estimate", "estimate at the time"),
    ("smooth", "estimate in hindsight (smoothed)"),
]


def _person(shown: TrackFacts, drawn: Drawn) -> str:
    errors = shown.expected_errors
    labels = _short_times(shown.track.times)
    chart = curves(
        [
            Curve("raw", "answer", errors[:, 0].tolist()),
            Curve("estimate", "estimate", errors[:, 1].tolist()),
            Curve("smoothed", "smooth", errors[:, 2].tolist()),
        ],
        labels,
        "expected distance to the truth",
        drawn.unit,
    )
    return (
        f"<h2>What was said about {escape(shown.track.person)}</h2>"
        f'<p class="note">{len(shown.track.releases)} answers, from '
        f"{escape(shown.track.times[0])} to {escape(shown.track.times[-1])}. Estimates are made "
        f"from the answers and the model alone; anybody can make them.</p>"
        '<div class="pair">'
        + _figure(
            drawn.tracks(_layers(shown), labels),
            "Released answers and what the model makes of them.",
            legend(_TRACK_LEGEND),
        )
        + _figure(
            chart + drawn.coordinates(_layers(shown)[1:], labels),
            "How far each is expected to be from the truth if the person moves as the model "
            "says, which can be optimistic; and the estimates over time.",
            legend(_TRACK_LEGEND),
        )
        + "</div>"
    )


def _prices(
    scenario: Scenario, people: dict[str, TrackFacts], shown: TrackFacts, steps: list[Step]
) -> str:
    limit = scenario.settings.limit
    rows = []
    for name, facts in list(people.items())[:PEOPLE_LISTED]:
        spent = facts.track.spent
        worst = max(said.step.constrained(said.epsilon) for said in facts.track.stream.said)
        left = "no limit" if limit is None else as_text(limit - spent)
        rows.append([name, f"{len(facts.track.releases):,}", _number(spent), left,
                     _number(worst)])  # fmt: skip
    more = len(people) - PEOPLE_LISTED
    note = f'<p class="note">and {more:,} more people</p>' if more > 0 else ""
    ledger_table = _table(
        ["person", "answers", "ε spent", "ε left", "worst pair ε, one step"], rows
    )
    checked = _table(
        ["step", "possible", "exposed", "repair adds", "hull",
         "hidden among", "usual error", "worst pair ε"],
        [
            [str(step.time), f"{step.possible:,}", f"{len(step.exposed_before):,}",
             f"{len(step.added):,}", f"rank {step.rank}, size {step.volume:.4g}",
             f"{step.least_protection} to {step.most_protection}", f"{step.error:.4g}",
             _number(step.constrained_epsilon)]
            for step in steps
        ],
    )  # fmt: skip
    lasting = (
        f'<p class="note">From step {steps[-1].time} on nothing changes until something is '
        f"released.</p>"
        if steps[-1].lasts
        else ""
    )
    columns = scenario.columns
    said = scenario.in_places(shown.answers)
    estimates = scenario.in_places(shown.estimates)
    smoothed = scenario.in_places(shown.smoothed)
    numbers = [
        [time, *(_coordinate(v) for v in (*said[k], *estimates[k], *smoothed[k])),
         as_text(shown.track.releases[k].epsilon)]
        for k, time in enumerate(shown.track.times[:ROWS_LISTED])
    ]  # fmt: skip
    heads = [*columns, *(f"estimate {c}" for c in columns), *(f"smoothed {c}" for c in columns)]
    return (
        "<h2>Ledger</h2>"
        '<p class="note">What each person has spent of their budget. Between states that are not '
        "linked a step may cost more than ε; the last column says how much at worst.</p>"
        f"{ledger_table}{note}"
        "<h2>The first steps</h2>"
        '<p class="note">Before anything is released: who would be exposed, and what repair does '
        f"about it.</p>{checked}{lasting}"
        f"<details><summary>Every answer about {escape(shown.track.person)}</summary>"
        f"{_table(['time', *heads, 'ε'], numbers)}</details>"
    )


def _private(people: dict[str, TrackFacts], shown: TrackFacts, drawn: Drawn, truth: Truth) -> str:
    everybody = [facts for facts in people.values() if truth.of(facts) is not None]
    rows = []
    for name, those in (
        *((facts.track.person, [facts]) for facts in everybody[:PEOPLE_LISTED]),
        *([("everybody", everybody)] if everybody else []),
    ):
        found = private_errors(those, truth)
        rows.append([name, f"{found.releases:,}", *(
            _length(value, drawn.unit) for value in (found.raw, found.estimate, found.smoothed)
        )])  # fmt: skip
    table = _table(["person", "answers", "raw answer", "estimate", "smoothed"], rows)
    states = truth.of(shown)
    picture = ""
    if states is not None:
        real = Layer("true", "truth", shown.track.stream.query.values[states])
        labels = _short_times(shown.track.times)
        picture = (
            '<div class="single">'
            + _figure(
                drawn.tracks([*_layers(shown), real], labels),
                f"The true track of {shown.track.person}, over what was released.",
                legend([*_TRACK_LEGEND, ("truth", "true track")]),
            )
            + "</div>"
        )
    missing = len(people) - len(everybody)
    note = f'<p class="note">No complete truth for {missing:,} people.</p>' if missing else ""
    return (
        '<section class="private"><h2>Private: do not publish</h2>'
        "<p>This section is computed from the true trips. It is for their owner, to judge how "
        "useful the answers are. Make the page again without the true trips before sharing it."
        f"</p><h3>Mean distance to the truth</h3>{table}{note}{picture}</section>"
    )


def _policy_in_words(scenario: Scenario, unit: str) -> str:
    chosen, parts = scenario.settings.policy, []
    if chosen.complete:
        parts.append("all states must look alike")
    if chosen.category is not None:
        parts.append(f"states with the same {chosen.category} must look alike")
    if chosen.distance is not None:
        length = f"{as_text(chosen.distance)} {unit}".strip()
        parts.append(f"states at most {length} apart must look alike")
    if chosen.one_step:
        parts.append("states that one state leads to must look alike")
    if chosen.edges is not None:
        parts.append("the pairs listed by the owner must look alike")
    if not parts:
        return "The policy links no states; only repair protects."
    return f"The policy: {'; '.join(parts)}."


def _columns(scenario: Scenario) -> str:
    if scenario.columns == scenario.states.place_columns:
        return "place"
    return escape(", ".join(scenario.columns))


def _short_times(times: Sequence[str]) -> list[str]:
    """Times for an axis: of dates on one day the clock alone."""
    days = {time[:10] for time in times}
    if len(days) == 1 and all(len(time) >= 16 and time[10:11] in "T " for time in times):
        return [time[11:16] for time in times]
    return [time[:16].replace("T", " ") for time in times]


def _figure(picture: str, caption: str, key: str = "") -> str:
    return f"<figure>{picture}{key}<figcaption>{escape(caption)}</figcaption></figure>"


def _budget(scenario: Scenario) -> str:
    limit = scenario.settings.limit
    return "no limit" if limit is None else as_text(limit)


def _list(sentences: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</ul>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return (
        f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'
        "</div>"
    )


def _length(value: float, unit: str) -> str:
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{text} {unit}".strip()


def _number(value: Fraction | float) -> str:
    return "∞" if value == inf else f"{float(value):.4g}"


def _coordinate(value: np.floating | float) -> str:
    return f"{float(value):.7g}"


def _factor(loss: Fraction | float) -> str:
    if loss == inf:
        return "without limit"
    if loss > 14:
        return f"by up to e^{float(loss):.3g}, which is no useful limit"
    return f"by at most a factor of {exp(loss):.3g}"
