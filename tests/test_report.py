"""The page about a scenario and its releases: one file, public, and the library's numbers."""

from __future__ import annotations

import csv
import json
import re
import zlib
from base64 import b64decode, b64encode
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from hashlib import sha256
from html.parser import HTMLParser
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphmm import Limit, MarkovModel, PolicyGraph
from dphmm.books.changing import open_book
from dphmm.cost.history import History
from dphmm.cost.statement import privacy_statement
from dphmm.cost.words import CONDITION
from dphmm.errors import ArgumentError
from dphmm.noise.distance import mean_noise
from dphmm.noise.randomness import SeededRandomness
from dphmm.report import TrackFacts, Truth, private_errors, read_truth, scenario_page
from dphmm.report import page as page_module
from dphmm.report.beliefs import BOUNDS, name_classes
from dphmm.report.charts import budgets_of
from dphmm.report.figures import Drawings, sample_links
from dphmm.report.ground import Ground
from dphmm.report.moments import LABEL, Moments
from dphmm.report.svg import curves, nice_ticks
from dphmm.scenario import Clock, Policy, Scenario
from dphmm.scenario.released import Track, read_releases
from dphmm.tables.units import measure
from tests import paper
from tests.colours import parse
from tests.scenarios import is_one_line, paper_scenario, run, scenarios, trips, written

ELSEWHERE = re.compile(
    r"https?:|//|src=|href=(?!\"#)|url\(|@import|<script src|<link|<iframe|<img", re.I
)
SCRIPT = re.compile(r"<script(?: type=\"application/json\" id=\"data\")?>(.*?)</script>", re.S)
REACHES = re.compile(r"https?:|fetch|XMLHttp|WebSocket|import\b|sendBeacon|\.src\b|\.href\b|eval\b")
POWER = re.compile(r"e\^|(?<![\w.#])\d[\d.]*e[+-]?\d+")
"""A number as a power of e or of ten."""
VOID = {"meta", "br", "hr", "input"}
EXACT = 1e-12
WALK = [("ann", 1, 3), ("ann", 2, 4), ("ann", 4, 5), ("bob", 1, 2), ("bob", 2, 3)]


class Balanced(HTMLParser):
    """Fails on an element that is closed by another or not at all."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def assert_is_one_file(page: str) -> None:
    scripts = SCRIPT.findall(page)
    assert page.count("<script") == len(scripts)
    assert not any(REACHES.search(script) for script in scripts[1:])
    shown = SCRIPT.sub("", page)
    assert not ELSEWHERE.search(shown)
    assert not POWER.search(re.sub(r"<style>.*?</style>|<[^>]*>", " ", shown, flags=re.S))
    reader = Balanced()
    reader.feed(page)
    assert reader.open == []


def released(folder: Path, *rows: tuple[str, object, int], **changes: object) -> tuple[Path, Path]:
    """A scenario on disk and the file of its releases."""
    toml = written(folder, **changes)
    (folder / "trips.csv").write_text(trips(*(rows or WALK)))
    out = folder / "released.csv"
    result = run("release", toml, folder / "trips.csv", "-o", out)
    assert result.exit_code == 0, result.stderr
    return toml, out


def said(
    scenario: Scenario, person: str, states: list[int], seed: int = 1, epsilon: int | None = None
) -> TrackFacts:
    """A track of answers as if read from a file, with an experiment's noise."""
    stream = scenario.stream(person, randomness=SeededRandomness(np.random.default_rng(seed)))
    track = Track(person, stream)
    for time, state in enumerate(states, start=1):
        track.releases.append(stream.release(state, epsilon))
        assert stream._step is not None
        track.times.append(str(time))
        track.slots.append(time)
        track.protected.append(stream._step)
    return TrackFacts(track)


# Paper


