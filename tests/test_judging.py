"""Judging a model on people it was not learned from, from Python and from the command line."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from math import log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import (
    ArgumentError,
    Clock,
    DataError,
    Judgement,
    MarkovModel,
    Policy,
    Scenario,
    States,
    learn_private,
)
from dphmm.chain.momentum import MomentumModel
from dphmm.cli import common
from dphmm.noise.randomness import SeededRandomness
from dphmm.scenario import judging
from dphmm.scenario.checking import doubts
from dphmm.scenario.judging import People, _score, cross_validate, judge, region_of
from dphmm.scenario.models import read_model, write_model
from tests.scenarios import is_one_line, run

SIDE = 6
PLACES = np.array([[100.0 * x, 100.0 * y] for x in range(SIDE) for y in range(SIDE)])
SIZE = SIDE**2


def town(model: object, **changes: object) -> Scenario:
    options = {"epsilon": 1, "step": 10, "clock": Clock(1), **changes}
    policy = Policy(distance=200)
    return Scenario(States.on_plane(PLACES), model, policy, **options)  # type: ignore[arg-type]


def walkers(people: int, steps: int = 60, seed: int = 1) -> list[tuple[np.ndarray, np.ndarray]]:
    """People who stay seven times of eight, and else go to a neighbour."""
    rng = np.random.default_rng(seed)
    return [(np.arange(steps), walk(rng, steps)) for _ in range(people)]


def walk(rng: np.random.Generator, steps: int) -> np.ndarray:
    x, y = (int(rng.integers(SIDE)) for _ in range(2))
    places = []
    for _ in range(steps):
        if rng.random() < 0.125:
            x, y = (int(np.clip(one + rng.integers(-1, 2), 0, SIDE - 1)) for one in (x, y))
        places.append(SIDE * x + y)
    return np.array(places)


def fit(people: list[tuple[np.ndarray, np.ndarray]]) -> Scenario:
    return town(MomentumModel.fit([states for _, states in people], places=PLACES))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A town, and the trips of eight people."""
    scenario = town(MarkovModel(np.full((SIZE, SIZE), 1 / SIZE)))
    scenario.save(tmp_path / "scenario.toml")
    write_trips(tmp_path / "trips.csv", scenario, walkers(8))
    return tmp_path


def write_trips(
    path: Path, scenario: Scenario, people: list[tuple[np.ndarray, np.ndarray]]
) -> None:
    rows = [
        f"p{number},{slot},{scenario.labels[state]}"
        for number, (slots, states) in enumerate(people)
        for slot, state in zip(slots, states, strict=True)
    ]
    path.write_text("\n".join(["person,time,state", *rows]) + "\n")


# Paper


