"""The page about a scenario and its releases: one file, public, and the library's numbers."""

from __future__ import annotations

import csv
import json
import re
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphmm import Limit
from dphmm.books.changing import open_book
from dphmm.cost import privacy_statement
from dphmm.cost.history import History
from dphmm.cost.words import CONDITION
from dphmm.errors import ArgumentError
from dphmm.noise.randomness import SeededRandomness
from dphmm.report import TrackFacts, Truth, private_errors, read_truth, scenario_page
from dphmm.report.figures import sample_links
from dphmm.report.svg import curves, nice_ticks
from dphmm.scenario import Clock, Policy, Scenario
from dphmm.scenario.released import Track, read_releases
from tests import paper
from tests.scenarios import is_one_line, paper_scenario, run, scenarios, trips, written

ELSEWHERE = re.compile(r"https?:|//|src=|href=|url\(|@import|<script|<link|<iframe|<img", re.I)
VOID = {"meta", "br", "hr"}
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
    assert not ELSEWHERE.search(page)
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


def test_the_truth_adds_one_labelled_section_and_changes_nothing_else(tmp_path: Path) -> None:
    toml, out = released(tmp_path)
    run("report", toml, out, "-o", tmp_path / "public.html")
    result = run(
        "report", toml, out, "-o", tmp_path / "private.html",
        "--private-truth", tmp_path / "trips.csv",
    )  # fmt: skip
    assert "do not publish" in result.stdout
    public, private = ((tmp_path / f"{name}.html").read_text() for name in ("public", "private"))
    start = private.index('<section class="private"><h2>Private: do not publish</h2>')
    end = private.index("</section>") + len("</section>")
    assert private[:start] + private[end:] == public
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


def test_the_chosen_person_is_drawn(tmp_path: Path) -> None:
    toml, out = released(tmp_path)
    run("report", toml, out, "-o", tmp_path / "report.html", "--person", "bob")
    assert "What was said about bob" in (tmp_path / "report.html").read_text()


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
    noise = facts.track.protected[0].mechanism(Fraction(1)).mean_squared_error ** 0.5
    assert facts.expected_errors[0, 0] == pytest.approx(noise, rel=EXACT)


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


def test_everybody_can_be_picked_and_has_a_list_of_places(tmp_path: Path) -> None:
    toml, out = released(tmp_path)
    assert run("report", toml, out, "-o", tmp_path / "report.html").exit_code == 0
    page = (tmp_path / "report.html").read_text()
    assert '<details name="person"><summary>bob: 2 answers' in page
    assert page.count("that these answers gave away") == 1
    assert page.count("Whoever knows more can be surer.") == 2


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