def test_the_running_example_makes_one_page_that_loads_nothing(tmp_path: Path) -> None:
    toml, out = released(tmp_path)
    result = run("report", toml, out, "-o", tmp_path / "report.html")
    assert result.exit_code == 0
    page = (tmp_path / "report.html").read_text()
    assert_is_one_file(page)
    for words in (
        "can and cannot learn",
        "Ledger",
        "l1 ball",
        "Degree of protection",
        "ann",
        "bob",
    ):
        assert words in page
    assert "states with the same category must look alike" in page
    assert "do not publish" not in page


def test_the_promise_is_stated_in_numbers(tmp_path: Path) -> None:
    toml, out = released(tmp_path, epsilon=Fraction(1, 2))
    run("report", toml, out, "-o", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    # e^0.5 is 1.6487: what is "at most" so much is rounded up, and stated zeros are a condition.
    assert (
        "become at most 1.65 to 1 (epsilon 0.5), whatever else is known about the person, " in page
    )
    (promise,) = (line for line in page.splitlines() if "become at most 1.65" in line)
    assert promise.endswith(f", {CONDITION}.</li>")
    (tmp_path / "set").mkdir()
    toml, out = released(tmp_path / "set", delta=Fraction(1, 10))
    run("report", toml, out, "-o", tmp_path / "set.html")
    assert (
        "outside the 0.9 location set are not protected.</li>"
        in (tmp_path / "set.html").read_text()
    )


def test_the_public_page_follows_from_what_was_published_alone(tmp_path: Path) -> None:
    toml, out = released(tmp_path)
    run("report", toml, out, "-o", tmp_path / "before.html")
    (tmp_path / "trips.csv").unlink()
    run("report", toml, out, "-o", tmp_path / "after.html")
    assert (tmp_path / "before.html").read_bytes() == (tmp_path / "after.html").read_bytes()


def test_the_truth_adds_one_labelled_section_and_a_warning_and_changes_nothing_else(
    tmp_path: Path,
) -> None:
    toml, out = released(tmp_path)
    run("report", toml, out, "-o", tmp_path / "public.html")
    result = run(
        "report", toml, out, "-o", tmp_path / "private.html",
        "--private-truth", tmp_path / "trips.csv",
    )  # fmt: skip
    assert "do not publish" in result.stderr
    public, private = ((tmp_path / f"{name}.html").read_text() for name in ("public", "private"))
    start = private.index('<section class="private"><h2>Private: do not publish</h2>')
    end = private.rindex("</section>") + len("</section>")
    assert "Public: everything here" not in private
    badges = [re.search(r'<p class="badge.*</p>', page) for page in (private, public)]
    said, wanted = (badge.group() for badge in badges if badge is not None)
    assert "Private: the last section" in said
    assert (private[:start] + private[end:]).replace(said, wanted) == public
    assert_is_one_file(private)


def test_json_says_what_was_spent_and_only_with_the_truth_how_good_it_was(tmp_path: Path) -> None:
    toml, out = released(tmp_path)
    page = tmp_path / "report.html"
    facts = json.loads(run("report", toml, out, "-o", page, "--json").stdout)
    assert facts["spent"] == {"ann": "3", "bob": "2"}
    assert facts["releases"] == 5
    assert "private_errors" not in facts
    truth = ("--private-truth", tmp_path / "trips.csv")
    facts = json.loads(run("report", toml, out, "-o", page, "--json", *truth).stdout)
    assert facts["private"] is True
    kinds = {"raw", "estimate", "lagged", "smoothed"}
    assert set(facts["private_errors"]) == {*kinds, "expected", "map", "fixes"}
    assert set(facts["private_errors"]["expected"]) == kinds


def test_the_chosen_person_is_shown_first(tmp_path: Path) -> None:
    toml, out = released(tmp_path)
    run("report", toml, out, "-o", tmp_path / "report.html", "--person", "bob")
    page = (tmp_path / "report.html").read_text()
    assert '<option value="0">bob</option>' in page
    assert page.index('aria-label="bob"') < page.index('aria-label="ann"')
    assert "The numbers for bob" in page
    assert "The numbers for ann" not in page


# Laws


@settings(max_examples=15)
@given(scenarios(), st.integers(1, 5))
def test_every_scenario_has_a_page(scenario: Scenario, steps: int) -> None:
    facts = said(scenario, "<script>&ann", [0] * steps)
    page = scenario_page(scenario, [facts], unit="m")
    assert_is_one_file(page)
    assert "&lt;script&gt;&amp;ann" in page
    truth = Truth({("<script>&ann", time): 0 for time in range(1, steps + 1)})
    assert_is_one_file(scenario_page(scenario, [facts], truth=truth))


@pytest.mark.parametrize("columns", [("x",), ("x", "y", "height")])
def test_a_query_of_any_dimension_has_a_page(columns: tuple[str, ...]) -> None:
    base = paper_scenario(columns=columns, policy=Policy(complete=True))
    heights = {"height": np.arange(6.0) ** 2}
    states = type(base.states)(base.labels, {**base.states.numbers, **heights})
    scenario = Scenario.from_settings(base.settings, states, base.model)
    assert_is_one_file(scenario_page(scenario, [said(scenario, "ann", [2, 3, 4])]))


def test_labels_and_categories_are_text_not_markup() -> None:
    base = paper_scenario()
    labels = tuple(f"<i>{label}" for label in base.labels)
    kinds = {"category": tuple(f"<u>{kind}" for kind in base.states.texts["category"])}
    states = type(base.states)(labels, base.states.numbers, kinds)
    scenario = Scenario.from_settings(replace(base.settings, start=labels[0]), states, base.model)
    page = scenario_page(scenario, [said(scenario, "ann", [2, 3])])
    assert "<i>" not in page
    assert "<u>" not in page
    assert "&lt;i&gt;" in page
    assert "&lt;u&gt;" in page


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_few_round_and_within_their_range(low: float, size: float) -> None:
    ticks = nice_ticks(low, low + size, 4)
    assert 2 <= len(ticks) <= 8
    slack = 1e-6 * (abs(low) + size)
    assert all(low - slack <= tick <= low + size + slack for tick in ticks)


def test_a_chart_of_one_moment_or_of_constants_is_drawn() -> None:
    from dphmm.report.svg import Curve

    for values in ([0.0], [5.0, 5.0], [-3.0, -3.0]):
        labels = [str(number) for number in range(len(values))]
        assert "nan" not in curves([Curve("a", "answer", values)], labels, "what", "m")
        assert "nan" not in curves([Curve("a", "answer", values)], labels, "w", "", from_zero=False)


def test_large_policies_are_thinned_to_edges_they_have() -> None:
    from dphmm import PolicyGraph

    for policy in (PolicyGraph.complete(2000), PolicyGraph.complete(7)):
        links = sample_links(policy, 100)
        assert 0 < len(links) <= 100
        assert (links[:, 0] != links[:, 1]).all()


# Oracle


def test_estimates_and_smoothed_estimates_are_the_streams_own(tmp_path: Path) -> None:
    toml, out = released(tmp_path)
    scenario = Scenario.load(toml)
    for track in read_releases(out, scenario):
        facts = TrackFacts(track)
        steps = [release.time - 1 for release in track.releases]
        np.testing.assert_allclose(facts.smoothed, track.stream.smoothed()[steps], rtol=EXACT)
        for lag, kind in ((0, facts.estimates), (99, facts.smoothed)):
            np.testing.assert_allclose(TrackFacts(track, lag).lagged, kind, rtol=EXACT)
    lines = [line.split(",") for line in out.read_text().splitlines()]
    place = lines[0].index("estimate_x")
    ann = TrackFacts(read_releases(out, scenario)[0])
    written_out = [[float(v) for v in line[place : place + 2]] for line in lines[1:4]]
    np.testing.assert_array_equal(ann.estimates.round(3), written_out)


def test_expected_errors_are_sums_over_the_posterior() -> None:
    scenario = paper_scenario()
    facts = said(scenario, "ann", [2, 3, 4])
    stream = facts.track.stream
    filtered = stream.model.filter(stream.observations(), start=stream.start)
    for belief, point, errors in zip(filtered, facts.estimates, facts.expected_errors, strict=True):
        total = 0.0
        for state, value in enumerate(scenario.query.values):
            total += belief.probabilities[state] * float(np.hypot(*(value - point)))
        assert errors[1] == pytest.approx(total, rel=EXACT)
    mechanism = facts.track.protected[0].mechanism(Fraction(1))
    assert facts.expected_errors[0, 0] == mean_noise(mechanism)
    assert facts.noises[0, 1] == pytest.approx(mechanism.mean_squared_error**0.5, rel=EXACT)


def test_the_statement_is_the_accounts_own() -> None:
    scenario = paper_scenario()
    facts = said(scenario, "ann", [2, 3, 4])
    hulls = [step.body for step in facts.track.protected]
    history = History.of(scenario.query, scenario.model, hulls, 1, start=scenario.start)
    expected = privacy_statement(history)
    found = facts.statement
    assert (found.spent, found.event, found.sequence) == (3, expected.event, expected.sequence)
    # A file may not be all that was said about somebody, and each sentence says so.
    alone = replace(expected, besides=None)
    assert found.text().splitlines()[:5] == alone.text().splitlines()[:5]
    page = scenario_page(scenario, [facts])
    assert "3 releases, epsilon 3 by these answers alone; more may have been spent" in page


def test_private_errors_are_mean_distances() -> None:
    scenario = paper_scenario()
    states = [2, 3, 4]
    facts = said(scenario, "ann", states)
    truth = Truth({("ann", time): state for time, state in enumerate(states, start=1)})
    assert "3" not in repr(truth)
    values = np.array(paper.VALUES, dtype=float)[states]
    found = private_errors([facts], truth)
    rows = zip(facts.answers, values, strict=True)
    assert found.raw == pytest.approx(sum(float(np.hypot(*(a - b))) for a, b in rows) / 3)
    assert found.releases == 3


def test_errors_are_to_the_true_coordinates_and_the_map_has_its_part(tmp_path: Path) -> None:
    toml, out = released(tmp_path)
    lines = (tmp_path / "trips.csv").read_text().splitlines()
    # Everybody is 3 to the right of and 4 above their state, but for one row without coordinates.
    values, rows = paper.VALUES, [f"{lines[0]},x,y"]
    for line, (_, _, state) in zip(lines[1:], WALK, strict=True):
        rows.append(f"{line},{values[state - 1][0] + 3},{values[state - 1][1] + 4}")
    rows[-1] = f"{lines[-1]},,"
    (tmp_path / "true.csv").write_text("\n".join(rows) + "\n")
    scenario = Scenario.load(toml)
    truth = read_truth(tmp_path / "true.csv", scenario)
    facts = [TrackFacts(track) for track in read_releases(out, scenario)]
    found = private_errors(facts, truth)
    assert (found.map, found.fixes, found.steps, found.releases) == (5, 4, 5, 5)
    places = np.array([values[state - 1] for _, _, state in WALK], dtype=float)
    places[:4] += [3, 4]
    answers = np.concatenate([one.answers for one in facts])
    assert found.raw == pytest.approx(np.linalg.norm(answers - places, axis=1).mean(), rel=EXACT)
    hoped = np.concatenate([one.expected_errors for one in facts]).mean(axis=0)
    np.testing.assert_allclose(found.expected, hoped, rtol=EXACT)
    page = scenario_page(scenario, facts, truth=truth, unit="m")
    assert "which 4 of 5 steps have; for the others to the place of their state" in page
    assert "<td>5 m</td>" in page


def test_the_earliest_row_of_a_step_is_the_one_that_was_answered(tmp_path: Path) -> None:
    toml = written(tmp_path, clock=Clock(2))
    lines = trips(("ann", 3, 5), ("ann", 2, 3)).splitlines()
    (tmp_path / "trips.csv").write_text(f"{lines[0]},x,y\n{lines[1]},7,7\n{lines[2]},8,9\n")
    truth = read_truth(tmp_path / "trips.csv", Scenario.load(toml))
    assert dict(truth.states) == {("ann", 1): 2}
    assert truth.fixes["ann", 1].tolist() == [8, 9]


def test_everybody_can_be_picked_and_says_what_was_given_away(tmp_path: Path) -> None:
    toml, out = released(tmp_path)
    assert run("report", toml, out, "-o", tmp_path / "report.html").exit_code == 0
    page = (tmp_path / "report.html").read_text()
    for number, name in enumerate(("ann", "bob")):
        assert f'<option value="{number}">{name}</option>' in page
        assert f'data-number="{number}" aria-label="{name}"' in page
        (sentence,) = re.findall(rf"<p>(These answers gave away [^<]* of {name} [^<]*)</p>", page)
        assert sentence.endswith("whoever knows more can be surer.")


# Bad input


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: "", "released.csv"),
        (lambda text: text.splitlines()[0] + "\n", "at least one release"),
        (lambda text: text.replace("epsilon", "price"), "column epsilon"),
        (lambda text: re.sub(r"(?m),1,([^,]*)$", r",0,\1", text), "released.csv:2"),
        (lambda text: re.sub(r"(?m)^ann,1,[^,]*", "ann,1,nan", text), "released.csv:2"),
        (lambda text: re.sub(r"(?m)^ann,1,[^,]*", "ann,1,inf", text), "released.csv:2"),
        (lambda text: re.sub(r"(?m)^ann,2,[^,]*", "ann,1,777", text), "released.csv:3"),
    ],
)
def test_a_file_that_is_no_release_gets_one_line(tmp_path: Path, change, says: str) -> None:
    toml, out = released(tmp_path)
    out.write_text(change(out.read_text()))
    result = run("report", toml, out, "-o", tmp_path / "report.html")
    assert (result.exit_code, is_one_line(result.stderr)) == (2, True)
    assert says in result.stderr
    assert not (tmp_path / "report.html").exists()