def test_a_model_of_such_people_helps_and_one_of_others_does_not() -> None:
    good = judge([(fit(walkers(20, seed=2)), walkers(12))])
    assert isinstance(good, Judgement)
    assert good.is_sure
    assert not good.is_worse
    assert good.verdict.startswith("It helps: ")
    assert good.shares["hindsight"] < good.shares["lagged"] < good.shares["now"] < 1
    assert good.log_likelihoods["the model"] > good.log_likelihoods["a walk"]
    assert good.log_likelihoods["no data"] == pytest.approx(-log(SIZE), rel=1e-12)
    assert 0.6 < good.expected < 1.5
    # A model by which everybody runs across the map: its estimates follow the answers.
    far = np.roll(np.eye(SIZE), SIZE // 2, axis=1)
    bad = judge([(town(MarkovModel(far, anywhere=0.01)), walkers(6))])
    assert bad.is_worse
    assert bad.only_anywhere > 0.9
    assert bad.verdict.startswith("Worse than none: ")
    few = judge([(town(MarkovModel(far, anywhere=0.01)), walkers(2, 10))])
    assert few.verdict == "Nobody can tell: 2 people and 18 moves are too few."


def test_everybody_is_left_out_once_and_learned_from_otherwise() -> None:
    people = walkers(7, 30)
    seen: list[int] = []

    def learn(some: list[tuple[np.ndarray, np.ndarray]]) -> Scenario:
        kept = {id(one) for one in some}
        seen.extend(place for place, one in enumerate(people) if id(one) not in kept)
        return fit(some)

    found = cross_validate(learn, people)  # type: ignore[arg-type]
    assert sorted(seen) == list(range(7))
    assert found.people == 7
    assert "lagged" not in found.shares
    with pytest.raises(ArgumentError, match="people must be at least 2 to leave some out, got 1"):
        cross_validate(learn, people[:1])  # type: ignore[arg-type]


def test_moves_and_people_count_once_and_only_if_they_were_looked_at() -> None:
    # Walks of a short track are drawn again and overlap; of a hundred people few are drawn.
    few = walkers(6, 90)
    found = judge([(fit(few), few)], lag=None)
    assert found.people == 6
    assert found.moves <= 6 * 89
    many = walkers(100, 80)
    found = judge([(fit(many), many)], lag=None)
    assert judging.STEPS / judging.LONGEST <= found.people < 40
    assert found.moves < judging.STEPS


def test_nobody_who_moves_is_nobody_to_judge_by() -> None:
    alone = [(np.array([1, 5, 9]), np.array([0, 0, 0]))]
    with pytest.raises(DataError, match="trips must hold neighbouring steps, got no move"):
        judge([(fit(walkers(3)), alone)])


def test_a_scenario_judges_its_own_model(folder: Path) -> None:
    scenario = fit(walkers(20, seed=2))
    found = scenario.evaluate(folder / "trips.csv")
    assert found.people == 8
    assert str(found).splitlines()[-1] == found.verdict
    assert "log-likelihood of a move, in nats: the model " in str(found)


def test_evaluate_prints_what_was_found_and_says_no_by_its_exit_code(folder: Path) -> None:
    good = fit(walkers(20, seed=2))
    write_model(folder / "model.npz", good.model, "test", "1")
    result = run("evaluate", folder / "model.npz", folder / "trips.csv")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("private: for your eyes")
    assert "8 people it was not learned from" in result.stdout
    assert "It helps: " in result.stdout
    far = MarkovModel(np.roll(np.eye(SIZE), SIZE // 2, axis=1), anywhere=0.01)
    write_model(folder / "far.npz", far, "test", "1")
    asked = ("evaluate", folder / "far.npz", folder / "trips.csv", "--json")
    result = run(*asked, "--scenario", folder / "scenario.toml")
    assert result.exit_code == 1
    private = json.loads(result.stdout)["private"]
    assert private["worse"] is True
    assert private["verdict"].startswith("Worse than none")
    assert run("evaluate", folder / "scenario.toml", folder / "trips.csv").exit_code in (0, 1)
    (folder / "elsewhere").mkdir()
    (folder / "far.npz").rename(folder / "elsewhere" / "far.npz")
    for asked, message in (
        ((folder / "elsewhere" / "far.npz",), "--scenario must be given, none lies beside MODEL"),
        (
            (folder / "scenario.toml", "--scenario", "x.toml"),
            "--scenario must stand without a scenario for MODEL",
        ),
    ):
        result = run("evaluate", asked[0], folder / "trips.csv", *asked[1:])
        assert (result.exit_code, message in result.stderr) == (2, True)


BAD = {
    "no model": ({"model.npz": None}, "model.npz: file must be readable"),
    "a model that is text": ({"model.npz": b"Dear reader\n"}, "model.npz: file must be a model"),
    "half a model": ({"model.npz": 300}, "model.npz: file must be a model"),
    "no trips": ({"trips.csv": None}, "trips.csv: file must be readable"),
    "no rows": ({"trips.csv": b""}, "trips.csv: file must hold at least one row"),
    "a header alone": ({"trips.csv": b"person,time,state\n"}, "must hold at least one row"),
    "no state": ({"trips.csv": b"person,time\nann,1\n"}, "trips.csv:1: header must"),
    "an unknown state": ({"trips.csv": b"person,time,state\nann,1,zq9\n"}, "trips.csv:2: state"),
    "a time that is none": ({"trips.csv": b"person,time,state\nann,soon,0\n"}, "trips.csv:2: time"),
    "gaps alone": ({"trips.csv": b"person,time,state\nann,1,0\nann,9,0\n"}, "got no move"),
    "no scenario": ({"scenario.toml": None}, "--scenario must be given, none lies beside MODEL"),
    "no TOML": ({"scenario.toml": b"[policy"}, "scenario.toml: file must be TOML"),
    "other states": ({"states.csv": b"label,x,y\na,0,0\nb,0,1\n"}, "must have the 2 states"),
}


@pytest.mark.parametrize("fault", BAD)
def test_what_cannot_be_judged_is_one_line(fault: str, folder: Path) -> None:
    write_model(folder / "model.npz", fit(walkers(20, seed=2)).model, "test", "1")
    changed, message = BAD[fault]
    for name, content in changed.items():
        path = folder / name
        if content is None:
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:content] if isinstance(content, int) else content)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    result = run("evaluate", folder / "model.npz", folder / "trips.csv")
    assert result.exit_code == 2, result.output
    assert is_one_line(result.stderr)
    assert message in result.stderr
    assert "zq9" not in result.stderr
    assert result.stdout == ""
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_private_model_of_noise_is_said_to_be_worse_than_none() -> None:
    # Noise of two thousand people on numbers of twenty: whatever is learned, people are not in it.
    randomness = SeededRandomness(np.random.default_rng(4))

    def learned(people: People, epsilon: str) -> Scenario:
        return town(learn_private(people, PLACES, epsilon=epsilon, randomness=randomness).model)

    noise, known = (
        cross_validate(lambda people, price=price: learned(people, price), walkers(20))  # type: ignore[misc]
        for price in ("0.001", "100")
    )
    assert noise.is_sure
    assert noise.is_worse
    assert noise.verdict.startswith("Worse than none: ")
    assert not known.is_worse


def test_learn_judges_and_refuses_what_is_worse_than_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = folder / "learned.npz"
    arguments = ("learn", folder / "trips.csv", "--scenario", folder / "scenario.toml", "-o", out)
    result = run(*arguments, "--chain", "momentum")
    assert result.exit_code == 0, result.stderr
    assert "judged on people left out in turn:" in result.stdout
    assert "It helps: " in result.stdout
    plain = json.loads(run(*arguments, "--json").stdout)
    assert plain["from"]["judged"]["people"] == 8
    out.unlink()
    monkeypatch.setattr(Judgement, "is_worse", True)
    refused = run(*arguments, "--chain", "momentum")
    assert refused.exit_code == 1
    assert "learned.npz was not written; --force writes it anyway" in refused.stderr
    assert "from 8 people and" in refused.stderr
    assert "private: " not in refused.stderr
    assert not out.exists()
    refused = run(*arguments, "--epsilon", 1)
    assert refused.stderr.startswith("private: for your eyes"), "also what is refused"
    assert refused.stdout == ""
    monkeypatch.setattr(
        judging, "Judgement", lambda **found: Judgement(**{**found, "only_anywhere": 0.9})
    )
    assert run(*arguments).stderr.endswith("larger cells or a --radius\n")
    assert run(*arguments, "--chain", "momentum", "--force").exit_code == 0
    assert out.exists()


def test_regions_that_miss_name_the_way_to_fit_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("learn", folder / "trips.csv", "--scenario", folder / "scenario.toml")
    way = "--confidence held-out lets those left out choose"
    assert way not in run(*arguments).output
    monkeypatch.setattr(Judgement, "is_calibrated", False)
    told = run(*arguments)
    assert told.exit_code == 0
    assert "Its regions are not to be trusted." in told.stdout
    assert way in told.stderr
    # Not where it was done already, nor where people must not be asked.
    for option in (("--confidence", "held-out"), ("--epsilon", 5)):
        assert way not in run(*arguments, *option, "--force").output


def test_judging_shows_how_far_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "OFTEN", 0.0)
    arguments = ("learn", folder / "trips.csv", "--scenario", folder / "scenario.toml")
    assert re.search("dphmm: judging: 1 of 5\n", run(*arguments).stderr)
    found = run("evaluate", folder / "scenario.toml", folder / "trips.csv").stderr
    assert re.search(r"dphmm: judging: 1 of \d+\n", found)


