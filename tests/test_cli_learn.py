"""`dphmm learn`, `check` and `design`: what they print, write and exit with."""

from __future__ import annotations

import csv
import io
import json
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given

from dphmm import Journal, MarkovModel, MemoryModel, TimeVaryingModel
from dphmm.chain.ground import Ground
from dphmm.cost.words import CONDITION
from dphmm.scenario import PUBLIC_SOURCE, Clock, Policy, Scenario, read_model
from dphmm.scenario.checking import check_steps
from dphmm.scenario.learning import learn_from_releases
from tests.scenarios import FEWER, LABELS, MARK, is_one_line, run, scenarios, trips, written

WALK = (("ann", 1, 2), ("ann", 2, 4), ("ann", 3, 5), ("bob", 1, 3), ("bob", 3, 5), ("bob", 4, 6))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    written(tmp_path)
    (tmp_path / "trips.csv").write_text(trips(*WALK))
    (tmp_path / "moves.csv").write_text(f"a,b\n{LABELS[1]},{LABELS[3]}\n{LABELS[3]},{LABELS[4]}\n")
    return tmp_path


def learn(folder: Path, *options: object) -> tuple[MarkovModel | TimeVaryingModel, str]:
    out = folder / "learned.npz"
    arguments = ("learn", folder / "trips.csv", "--states", folder / "states.csv", "-o", out)
    result = run(*arguments, *options)
    assert result.exit_code == 0, result.stderr
    assert MARK not in result.output
    learned = read_model(out)
    assert isinstance(learned.model, (MarkovModel, TimeVaryingModel))
    return learned.model, learned.source


# Paper


def test_check_prints_who_is_exposed_when_and_what_repair_adds(folder: Path) -> None:
    result = run("check", folder / "paper.toml")
    assert result.exit_code == 0
    assert f"exposed without repair: {LABELS[4]}" in result.stdout
    assert f"linked by repair: {LABELS[2]} - {LABELS[4]}" in result.stdout
    assert "factor exp(1)" in result.stdout
    assert "If each of 10 steps is answered:\n  10 releases, epsilon 10 in all." in result.stdout
    assert f"Nobody is exposed in these steps, {CONDITION}." in result.stdout