def test_a_second_row_of_a_step_that_says_the_same_changes_nothing(tmp_path: Path) -> None:
    toml, out = released(tmp_path)
    once = run("report", toml, out, "-o", tmp_path / "report.html", "--json").stdout
    head, first, *rest = out.read_text().splitlines(keepends=True)
    out.write_text("".join([head, first, first, *rest]))
    assert run("report", toml, out, "-o", tmp_path / "report.html", "--json").stdout == once


def test_an_unknown_person_and_an_output_that_is_an_input_get_one_line(tmp_path: Path) -> None:
    toml, out = released(tmp_path)
    for more in (("--person", "eve", "-o", tmp_path / "r.html"), ("-o", out), ("-o", toml)):
        before = out.read_bytes()
        result = run("report", toml, out, *more)
        assert (result.exit_code, is_one_line(result.stderr)) == (2, True)
        assert out.read_bytes() == before


def test_a_truth_that_is_incomplete_is_said_and_left_out(tmp_path: Path) -> None:
    toml, out = released(tmp_path)
    (tmp_path / "part.csv").write_text(trips(("bob", 1, 2), ("bob", 2, 3)))
    result = run(
        "report", toml, out, "-o", tmp_path / "r.html", "--private-truth", tmp_path / "part.csv"
    )
    assert result.exit_code == 0
    assert "No complete truth for 1 people" in (tmp_path / "r.html").read_text()