def test_what_is_private_goes_to_the_screen_and_not_into_the_model(folder: Path) -> None:
    out = folder / "learned.npz"
    arguments = ("learn", folder / "trips.csv", "--states", folder / "states.csv", "-o", out,
                 "--epsilon", 3, "--force")  # fmt: skip
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    assert "private: for your eyes" in result.stderr
    assert "from 8 people and" in result.stderr
    assert "judged on people left out in turn:" in result.stderr
    for secret in ("8 people", "people it was not learned from", "distance of an answer"):
        assert secret not in result.stdout
        assert secret not in read_model(out).source
    with np.load(out) as arrays:
        header = json.loads(arrays["header"].tobytes())
        names = set(arrays.files)
    assert set(header) <= {"format", "n_states", "source", "zeros", "anywhere", "step"}
    assert names == {"header", "current", "fresh", "data_0", "indices_0", "indptr_0"}


def test_check_doubts_a_model_by_which_nobody_moves(folder: Path) -> None:
    moving = fit(walkers(9))
    assert doubts(moving) == ()
    slow = town(moving.model.every(5))
    assert doubts(slow) == ("A step of the scenario is 5 steps of its model.",)
    still = town(MarkovModel(np.eye(SIZE), anywhere=0.01))
    still.save(folder / "scenario.toml")
    result = run("check", folder / "scenario.toml")
    assert "note: By the model hardly anybody ever moves (100.00% of steps are stays)" in (
        result.stdout
    )
    assert "was it learned in steps of 1?" in result.stdout
    assert json.loads(run("check", folder / "scenario.toml", "--json").stdout)["doubts"]