def test_check_says_no_when_somebody_stays_exposed(tmp_path: Path) -> None:
    path = written(tmp_path, repair=None)
    result = run("check", path, "--json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["exposed"] is True
    assert report["steps"][0]["exposed"] == [LABELS[4]]
    assert run("check", path).exit_code == 1


def test_raw_counts_say_so(folder: Path) -> None:
    model, source = learn(folder, "--confidence", "counts")
    assert source == PUBLIC_SOURCE
    transition = model.at(1).transition.toarray()
    assert transition[1, 3] == transition[3, 4] == transition[4, 5] == 1
    assert transition[2, 4] == 0, "the step between them is missing"


def test_private_counts_say_so_and_keep_the_given_support(folder: Path) -> None:
    model, source = learn(folder, "--epsilon", "0.5", "--moves", folder / "moves.csv")
    assert source.startswith("private, epsilon=0.5")
    possible = model.at(1).transition.toarray() > 0
    expected = np.eye(6, dtype=bool)
    for a, b in ((1, 3), (3, 4)):
        expected[a, b] = expected[b, a] = True
    np.testing.assert_array_equal(possible, expected)


def test_private_habits_go_as_far_as_the_radius(folder: Path) -> None:
    model, source = learn(folder, "--epsilon", 1, "--radius", 1.5, "--chain", "first")
    assert "1 on how far (3 numbers)" in source
    places = np.array([[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]], dtype=np.float64)
    ground = Ground(places)
    sources, targets, _ = ground.within(1)
    near = np.zeros((6, 6), dtype=bool)
    near[sources, targets] = True
    np.testing.assert_array_equal(model.at(1).transition.toarray() > 0, near)
    remembers, source = learn(folder, "--epsilon", 1)
    assert isinstance(remembers, MemoryModel)
    assert "0.5 on staying and turning (16 numbers)" in source


def test_what_nobody_did_is_a_guess_unless_somebody_states_it(folder: Path) -> None:
    for options, anywhere in (
        ((), 0.01),
        (("--anywhere", 0.2), 0.2),
        (("--zeros", "facts"), 0.0),
        (("--epsilon", 1, "--moves", folder / "moves.csv"), 0.01),
        (("--epsilon", 1, "--radius", 1.5, "--anywhere", 0.3), 0.3),
        (("--epsilon", 1, "--radius", 1.5, "--zeros", "facts"), 0.0),
        (("--slots", 2), 0.01),
        (("--anywhere", "held-out"), 0.5),  # a handful of rows: each has moves of its own
    ):
        model, _ = learn(folder, *options)
        assert [model.at(time).anywhere for time in (0, 1)] == [anywhere] * 2
    arguments = ("learn", folder / "trips.csv", "--states", folder / "states.csv")
    guesses = run(*arguments, "-o", folder / "a.npz").stdout
    assert "zeros are guesses: 0.01 of all steps may go anywhere" in guesses
    facts = run(*arguments, "-o", folder / "b.npz", "--zeros", "facts").stdout
    assert f"zeros are facts: what is promised holds {CONDITION}" in facts
    report = json.loads(run(*arguments, "-o", folder / "a.npz", "--json").stdout)
    assert (report["zeros"], report["anywhere"]) == ("guesses", 0.01)
    wrong = run(*arguments, "-o", folder / "c.npz", "--zeros", "facts", "--anywhere", "0.1")
    assert wrong.exit_code == 2
    assert "anywhere must be 0 when zeros are facts, got 0.1" in wrong.stderr
    released = run("learn", "x.csv", "--from-releases", folder / "paper.toml", "-o", "y.npz",
                   "--zeros", "facts")  # fmt: skip
    assert released.exit_code == 2
    assert "without --zeros and --anywhere" in released.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("--epsilon", 1, "--radius", 9),
        ("--engine", "spark"),
    ],
)
def test_moves_that_are_private_choose_no_probability(
    folder: Path, options: tuple[object, ...]
) -> None:
    out = folder / "learned.npz"
    arguments = ("learn", folder / "trips.csv", "--states", folder / "states.csv", "-o", out)
    result = run(*arguments, "--anywhere", "held-out", *options)
    assert result.exit_code == 2
    assert "--anywhere held-out must go with raw counts, made locally" in result.stderr
    assert not out.exists()
    wrong = run(*arguments, "--anywhere", "often")
    assert wrong.exit_code == 2
    assert "must be a number or held-out, got 'often'" in wrong.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--by", "hour"), "--epsilon must stand without --by, --smoothing and --confidence"),
        (("--smoothing", 1), "--epsilon must stand without --by, --smoothing and --confidence"),
        (("--confidence", 0.5), "--epsilon must stand without --by, --smoothing and"),
        (("--slots", 2), "--epsilon must stand without --chain second and --slots"),
        (("--chain", "second"), "--epsilon must stand without --chain second and --slots"),
    ],
)
def test_what_private_learning_cannot_do_is_refused(
    folder: Path, options: tuple[object, ...], message: str
) -> None:
    out = folder / "learned.npz"
    result = run("learn", folder / "trips.csv", "--states", folder / "states.csv", "-o", out,
                 "--epsilon", 1, *options)  # fmt: skip
    assert result.exit_code == 2
    assert message in result.stderr
    assert not out.exists()


def test_one_state_is_nothing_to_learn(tmp_path: Path) -> None:
    (tmp_path / "states.csv").write_text("label,x,y\na,0,0\n")
    rows = "".join(f"p{person},{time},a\n" for person in range(9) for time in range(1, 9))
    (tmp_path / "trips.csv").write_text("person,time,state\n" + rows)
    result = run("learn", tmp_path / "trips.csv", "--states", tmp_path / "states.csv",
                 "-o", tmp_path / "model.npz")  # fmt: skip
    assert result.exit_code == 2
    assert result.stderr == "dphmm: states.csv: states must be at least two, got one\n"
    assert not (tmp_path / "model.npz").exists()