def test_a_truth_of_nobody_in_the_file_is_refused(tmp_path: Path) -> None:
    # A page with a private section and nothing in it says that all is well.
    toml, out = released(tmp_path)
    (tmp_path / "others.csv").write_text(trips(("zoe", 1, 2), ("zoe", 2, 3)))
    page = tmp_path / "r.html"
    result = run("report", toml, out, "-o", page, "--private-truth", tmp_path / "others.csv")
    assert (result.exit_code, is_one_line(result.stderr)) == (2, True)
    assert "others.csv: trips must have every step of somebody in" in result.stderr
    assert "zoe" not in result.stderr
    assert not page.exists()


def test_a_page_needs_somebody() -> None:
    scenario = paper_scenario()
    with pytest.raises(ArgumentError, match="at least one person"):
        scenario_page(scenario, [])
    with pytest.raises(ArgumentError, match="one of the 1 released people"):
        scenario_page(scenario, [said(scenario, "ann", [2])], person="eve")


def test_a_report_on_a_second_day_counts_the_first(tmp_path: Path) -> None:
    toml = written(tmp_path, limit=Limit(9))
    days = []
    for day, steps in enumerate(((1, 2, 3), (4, 5))):
        days.append(tmp_path / f"day{day}.csv")
        (tmp_path / "trips.csv").write_text(trips(*(("ann", time, 2) for time in steps)))
        assert run("release", toml, tmp_path / "trips.csv", "-o", days[-1]).exit_code == 0
    scenario, page = Scenario.load(toml), tmp_path / "report.html"
    book = toml.with_name(f"{toml.stem}.ledger.jsonl")
    asked = run("report", toml, days[1], "-o", page, "--json")
    assert asked.exit_code == 0, asked.output
    assert json.loads(asked.stdout)["spent"] == {"ann": "5"}
    assert "5 releases, epsilon 5 in all" in json.loads(asked.stdout)["statement"]
    assert "<td>4</td>" in page.read_text()  # left of 9
    with closing(open_book(str(book))) as held:
        (track,) = read_releases(days[1], scenario, book=held)
    assert [release.time for release in track.releases] == [4, 5]
    estimates = [
        [float(row["estimate_x"]), float(row["estimate_y"])]
        for row in csv.DictReader(days[1].read_text().splitlines())
    ]
    np.testing.assert_array_equal(TrackFacts(track).estimates.round(3), estimates)
    # Without the ledger the page says that it is not everything, and what is left is not said.
    book.rename(tmp_path / "elsewhere")
    alone = run("report", toml, days[1], "-o", page, "--json")
    assert json.loads(alone.stdout)["spent"] == {"ann": "2"}
    assert "Whatever else was said about them" in page.read_text()
    assert "ε left" not in page.read_text()
    other = tmp_path / "other.ledger.jsonl"
    again = run("release", toml, tmp_path / "trips.csv", "-o", days[0], "--ledger", other)
    assert again.exit_code == 0, again.output
    refused = run("report", toml, days[1], "-o", page, "--ledger", other)
    assert is_one_line(refused.stderr)
    assert "row must be in the book" in refused.stderr


