"""What the studio shows is what the file says, what `dphmm check` computes and what is saved."""

from __future__ import annotations

import json
import random
import re
import tempfile
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

pytest.importorskip("pydantic")
pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

from dphmm.chain.chains import TimeVaryingModel
from dphmm.chain.markov import MarkovModel
from dphmm.cost.limit import Limit
from dphmm.errors import ArgumentError, DataError
from dphmm.noise.cones import Fan
from dphmm.release.schedule import Schedule
from dphmm.report import page
from dphmm.scenario import Clock, Policy, Scenario, Settings, States
from dphmm.scenario.checking import narrows
from dphmm.scenario.headline import headline, warnings
from dphmm.studio import drawing, requests, saving
from dphmm.studio.effects import Situation, timeline
from dphmm.studio.opened import rewrite, values_of
from dphmm.studio.requests import read_request
from dphmm.studio.server import run_in_background, serve
from tests.colours import blindnesses, difference, parse
from tests.scenarios import LABELS, paper_scenario, run, scenarios, written
from tests.test_report import said
from tests.test_studio_server import Client

TEXT = """\
# The town of the brochure
name = "town"   # shown on pages

epsilon = 0.50  # agreed in May
start = 'uniform'
states = "states.csv"

[policy]
# both rules were asked for
distance = "4"
category = "category"

[query]
step = "1"
"""


def draft_of(**fields: Any) -> requests.Draft:
    return read_request(requests.Save, fields, 6)


@pytest.fixture
def town(tmp_path: Path) -> Path:
    """The running example under a policy of two rules, in a file that somebody wrote."""
    path = written(tmp_path)
    path.write_text(TEXT)
    return path


# Findings


def test_a_policy_of_two_rules_opens_as_two_rules(town: Path) -> None:
    shown = saving.open_file(town).described["settings"]
    assert (shown["policy.distance"], shown["policy.category"]) == ("4", "category")
    assert (shown["policy.complete"], shown["policy.edges"]) == (False, None)


def test_one_rule_is_edited_and_the_other_and_every_comment_stays(town: Path) -> None:
    opened = saving.open_file(town)
    saving.save(opened, draft_of(changes={"policy.distance": "3", "epsilon": "0.75"}))
    wanted = TEXT.replace('distance = "4"', 'distance = "3"').replace("0.50", "0.75")
    assert town.read_text() == wanted


def test_a_limit_a_schedule_and_a_start_come_into_a_file_that_had_none(town: Path) -> None:
    changes = {"limit": "4 per 8 steps", "when.every": 2, "start": LABELS[1], "repair": "none"}
    saving.save(saving.open_file(town), draft_of(changes=changes))
    read = Scenario.load(town).settings
    assert (str(read.limit), read.speaks, read.start) == (
        "4 per 8 steps",
        "every 2 steps",
        LABELS[1],
    )
    assert read.repair is None
    assert "# both rules were asked for" in town.read_text()


def test_noise_start_and_delta_are_those_of_the_file(tmp_path: Path) -> None:
    chosen = {"mechanism": "laplace", "start": "uniform", "delta": Fraction(1, 8)}
    path = written(tmp_path, **chosen, policy=Policy(complete=True))
    opened = saving.open_file(path)
    found = Situation.of(opened.scenario, 3).released()["step"]
    assert (
        json.loads(json.dumps(found))
        == json.loads(run("check", path, "--json", "--steps", 3).output)["steps"][2]
    )


def test_a_model_that_follows_the_hours_is_shown(tmp_path: Path) -> None:
    first, second = MarkovModel(np.full((2, 2), 0.5)), MarkovModel(np.eye(2))
    states = States.on_plane([[0, 0], [3, 4]], labels=("home", "work"))
    chosen = Settings("town", Fraction(1), start="home", policy=Policy(complete=True))
    scenario = Scenario.from_settings(chosen, states, TimeVaryingModel([second, first]))
    path = tmp_path / "town.toml"
    scenario.save(path)
    opened = saving.open_file(path)
    possible = [Situation.of(opened.scenario, step).effects()["n_possible"] for step in (1, 2, 3)]
    assert possible == [step.possible for step in scenario.check(3).steps]
    assert len(possible) == 3