# Laws


@given(
    st.lists(st.integers(0, 9), min_size=2, max_size=12).filter(any),
    st.floats(0.01, 0.99),
    st.data(),
)
def test_a_region_states_its_mass_and_holds_what_is_likelier(
    weights: list[int], mass: float, data: st.DataObject
) -> None:
    belief = np.array(weights) / sum(weights)
    state = data.draw(st.integers(0, len(weights) - 1))
    stated, held = region_of(belief, mass, state)
    assert stated >= mass - 1e-9
    likelier = [
        region_of(belief, mass, s)[1] for s in range(len(belief)) if belief[s] > belief[state]
    ]
    assert not held or all(likelier)
    inside = sum(belief[s] for s in range(len(belief)) if region_of(belief, mass, s)[1])
    assert inside == pytest.approx(stated, rel=1e-9)


# Oracle


def test_the_score_of_a_walk_is_that_of_its_matrix() -> None:
    rng = np.random.default_rng(3)
    matrix = rng.random((5, 5)) * (rng.random((5, 5)) < 0.6) + np.eye(5)
    model = MarkovModel(matrix / matrix.sum(axis=1, keepdims=True), anywhere=0.1)
    states = rng.integers(0, 5, 30)
    scores, own = _score(model, np.arange(30), states)
    whole = model.outgoing.toarray() + model.jumps
    expected = [log(whole[a, b]) for a, b in pairwise(states)]
    np.testing.assert_allclose(scores, expected, rtol=1e-9)
    assert own == [bool(matrix[a, b] > 0) for a, b in pairwise(states)]


def test_the_sample_is_of_everybody_and_as_long_as_was_asked() -> None:
    people = walkers(6, 100)
    walks = judging.sample_walks(people, 500, np.random.default_rng(0))
    assert sum(len(when) for _, when, _ in walks) >= 500
    assert max(len(when) for _, when, _ in walks) == judging.LONGEST
    assert judging.sample_walks([], 10, np.random.default_rng(0)) == []


@pytest.mark.parametrize("private", [[], ["--epsilon", "1"]])
def test_learn_says_that_few_people_leave_nobody_to_judge_by(
    folder: Path, private: list[str]
) -> None:
    lines = (folder / "trips.csv").read_text().splitlines()
    names = sorted({line.split(",")[0] for line in lines[1:]})[:3]
    kept = [lines[0], *(line for line in lines[1:] if line.split(",")[0] in names)]
    (folder / "few.csv").write_text("\n".join(kept) + "\n")
    words = ("learn", folder / "few.csv", "--scenario", folder / "scenario.toml", *private)
    result = run(*words, "-o", folder / "few.npz")
    assert result.exit_code == 0, result.output
    said = "Nobody can tell whether it helps: fewer than 5 people are too few."
    assert said in (result.stderr if private else result.stdout)