def test_the_price_of_one_answer_is_the_largest_of_anybody() -> None:
    scenario = paper_scenario()
    people = [said(scenario, "ann", [2]), said(scenario, "bob", [2], epsilon=3)]
    assert "become at most 20.1 to 1 (epsilon 3)" in scenario_page(scenario, people)


# What finding 11 of the studio's issue asks of a report; what needs a browser is in
# test_report_browser.py, and words are in test_words.py.


def dated(folder: Path, zone: str | None = None, hours: int = 30) -> tuple[Path, Path]:
    """A scenario with a clock of dates and hourly answers that pass midnight."""
    clock = Clock("1 h", zone=zone)
    toml = written(folder, clock=clock, limit=Limit.read("100 per 1 day, 900 in all"))
    start = datetime(2024, 4, 30, 15, tzinfo=UTC)
    times = [(start + timedelta(hours=n)).isoformat().replace("+00:00", "Z") for n in range(hours)]
    (folder / "trips.csv").write_text(trips(*(("ann", time, 3) for time in times)))
    out = folder / "released.csv"
    result = run("release", toml, folder / "trips.csv", "-o", out)
    assert result.exit_code == 0, result.stderr
    return toml, out


def test_times_are_local_beside_utc_and_days_are_told_apart(tmp_path: Path) -> None:
    toml, out = dated(tmp_path, "Asia/Tokyo")
    assert run("report", toml, out, "-o", tmp_path / "report.html").exit_code == 0
    page = (tmp_path / "report.html").read_text()
    assert "1 May 2024 00:00 to 2 May 2024 05:00 (Asia/Tokyo); 30 Apr 2024 15:00" in page
    assert "local time (Asia/Tokyo)" in page
    data = json.loads(SCRIPT.findall(page)[0])
    assert data["people"][0]["times"][:2] == ["1 May 00:00", "1 May 01:00"]
    assert data["people"][0]["utc"][0] == "30 Apr 2024 15:00"
    ticks = re.findall(r'class="small middle tick">([^<]+)<', page)
    assert "2 May 00:00" in ticks