def test_states_without_places_need_a_list_of_moves(tmp_path: Path) -> None:
    (tmp_path / "states.csv").write_text("label\na\nb\n")
    (tmp_path / "trips.csv").write_text("person,time,state\np,1,a\np,2,b\n")
    (tmp_path / "moves.csv").write_text("a,b\na,b\n")
    arguments = ("learn", tmp_path / "trips.csv", "--states", tmp_path / "states.csv",
                 "-o", tmp_path / "model.npz", "--epsilon", 1)  # fmt: skip
    result = run(*arguments)
    assert result.exit_code == 2
    assert "--epsilon must go with --moves for states without places" in result.stderr
    assert run(*arguments, "--moves", tmp_path / "moves.csv").exit_code == 0


def test_a_model_for_every_hour_is_learned_and_used(folder: Path) -> None:
    model, _ = learn(folder, "--slots", 2, "--smoothing", 1, "--radius", 9)
    assert isinstance(model, TimeVaryingModel)
    path = written(folder, clock=Clock(1, origin=0), model="other.npz")
    (folder / "other.npz").write_bytes((folder / "learned.npz").read_bytes())
    assert run("check", path).exit_code == 0
    assert run("release", path, folder / "trips.csv").exit_code == 0


def test_a_model_that_another_scenario_names_is_not_written_over(folder: Path) -> None:
    model = (folder / "model.npz").read_bytes()
    (folder / "other.toml").write_text((folder / "paper.toml").read_text())
    arguments = ("learn", folder / "trips.csv", "--scenario", folder / "paper.toml", "--force")
    refused = run(*arguments)
    assert refused.exit_code == 2
    assert is_one_line(refused.stderr)
    assert "must be this scenario's own, got one that other.toml names; name another with -o" in (
        refused.stderr
    )
    assert (folder / "model.npz").read_bytes() == model
    assert run(*arguments, "-o", folder / "beside.npz").exit_code == 0
    assert (folder / "model.npz").read_bytes() == model
    assert run(*arguments, "-o", folder / "model.npz").exit_code == 0  # by its name
    assert (folder / "model.npz").read_bytes() != model
    (folder / "other.toml").unlink()
    assert run(*arguments).exit_code == 0


def test_releases_teach_a_model_without_further_cost(folder: Path) -> None:
    released = folder / "released.csv"
    assert (
        run("release", folder / "paper.toml", folder / "trips.csv", "-o", released).exit_code == 0
    )
    ledger = (folder / "paper.ledger.jsonl").read_bytes()
    out = folder / "better.npz"
    result = run("learn", released, "--from-releases", folder / "paper.toml", "-o", out, "--json")
    assert result.exit_code == 0, result.stderr
    assert "no further cost" in json.loads(result.stdout)["source"]
    assert (folder / "paper.ledger.jsonl").read_bytes() == ledger
    assert read_model(out).model.n_states == 6
    released.write_text(released.read_text() + "ann,2,0,0,0,0,1\n")
    bad = run("learn", released, "--from-releases", folder / "paper.toml", "-o", out)
    assert bad.exit_code == 2
    assert is_one_line(bad.stderr)


def test_a_file_that_goes_on_is_learned_from_where_the_one_before_led(folder: Path) -> None:
    """Without a time for the start, each file alone would begin at it."""
    path, ledger = written(folder, start="uniform"), folder / "paper.ledger.jsonl"
    outs = []
    for day, times in enumerate([(1, 2, 3), (6, 7, 8, 9)]):
        rows = folder / f"day{day}.csv"
        rows.write_text(trips(*(("ann", time, 4) for time in times)))
        outs.append(folder / f"released{day}.csv")
        assert run("release", path, rows, "-o", outs[-1]).exit_code == 0
    learning = ("learn", outs[1], "--from-releases", path, "-o", folder / "better.npz")
    assert run(*learning).exit_code == 0
    found = read_model(folder / "better.npz").model.transition.toarray()
    with Journal(ledger) as book:
        stream = Scenario.load(path).stream("ann", book=book)
    assert [one.time for one in stream.said] == [1, 2, 3, 6, 7, 8, 9]
    expected = learn_from_releases([stream]).model.transition.toarray()
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    ledger.rename(folder / "elsewhere.jsonl")
    assert run(*learning).exit_code == 0
    alone = read_model(folder / "better.npz").model.transition.toarray()
    assert np.abs(alone - expected).max() > 1e-3
    assert run(*learning, "--ledger", folder / "elsewhere.jsonl").exit_code == 0
    named = read_model(folder / "better.npz").model.transition.toarray()
    np.testing.assert_allclose(named, expected, rtol=1e-9)
    missing = run(*learning, "--ledger", folder / "none.jsonl")
    assert missing.exit_code == 2
    assert is_one_line(missing.stderr)
    lone = run("learn", folder / "trips.csv", "--scenario", path, "--ledger", ledger)
    assert "--ledger must go with --from-releases" in lone.stderr