def test_a_scenario_that_cannot_be_shown_is_refused_before_an_address_is_said(
    town: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(drawing, "MAX_STATES", 5)
    with pytest.raises(ArgumentError, match="at most 5 states in the studio, got 6"):
        serve(port=0, ready=said.append, path=town)
    assert said == []


def test_every_exposed_place_is_named_and_edges_are_thinned_with_a_count() -> None:
    places = [[x, y] for x in range(40) for y in range(40)]
    states = States.on_plane(np.array(places) * 10.0)
    stay = MarkovModel(np.full((1600, 1600), 1 / 1600))
    alone = Scenario(states, stay, Policy(distance=Fraction(1)), epsilon=1, repair=None)
    found = Situation.of(alone, 1).effects()
    assert len(found["before"]["exposed"]) == len(found["released"]["exposed"]) == 1600
    everybody = Situation.of(alone.replace(policy=Policy(complete=True)), 1).effects()["edges"]
    assert everybody["count"] == 1600 * 1599 // 2
    assert 3_900 < everybody["n_drawn"] == len(everybody["drawn"]) // 2 <= 4_000


def test_a_link_is_refused_on_another_scenario(town: Path) -> None:
    with run_in_background(town) as address:
        client = Client(address)
        opened = client.ask("/api/open", name="own")
        again = client.ask("/api/open", name="own", fingerprint=opened["fingerprint"])
        assert again["world"] == opened["world"]
        other = client.ask("/api/open", name="paper")["fingerprint"]
        status, answer = client.post("/api/open", {"name": "own", "fingerprint": other})
    assert status == 400
    assert "link must be one to this scenario" in answer["error"]


def test_an_answer_sums_its_noise_once_and_the_same_settings_never_again(
    town: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summed: list[float] = []
    sums = Fan.sums

    def counted(fan: Fan, epsilon: float) -> tuple[float, float]:
        summed.append(epsilon)
        return sums(fan, epsilon)

    monkeypatch.setattr(Fan, "sums", counted)
    opened, draft = saving.open_file(town), draft_of(changes={"policy.distance": "5"})
    found = [Situation.of(opened.scenario_of(draft), 6).effects() for _ in range(2)]
    assert found[0] == found[1]
    assert found[0]["released"]["mean_error"] == found[0]["before"]["mean_error"]
    assert len(summed) == 1


def test_own_edges_survive_every_change_of_a_rule(town: Path) -> None:
    opened = saving.open_file(town)
    for changes in ({"policy.distance": "4"}, {"policy.complete": True}, {"policy.category": None}):
        made = opened.scenario_of(draft_of(changes=changes, edges=[[0, 5], [1, 2]]))
        assert made.edges == ((LABELS[0], LABELS[5]), (LABELS[1], LABELS[2]))
        assert made.policy.has_edge(0, 5)


def test_an_answer_no_better_than_silence_is_said_to_be_so() -> None:
    scenario = paper_scenario(epsilon=Fraction(1, 10), start="uniform")
    step = scenario.check(1).steps[0]
    assert step.is_useless
    assert "no better than silence" in warnings(scenario, step)[0]
    sharp = scenario.replace(epsilon=Fraction(50))
    assert warnings(sharp, sharp.check(1).steps[0]) == ()
    assert headline(sharp, sharp.check(1).steps[0]).startswith("An answer is typically off by less")


def test_categories_differ_for_every_kind_of_eye_and_are_the_same_in_reports() -> None:
    """By 10 or more in CIEDE2000, under three simulated blindnesses, in light and in dark."""
    script = (Path(saving.__file__).parent / "static" / "js" / "colours.js").read_text()
    style = (Path(page.__file__).parent / "templates" / "page.css").read_text()
    palettes = [json.loads(one) for one in re.findall(r"const (?:LIGHT|DARK) = (\[.*\]);", script)]
    in_report = re.findall(r"--c[0-7]: (#[0-9a-f]{6})", style)
    assert [*palettes[0], *palettes[1]] == in_report
    for palette in palettes:
        assert len(palette) == 8
        for seen in blindnesses(parse(palette)):
            apart = [difference(a, b) for i, a in enumerate(seen) for b in seen[i + 1 :]]
            assert min(apart) >= 10


def test_borders_and_marks_stand_out_from_what_lies_below() -> None:
    css = (Path(saving.__file__).parent / "static" / "studio.css").read_text(encoding="utf-8")
    light, dark = (
        dict(re.findall(r"--([\w-]+): (#\w{6})", part))
        for part in re.findall(r"^:root.*?\{(.*?)\}", css, re.S | re.M)[:2]
    )
    for theme in (light, light | dark):
        linear = parse(list(theme.values())) @ [0.2126, 0.7152, 0.0722]
        bright = dict(zip(theme, linear.tolist(), strict=True))

        def ratio(one: str, other: str, of: dict[str, float] = bright) -> float:
            low, high = sorted((of[one], of[other]))
            return (high + 0.05) / (low + 0.05)

        grounds = ("paper", "surface")
        for text in ("ink", "ink-soft", "accent", "alarm", "good"):
            assert min(ratio(text, ground) for ground in grounds) >= 4.5, text
        for mark in ("a", "b", "alarm", "accent", "edge", "own", "line-strong", "focus"):
            assert min(ratio(mark, ground) for ground in grounds) >= 3, mark
        for mark in ("a", "b", "alarm", "accent", "own"):
            assert ratio(mark, "land") >= 3, mark
        assert ratio("on-accent", "accent") >= 4.5


def test_the_difference_of_colours_is_the_published_one() -> None:
    """Three pairs of Sharma, Wu and Dalal's table."""
    assert difference([50, 2.6772, -79.7751], [50, 0, -82.7485]) == pytest.approx(2.0425, abs=1e-4)
    assert difference([50, 2.5, 0], [73, 25, -18]) == pytest.approx(27.1492, abs=1e-4)
    assert difference([50, 2.49, -0.001], [50, -2.49, 0.0011]) == pytest.approx(7.2195, abs=1e-4)


def test_the_headline_carries_its_condition() -> None:
    stated = paper_scenario(start="uniform", epsilon=Fraction(50))
    said = headline(stated, stated.check(1).steps[0])
    assert said.endswith("for people who move as the model says is possible from its start")
    assert "hides among at least 2, for people" in said
    anybody = Scenario(stated.query, MarkovModel(np.full((6, 6), 1 / 6)), stated.policy, epsilon=50)
    assert "for people" not in headline(anybody, anybody.check(1).steps[0])


# Saving


def test_the_difference_is_shown_before_it_is_saved(town: Path) -> None:
    opened = saving.open_file(town)
    assert saving.difference(opened, draft_of())["lines"] == []
    lines = saving.difference(opened, draft_of(changes={"epsilon": "1"}, edges=[[0, 5]]))["lines"]
    assert "-epsilon = 0.50  # agreed in May" in lines
    assert "+epsilon = 1  # agreed in May" in lines
    assert '+edges = "edges.csv"' in lines
    assert f"+{LABELS[0]},{LABELS[5]}" in lines
    assert town.read_text() == TEXT


def test_drawn_edges_are_saved_beside_the_file_and_under_a_free_name(town: Path) -> None:
    town.with_name("edges.csv").write_text("something else")
    saving.save(saving.open_file(town), draft_of(edges=[[0, 5]]))
    assert town.with_name("edges.csv").read_text() == "something else"
    assert town.with_name("edges2.csv").read_text() == f"a,b\n{LABELS[0]},{LABELS[5]}\n"
    assert Scenario.load(town).policy.has_edge(0, 5)
    assert saving.open_file(town).edges == [[0, 5]]


def test_a_file_that_changed_since_is_not_written_over(town: Path) -> None:
    opened = saving.open_file(town)
    town.write_text(TEXT + "\n# a colleague was here\n")
    with pytest.raises(DataError, match="must be as it was opened"):
        saving.save(opened, draft_of(changes={"epsilon": "1"}))
    assert town.read_text().endswith("# a colleague was here\n")


def test_saving_as_makes_a_new_file_and_never_replaces_one(town: Path) -> None:
    opened = saving.open_file(town)
    saved = saving.save(opened, draft_of(changes={"epsilon": "1"}, name="other.toml"))
    assert saved.path == town.with_name("other.toml")
    assert saved.scenario.settings.epsilon == 1
    assert town.read_text() == TEXT
    with pytest.raises(DataError, match="file must be new"):
        saving.save(opened, draft_of(name="other.toml"))


def test_saving_as_with_other_links_leaves_the_first_file_s_links_alone(town: Path) -> None:
    opened = saving.save(saving.open_file(town), draft_of(edges=[[0, 5]]))
    first = town.with_name("edges.csv").read_text()
    saved = saving.save(opened, draft_of(edges=[[0, 5], [1, 4]], name="other.toml"))
    assert town.with_name("edges.csv").read_text() == first
    assert (saved.edges, saving.open_file(town).edges) == ([[0, 5], [1, 4]], [[0, 5]])


@pytest.mark.parametrize("name", ["../x.toml", "/tmp/x.toml", "x.csv", ".toml", "a/b.toml", ""])
def test_a_name_cannot_lead_elsewhere(name: str) -> None:
    with pytest.raises(ArgumentError, match="name must"):
        draft_of(name=name)


def test_a_price_in_the_schedule_is_changed_where_it_stands() -> None:
    text = 'epsilon = "1"\n[when]\nevery = 2\nepsilon = "3"\n'
    assert rewrite(text, {"epsilon": "4"}) == text.replace('"3"', '"4"')
    assert tomllib.loads(rewrite(text, {"when": None})) == {"epsilon": "3"}


def test_a_start_may_become_a_table_and_a_label_again() -> None:
    text = 'epsilon = "1"\nstart = "a"\n[policy]\ncomplete = true\n'
    table = rewrite(text, {"start": {"a": 0.25, "b": 0.75}})
    assert tomllib.loads(table)["start"] == {"a": 0.25, "b": 0.75}
    assert tomllib.loads(rewrite(table, {"start": "b"}))["start"] == "b"
    last = 'epsilon = "1"\n[policy]\ncomplete = true\n[start]\na = 0.25\nb = 0.75\n'
    assert tomllib.loads(rewrite(last, {"start": "b"}))["start"] == "b"


# Laws


@st.composite
def files(draw: st.DrawFn) -> tuple[Scenario, str]:
    """A scenario with any of the keys, and its text as somebody might have written it."""
    scenario = draw(scenarios())
    dates = draw(st.booleans())
    scenario = scenario.replace(
        limit=draw(
            st.sampled_from([None, Limit.read("9"), Limit.read("6 per 4 steps, 90 in all")])
        ),
        clock=Clock("5 min", zone="Europe/Berlin", open=2) if dates else Clock(2, 4),
        when=draw(st.sampled_from([None, Schedule(every=3, phase=1), Schedule(apart=2, error=5)])),
        estimate=draw(st.sampled_from(["mean", "median"])),
        unit=draw(st.sampled_from(["", "m", "min"])),
        query=draw(st.sampled_from(["place", "a name"])),
    )
    end = draw(st.sampled_from(["\n", "\r\n"]))
    shuffle = random.Random(draw(st.integers(0, 99))).shuffle
    first, *sections = scenario.settings.to_toml().split("\n[")
    top = [f"{line}  # why" if number % 3 == 0 else line for number, line in
           enumerate(first.splitlines()) if line]  # fmt: skip
    shuffle(top)
    shuffle(sections)
    lines = ["# by hand", *top, "", *("\n[" + part for part in sections)]
    text = "\n".join(lines).rstrip("\n") + draw(st.sampled_from(["", "\n", "\n\n# the end\n"]))
    mark = draw(st.sampled_from(["", "\ufeff"]))
    return scenario, mark + text.replace("\n", end)


def on_disk(folder: str, scenario: Scenario, text: str) -> Path:
    path = Path(folder) / "town.toml"
    scenario.save(path)
    path.write_bytes(text.encode())
    return path


@given(files())
def test_opening_and_saving_changes_no_byte(file: tuple[Scenario, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = on_disk(folder, *file)
        before = {one.name: one.read_bytes() for one in path.parent.iterdir()}
        opened = saving.open_file(path)
        saving.save(opened, draft_of())
        # What is set to what it was is no change either.
        same = {key: value for key, value in values_of(opened.scenario.settings).items()
                if value is not None and key != "policy.edges"}  # fmt: skip
        given_keys = tomllib.loads(file[1].removeprefix("\ufeff"))
        said = {key: value for key, value in same.items() if _has(given_keys, key)}
        saving.save(opened, draft_of(changes=said))
        assert {one.name: one.read_bytes() for one in path.parent.iterdir()} == before


def _has(table: dict[str, Any], key: str) -> bool:
    section, _, name = key.rpartition(".")
    return name in (table.get(section, {}) if section else table)


@given(files(), st.sampled_from(["0.3", "7", "1/3"]))
def test_a_change_is_saved_and_nothing_else(file: tuple[Scenario, str], price: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = on_disk(folder, *file)
        opened = saving.open_file(path)
        saved = saving.save(opened, draft_of(changes={"epsilon": price, "repair": "nearest"}))
        wanted = opened.scenario.replace(epsilon=Fraction(price), repair="nearest").settings
        assert saved.scenario.settings == wanted
        assert path.read_bytes().count(b"#") == file[1].encode().count(b"#")


# Oracle

COMPARED = ("possible", "rank", "volume", "least_protection", "most_protection", "error",
            "least_error", "constrained_epsilon", "lasts", "mean_error", "silent_error", "time",
            "own_possible", "own_error")  # fmt: skip


@settings(max_examples=settings.default.max_examples // 4)
@given(files(), st.sampled_from([{}, {"repair": "nearest", "epsilon": "2"}]))
def test_the_page_says_what_check_says_at_every_step(
    file: tuple[Scenario, str], changes: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = on_disk(folder, *file)
        with run_in_background(path) as address:
            client = Client(address)
            asked = {"world": client.ask("/api/open", name="own")["world"], "changes": changes}
            shown = client.ask("/api/timeline", **asked, horizon=4)["steps"]
            single = [client.ask("/api/released", **asked, step=one["time"]) for one in shown]
            before = [client.ask("/api/effects", **asked, step=one["time"]) for one in shown]
            client.ask("/api/save", **asked)
        told = json.loads(run("check", path, "--json", "--steps", 4).output)["steps"]
        saved = Scenario.load(path)
    # What check says of the same file without repair is what the page says of it before repair.
    alone = saved.replace(repair=None, full_rank=False).check(4).steps
    for bare, step in zip(before, alone, strict=True):
        shown_before = bare["before"]
        assert (shown_before["mean_error"], shown_before["error"], shown_before["rank"]) == (
            step.mean_error,
            step.error,
            step.rank,
        )
        assert shown_before["least"] == step.least_protection
    labels = file[0].labels
    assert len(told) == len(shown)
    for step, row, one, bare in zip(told, shown, single, before, strict=True):
        assert one["step"] == step
        assert {name: row[name] for name in COMPARED} == {name: step[name] for name in COMPARED}
        assert (row["exposed_before"], row["exposed"], row["added"]) == tuple(
            len(step[name]) for name in ("exposed_before", "exposed", "added")
        )
        assert [labels[state] for state in bare["before"]["exposed"]] == step["exposed_before"]
        assert [labels[state] for state in one["exposed"]] == step["exposed"]


@given(scenarios(), st.integers(0, 99))
def test_a_report_has_the_errors_of_the_page_at_every_step(scenario: Scenario, seed: int) -> None:
    steps = timeline(scenario, 4)["steps"]
    checked = scenario.check(4).steps
    assume(not narrows(scenario, checked))
    path = scenario.model.sample(4, rng=np.random.default_rng(seed), start=scenario.start)
    facts = said(scenario, "somebody", path.tolist(), seed=seed)
    shown = [one["mean_error"] for one in steps] + 4 * [steps[-1]["mean_error"]]
    assert facts.noises[:, 0].tolist() == shown[:4]


def test_a_timeline_ends_with_the_step_that_lasts() -> None:
    steps = timeline(paper_scenario(), 20)["steps"]
    assert steps[-1]["lasts"]
    assert [step["time"] for step in steps] == list(range(1, len(steps) + 1))
    assert len(steps) < 20