@given(
    st.integers(-(10**5), 10**5),
    st.lists(st.integers(1, 400), max_size=60),
    st.sampled_from(["5 min", "1 h", "1 day", "20 s", None]),
    st.sampled_from([None, "Europe/Berlin", "America/New_York"]),
)
def test_labels_of_an_axis_never_overprint(
    first: int, gaps: list[int], step: str | None, zone: str | None
) -> None:
    clock = Clock(3) if step is None else Clock(step, zone=zone)
    slots = np.cumsum([first, *gaps]).tolist()
    moments = Moments(clock, slots)
    ticks = moments.ticks(484.0)
    assert ticks
    assert all(0 <= place <= 1 for place, _ in ticks)
    for (a, one), (b, other) in pairwise(ticks):
        assert (b - a) * 484 > LABEL * (len(one) + len(other)) / 2


def test_answers_outside_the_map_are_arrows_and_counted() -> None:
    scenario = paper_scenario()
    facts = said(scenario, "ann", [2, 3, 4], epsilon=Fraction(1, 100))
    assert (np.abs(facts.answers) > 100).any()
    page = scenario_page(scenario, [facts])
    outside = page.count('class="arrow answer"')
    assert outside > 0
    assert f"{outside} of 3 answers lie outside the map: arrows at its edge point to them" in page
    assert page.count('class="dot answer" data-step') == 3 - outside
    near = scenario_page(scenario, [said(scenario, "ann", [2, 3, 4], epsilon=50)])
    assert "arrow answer" not in near
    assert "outside the map" not in near