def test_design_finds_an_epsilon_and_a_radius(folder: Path) -> None:
    found = run("design", folder / "paper.toml", "--find", "epsilon", "--error", 2, "--json")
    assert found.exit_code == 0, found.stderr
    assert json.loads(found.stdout)["gives"]["error"] <= 2
    plain = run("design", folder / "paper.toml", "--find", "radius", "--protection", 3)
    assert plain.exit_code == 0
    assert plain.stdout.startswith("policy.distance = ")
    none = run("design", folder / "paper.toml", "--find", "radius", "--protection", 99)
    assert (none.exit_code, none.stdout) == (1, "No radius meets the wish.\n")
    wrong = run("design", folder / "paper.toml", "--find", "epsilon", "--protection", 3)
    assert wrong.exit_code == 2
    assert is_one_line(wrong.stderr)


# Laws


@FEWER
@given(scenario=scenarios())
def test_check_of_any_scenario_agrees_with_its_exit_code(scenario: Scenario) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "any.toml"
        scenario.save(path)
        result = run("check", path, "--steps", 4, "--json")
        assert result.exit_code in (0, 1), result.stderr
        report = json.loads(result.stdout)
        steps = list(check_steps(scenario, 4))
        assert [step["possible"] for step in report["steps"]] == [step.possible for step in steps]
        assert result.exit_code == any(step.exposed for step in steps) == report["exposed"]
        if scenario.settings.repair is not None:
            assert all(step.possible == 1 or not step.exposed for step in steps)
        assert run("check", path, "--steps", 4).exit_code == result.exit_code


@FEWER
@given(scenario=scenarios())
def test_a_model_learned_for_any_states_fits_their_scenario(scenario: Scenario) -> None:
    n_states = len(scenario.states)
    rows = [("ann", step, 1 + step % n_states) for step in range(12)]
    with TemporaryDirectory() as name:
        folder = Path(name)
        scenario.save(folder / "any.toml")
        (folder / "trips.csv").write_text(trips(*rows))
        arguments = ("learn", folder / "trips.csv", "--states", folder / "states.csv",
                     "-o", folder / "model.npz")  # fmt: skip
        for options in ((), ("--epsilon", "1/3", "--radius", 100)):
            result = run(*arguments, *options)
            assert result.exit_code == 0, result.stderr
            assert run("check", folder / "any.toml").exit_code in (0, 1)


# Oracle


def test_a_policy_of_distance_is_what_design_searched(tmp_path: Path) -> None:
    path = written(tmp_path, policy=Policy(distance=Fraction(1)))
    found = json.loads(run("design", path, "--find", "radius", "--protection", 3, "--json").stdout)
    path = written(tmp_path, policy=Policy(distance=Fraction(found["radius"])))
    steps = json.loads(run("check", path, "--json").stdout)["steps"]
    assert min(step["least_protection"] for step in steps) == found["gives"]["protection"] >= 3
    assert max(step["error"] for step in steps) == found["gives"]["error"]


def test_the_header_of_a_release_is_readable_by_anything(folder: Path) -> None:
    result = run("release", folder / "paper.toml", folder / "trips.csv")
    rows = list(csv.reader(io.StringIO(result.stdout)))
    assert {len(row) for row in rows} == {8}