def test_one_error_everywhere_the_mean_distance(tmp_path: Path) -> None:
    toml, out = released(tmp_path, unit="m")
    run("report", toml, out, "-o", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    step = json.loads(run("check", toml, "--json").stdout)["steps"][-1]
    mean, root = measure(step["mean_error"], "m"), measure(step["error"], "m")
    assert mean != root
    shown, details = page.split("<summary>Details</summary>")
    assert f"<b>{mean}</b>" in shown
    assert f"An answer is on average {mean} from the truth" in shown
    assert root not in shown
    assert f"root mean square error of an answer is {root}" in details
    line = next(line for line in run("check", toml).stdout.splitlines() if line[:5].strip() == "1")
    assert (
        measure(json.loads(run("check", toml, "--json").stdout)["steps"][0]["mean_error"], "m")
        in line
    )


def test_a_policy_of_many_pairs_is_not_scribbled_over_the_map() -> None:
    scenario = paper_scenario()
    drawings = Drawings(Ground(scenario))
    assert 'class="link"' in drawings.map()
    assert "pairs that must look alike" in drawings.map_caption()
    values = [[x, y] for x in range(30) for y in range(30)]
    many = Scenario(
        values, MarkovModel(np.eye(900)), PolicyGraph.complete(900), epsilon=1, start="uniform"
    )
    drawn = Drawings(Ground(many))
    assert 'class="link"' not in drawn.map()
    assert "too many to draw" in drawn.map_caption()


def test_people_and_steps_that_say_the_same_are_one_row(tmp_path: Path) -> None:
    rows = [(name, time, 3) for name in ("ann", "bob", "cyd", "dan", "eve") for time in (1, 2)]
    toml, out = released(tmp_path, *rows)
    run("report", toml, out, "-o", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "<td>ann and 4 others</td><td>2</td><td>2</td>" in page


def test_spending_is_drawn_against_every_part_of_the_limit(tmp_path: Path) -> None:
    toml, out = dated(tmp_path)
    scenario = Scenario.load(toml)
    (track,) = read_releases(out, scenario)
    said = track.stream.said
    limit = scenario.settings.limit.in_steps(scenario.settings.clock.law)
    day, total = budgets_of(said, limit, track.slots[0], track.slots[-1])
    assert (day.words, day.limit, total.words, total.limit) == (
        "ε within any 1 day",
        100,
        "ε in all",
        900,
    )
    assert max(total.sums) == total.sums[-1] == track.spent == 30
    # The oracle: at each slot the sum of all prices of the last 24 slots.
    by_slot = dict(zip(day.times, day.sums, strict=True))
    for slot in track.slots:
        within = sum(one.epsilon for one in said if slot - 24 < one.time <= slot)
        reached = by_slot[max(time for time in by_slot if time <= slot)]
        assert reached == within
    run("report", toml, out, "-o", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert page.count('class="answered"') == 30 * 2 + 2  # and in two keys
    assert "limit 100" in page
    assert "limit 900" in page


def test_the_page_allows_its_own_script_alone() -> None:
    page = scenario_page(paper_scenario(), [said(paper_scenario(), "ann", [2, 3])])
    _, script = SCRIPT.findall(page)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'")
    assert f"script-src 'sha256-{digest}'" in policy.replace("&#39;", "'")
    assert "unsafe-inline" not in policy.partition("script-src")[2]


def test_what_is_packed_is_what_is_believed() -> None:
    scenario = paper_scenario()
    facts = said(scenario, "ann", [2, 3, 4])
    stream = facts.track.stream
    seen = stream.model.smooth(stream.observations(), start=stream.start)
    packed = facts.packed["hindsight"]
    levels = np.frombuffer(zlib.decompress(b64decode(packed)), dtype=np.uint8).reshape(3, -1)
    bounds = [0.0, *BOUNDS, 1.0]
    for row, belief in zip(levels, seen, strict=True):
        for level, probability in zip(row.tolist(), belief.probabilities.tolist(), strict=True):
            assert bounds[level] <= probability <= bounds[level + 1] + EXACT
    assert len(name_classes()) == len(BOUNDS)


def test_labels_of_states_do_not_collide() -> None:
    scenario = paper_scenario()
    ground = Ground(scenario)
    found = ground.labels(ground.frame, ["a long name of a state"] * 6)
    boxes = []
    for text in found:
        x, y = (float(re.search(rf'{axis}="([\d.]+)"', text)[1]) for axis in "xy")
        boxes.append((x, y))
    for (x, y), (u, v) in combinations(boxes, 2):
        assert abs(y - v) >= 13 or abs(x - u) >= 8.6 * 22
    assert 0 < len(found) <= 6


def test_marks_and_text_stand_out_in_light_dark_and_on_paper() -> None:
    css = (Path(page_module.__file__).parent / "templates" / "page.css").read_text()
    light, dark, paper = (
        dict(re.findall(r"--([\w-]+): (#\w{6})", part))
        for part in re.findall(r":root \{(.*?)\}", css, re.S)
    )
    for theme in (light, light | dark, light | paper):
        brightness = dict(
            zip(theme, parse(list(theme.values())) @ [0.2126, 0.7152, 0.0722], strict=True)
        )

        def ratio(one: str, other: str, of: dict[str, float] = brightness) -> float:
            low, high = sorted((of[one], of[other]))
            return (high + 0.05) / (low + 0.05)

        for text in ("ink", "soft", "accent", "alarm", "given"):
            for ground in ("paper", "surface"):
                assert ratio(text, ground) >= 4.5, (text, ground)
        for mark in ("answer", "estimate", "late", "smooth", "truth", "given", "accent", "alarm"):
            for ground in ("surface", "land"):
                assert ratio(mark, ground) >= 3, (mark, ground)
        for border in ("strong", "focus"):
            assert ratio(border, "surface") >= 3, border
