"""Scenarios and their files: states, models, clocks, settings, the ledger on disk."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from functools import reduce
from math import ceil
from operator import or_
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dphmm import (
    ArgumentError,
    DataError,
    KeyedRandomness,
    MarkovModel,
    PolicyGraph,
    Query,
    ScenarioError,
    TimeVaryingModel,
    TooLargeError,
)
from dphmm.geometry.exact import as_text
from dphmm.scenario import (
    Clock,
    Policy,
    Row,
    Scenario,
    Settings,
    States,
    read_model,
    read_trips,
    whole_file,
    write_model,
)
from dphmm.scenario.checking import check_steps
from dphmm.scenario.designing import find_epsilon, find_radius
from dphmm.scenario.keys import KEYS
from dphmm.tables.clock import Slots
from tests import paper
from tests.scenarios import LABELS, paper_scenario, scenarios, written

# Paper


def test_checking_the_running_example_finds_who_is_exposed_when() -> None:
    steps = list(check_steps(paper_scenario(), 10))
    assert [step.exposed_before for step in steps[:2]] == [(LABELS[4],), (LABELS[2],)]
    assert all(not step.exposed and step.least_protection >= 2 for step in steps)
    assert steps[1].added == ((LABELS[2], LABELS[4]),)
    # The possible set of step 2 is that of Example 5.3, whose repair by error is known.
    assert steps[1].volume == paper.REPAIRED_AREA[4]
    assert steps[-1].lasts


def test_without_repair_the_exposed_stay_exposed() -> None:
    steps = list(check_steps(paper_scenario(repair=None), 2))
    assert [step.exposed for step in steps] == [(LABELS[4],), (LABELS[2],)]
    assert all(step.added == () for step in steps)


def test_a_check_shows_what_full_support_costs() -> None:
    # 24 stops on a ring, all at 0 but the last at 10, which its neighbour must look like.
    ring = np.roll(np.eye(24), 1, axis=1)
    query, policy = Query([0] * 23 + [10]), PolicyGraph(24, [(22, 23)])
    learned = Scenario(query, MarkovModel(ring, anywhere=0.01), policy, epsilon=1)
    found = learned.check(steps=48)
    assert len(found.steps) == 1
    assert found.costs is not None
    assert found.costs.own is not None
    # What the releases of the bus of test_promise_zeros are told, before anything is released.
    assert (found.costs.event, found.costs.window, found.costs.sequence) == (1, 24, 48)
    assert (found.costs.own.event, found.costs.own.sequence) == (0, 4)
    assert "These hold whatever you did" in found._repr_html_()
    stated = Scenario(query, MarkovModel(ring), policy, epsilon=1).check(steps=48).costs
    assert stated is not None
    assert (stated.sequence, stated.stated_zeros, stated.own) == (4, True, None)
    assert Scenario(query, MarkovModel(ring), policy, epsilon=1, delta="0.1").check().costs is None


def test_the_error_of_a_check_is_at_least_the_least() -> None:
    for step in check_steps(paper_scenario(), 3):
        assert 0 < step.least_error <= step.error


def test_a_scenario_has_the_policy_of_all_its_parts(tmp_path: Path) -> None:
    policy = Policy(category="category", distance=Fraction(3, 2), edges="edges.csv")
    base = paper_scenario(policy=policy)
    scenario = Scenario.from_settings(
        base.settings, base.states, base.model, edges=((LABELS[0], LABELS[4]),)
    )
    scenario.save(tmp_path / "a.toml")
    edges = Scenario.load(tmp_path / "a.toml").policy.edges.tolist()
    near = [
        [a, b]
        for a in range(6)
        for b in range(a + 1, 6)
        if np.hypot(*np.subtract(paper.VALUES[a], paper.VALUES[b])) <= 1.5
        or paper.CATEGORIES[a] == paper.CATEGORIES[b]
    ]
    assert edges == sorted([*near, [0, 4]])


# Laws


@given(scenarios())
def test_a_scenario_saved_and_loaded_is_the_same(scenario: Scenario) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "any.toml"
        scenario.save(path)
        loaded = Scenario.load(path)
        assert loaded.settings == scenario.settings
        assert loaded.labels == scenario.labels
        assert loaded.law == scenario.law
        assert loaded.source == scenario.source
        text = path.read_text()
        loaded.save(path)
        assert path.read_text() == text


def test_two_scenarios_in_one_folder_lose_none_of_their_tables(tmp_path: Path) -> None:
    line, stay, ring = Query([0, 1]), MarkovModel(np.eye(2)), MarkovModel(np.eye(2)[::-1])
    first, other, drawn, fewer = (
        Scenario(query, model, policy, epsilon=1, start="0")
        for query, model, policy in (
            (line, ring, PolicyGraph.complete(2)),
            (line, stay, PolicyGraph.complete(2)),
            (Query([5, 9]), ring, PolicyGraph(2, [(0, 1)])),
            (Query([5, 9]), ring, PolicyGraph(2, [])),
        )
    )
    (tmp_path / "pyproject.toml").write_text("[tool]\n")
    first.save(tmp_path / "first.toml")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for name, scenario in (("model.npz", other), ("states.csv", drawn)):
        with pytest.raises(DataError, match=rf"^{name}: file must be .* that first\.toml names; "):
            scenario.save(tmp_path / "second.toml")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    # The same tables may have two names; and whoever is alone may change theirs.
    first.replace(epsilon=2).save(tmp_path / "third.toml")
    assert Scenario.load(tmp_path / "third.toml").settings.epsilon == 2
    # A table that says the same in other words is nobody's loss, and stays as it was written.
    (tmp_path / "states.csv").write_text("label,x\n0,0\n1,1\n")
    first.replace(epsilon=3).save(tmp_path / "third.toml")
    assert (tmp_path / "states.csv").read_text() == "label,x\n0,0\n1,1\n"
    (tmp_path / "sub").mkdir()
    for scenario in (drawn, fewer, other):
        scenario.save(tmp_path / "sub" / "alone.toml")
        assert Scenario.load(tmp_path / "sub" / "alone.toml").law == scenario.law


@given(st.data())
def test_a_policy_of_any_kind_saved_and_loaded_is_the_same_law(data: st.DataObject) -> None:
    base = data.draw(scenarios())
    n_states, query = len(base.states), base.query
    groups = st.lists(st.integers(0, n_states - 1), unique=True)
    kinds = {
        "complete": lambda: PolicyGraph.complete(n_states),
        "category": lambda: PolicyGraph.by_category(base.states.texts["category"]),
        "distance": lambda: PolicyGraph.within_distance(query, data.draw(st.integers(0, 40))),
        "one step": lambda: PolicyGraph.one_step(base.model),
        "rules": lambda: base.policy,
        "cliques": lambda: PolicyGraph(n_states, cliques=data.draw(st.lists(groups, max_size=4))),
        "edges": lambda: PolicyGraph.complete(n_states).without_edges(
            [sorted(data.draw(st.permutations(range(n_states)))[:2])]
        ),
    }
    chosen = data.draw(st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=3))
    graph = reduce(or_, (kinds[kind]() for kind in chosen))
    town = Scenario(base.states, base.model, graph, epsilon=1, start=LABELS[0], clock=Clock(2))
    with TemporaryDirectory() as folder:
        town.save(Path(folder) / "town.toml")
        loaded = Scenario.load(Path(folder) / "town.toml")
    assert loaded.policy == graph
    assert loaded.law == town.law
    answers = [
        one.stream("ann", time=3, randomness=KeyedRandomness(bytes(32))).release(1).lattice
        for one in (town, loaded)
    ]
    assert np.array_equal(*answers)


@pytest.mark.parametrize(
    "states",
    [
        States((" home", "home"), {"x": np.arange(2.0)}, {"category": ("a", "b")}),
        States(("home", "work"), {"x": np.arange(2.0)}, {"category": ("1", "01")}),
        States(("home", "work"), {"x": np.arange(2.0)}, {"category": ("a", "a ")}),
        States(("home", "work"), {"x": np.arange(2.0)}, {"category": ("nan", "1")}),
        States(("home", "work"), {"x": np.arange(2.0)}, {"category": ("a", "a"), " x": ("b", "b")}),
    ],
)
def test_a_table_that_its_file_would_not_give_back_is_not_written(
    states: States, tmp_path: Path
) -> None:
    walk = MarkovModel([[0.5, 0.5], [0.5, 0.5]])
    town = Scenario(states, walk, Policy(category="category"), epsilon=1, columns=("x",))
    with pytest.raises(ScenarioError, match=r"states must be a table that states\.csv gives back"):
        town.save(tmp_path / "town.toml")
    assert not list(tmp_path.iterdir())


def test_a_policy_of_too_many_pairs_is_not_written_as_pairs(tmp_path: Path) -> None:
    size = 2_900  # 4,203,550 pairs
    places, stay = np.stack([np.arange(size)] * 2, axis=1), MarkovModel(sparse.eye_array(size))
    town = Scenario(places, stay, PolicyGraph.complete(size), epsilon=1)
    with pytest.raises(TooLargeError, match="policy must have at most 4194304 links to be written"):
        town.save(tmp_path / "town.toml")
    Scenario(places, stay, Policy(complete=True), epsilon=1).save(tmp_path / "town.toml")
    assert Scenario.load(tmp_path / "town.toml").law == town.law


@given(st.fractions())
def test_a_number_is_written_so_that_it_reads_back(number: Fraction) -> None:
    assert Fraction(as_text(number)) == number


labels = st.text(min_size=1).map(str.strip).filter(lambda text: text and "\0" not in text)


@given(st.lists(st.tuples(labels, st.floats(-1e300, 1e300), labels), min_size=1, max_size=6))
def test_states_are_written_so_that_they_read_back(rows: list[tuple[str, float, str]]) -> None:
    unique = {label: (number, text) for label, number, text in rows}
    states = States(
        tuple(unique),
        {"x": np.array([number for number, _ in unique.values()]), "y": np.zeros(len(unique))},
        {"kind": tuple(f"kind {text}" for _, text in unique.values())},
    )
    with TemporaryDirectory() as folder:
        path = Path(folder) / "states.csv"
        states.write(path)
        back = States.read(path)
    assert back.labels == states.labels
    assert back.texts == states.texts
    np.testing.assert_array_equal(back.values(("x", "y")), states.values(("x", "y")))


@given(
    st.lists(
        st.lists(st.floats(0, 1e6), min_size=3, max_size=3), min_size=3, max_size=3
    ),
    st.sampled_from([None, (0,), (1, 0), (0, 0, 1)]),
    st.text(),
)  # fmt: skip
def test_a_model_is_written_so_that_it_reads_back_to_the_last_bit(
    counts: list[list[float]], schedule: tuple[int, ...] | None, source: str
) -> None:
    plain = MarkovModel.from_counts(counts, smoothing=0.1, density=[0.2, 0.3, 0.5])
    models = [plain, MarkovModel.from_counts(np.eye(3), zeros="facts")]
    model = plain if schedule is None else TimeVaryingModel(models[: max(schedule) + 1], schedule)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        write_model(path, model, source)
        first = path.read_bytes()
        back = read_model(path)
        write_model(path, back.model, back.source)
        assert path.read_bytes() == first
    assert back.source == source
    for time in range(4):
        mine, theirs = model.at(time).transition, back.model.at(time).transition
        assert mine.data.tobytes() == theirs.data.tobytes()
        assert sparse.csr_array(mine != theirs).nnz == 0
        assert model.at(time).digest == back.model.at(time).digest


def test_the_zeros_of_an_old_model_file_are_facts(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    write_model(path, MarkovModel(np.eye(2)), "given")
    with np.load(path) as arrays:
        parts = dict(arrays)
    header = json.loads(parts["header"].tobytes())
    assert (header["format"], header["zeros"], header["anywhere"]) == (2, "facts", [0.0])
    old = {key: header[key] for key in ("n_states", "source")} | {"format": 1}
    parts["header"] = np.frombuffer(json.dumps(old).encode(), np.uint8)
    np.savez(path, **parts)
    assert read_model(path).model.zeros == "facts"
    parts["header"] = np.frombuffer(json.dumps({**header, "format": 4}).encode(), np.uint8)
    np.savez(path, **parts)
    with pytest.raises(DataError, match="model must be of format 3, got a newer one"):
        read_model(path)


def test_a_model_file_whose_term_is_broken_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    write_model(path, MarkovModel(np.eye(2), anywhere=0.1, density=[0.3, 0.7]), "given")
    with np.load(path) as arrays:
        parts = dict(arrays)
    for broken in (
        {"density_0": np.array([1.0])},
        {"header": np.frombuffer(b'{"format": 2, "n_states": 2, "source": ""}', np.uint8)},
    ):
        np.savez(path, **{**parts, **broken})
        with pytest.raises(DataError, match="a model that dphmm wrote, got another"):
            read_model(path)


@given(st.integers(-(10**10), 10**10), st.integers(-14 * 60, 14 * 60), st.sampled_from([1, 7, 300]))
def test_a_slot_depends_on_the_moment_and_not_on_its_zone(
    seconds: int, offset: int, size: int
) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    local = moment.astimezone(timezone(timedelta(minutes=offset)))
    slots = [Slots(Clock(f"{size} s"), "a").of(time.isoformat(), 1) for time in (moment, local)]
    assert slots == [seconds // size] * 2


def test_the_clocks_of_a_place_may_change() -> None:
    clock = Clock("1 h", zone="Europe/Berlin")
    slots = Slots(clock, "a")
    # The last Sunday of March 2024 had no hour from 2 to 3.
    before, after = (slots.of(f"2024-03-31T0{hour}:30:00", 1) for hour in (1, 3))
    assert after - before == 1
    assert Slots(clock, "a").of("2024-03-31T01:30:00+01:00", 1) == before


@pytest.mark.parametrize("step", ["5 min", "5min", "300 s", "300 seconds"])
def test_a_step_may_be_written_in_many_ways(step: str) -> None:
    assert Slots(Clock(step), "a").of("1970-01-01T00:15:00Z", 1) == 3


@pytest.mark.parametrize(
    "wrong", [{"step": 0}, {"step": True}, {"step": "5 moons"}, {"zone": "Mars/Olympus"},
              {"origin": "noon"}]
)  # fmt: skip
def test_a_clock_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ArgumentError, match="must"):
        Clock(**wrong)  # type: ignore[arg-type]


def broken_models() -> Iterator[tuple[str, dict[str, Any]]]:
    """What is no model, by what is put in the place of an array of one with six states."""
    good = {"data_0": np.full(36, 1 / 6), "indices_0": np.tile(np.arange(6), 6)}
    rows = np.arange(0, 37, 6)
    whole = 2**63 - 1
    for name, wrong in (
        ("rows beyond the end", [0, 6, 47622, 18, 24, 30, 36]),
        ("rows that go back", [0, 12, 6, 18, 24, 30, 36]),
        ("rows before the beginning", [0, -6, 12, 18, 24, 30, 36]),
        ("rows whose differences wrap", [0, whole, -2, 18, 24, 30, 36]),
        ("a first row that is not the first", [6, 12, 18, 24, 30, 36, 36]),
        ("rows that end early", [0, 6, 12, 18, 24, 30, 30]),
        ("too few rows", [0, 6, 12, 36]),
    ):
        yield name, {"indptr_0": np.array(wrong)}
    yield "rows in fractions", {"indptr_0": rows / 1}
    yield "columns beyond the end", {"indices_0": np.tile(np.arange(1, 7), 6)}
    yield "too few columns", {"indices_0": good["indices_0"][:30]}
    yield "complex numbers", {"data_0": good["data_0"] + 1j}
    yield "numbers in a square", {"data_0": good["data_0"].reshape(6, 6)}
    yield "lists in lists", {"header": np.frombuffer(b"[" * 9000, np.uint8)}
    yield "a number with many digits", {"header": np.frombuffer(b"9" * 5000, np.uint8)}


@pytest.mark.parametrize("wrong", [pytest.param(wrong, id=name) for name, wrong in broken_models()])
def test_a_model_file_of_a_stranger_is_refused_before_it_is_used(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    """scipy reads and writes where the rows of a matrix say: in a service, in its memory."""
    path = tmp_path / "model.npz"
    write_model(path, MarkovModel(np.full((6, 6), 1 / 6)), "nobody")
    with np.load(path) as arrays:
        held = dict(arrays)
    assert {"header", "data_0", "indices_0", "indptr_0"} <= held.keys()
    np.savez(path, **(held | wrong))
    with pytest.raises(DataError, match="must be a model that dphmm wrote, got another"):
        read_model(path)


def test_a_model_file_with_a_broken_stream_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    write_model(path, MarkovModel(np.full((6, 6), 1 / 6)), "nobody")
    whole = path.read_bytes()
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with suppress(DataError):  # or it was a byte that nobody reads
            read_model(path)


def test_a_model_that_changes_with_time_follows_the_clock() -> None:
    models = [MarkovModel(np.roll(np.eye(6), shift, axis=1)) for shift in range(3)]
    base = paper_scenario(clock=Clock(step=2, origin=13), policy=Policy(complete=True))
    scenario = Scenario.from_settings(base.settings, base.states, TimeVaryingModel(models))
    stream = scenario.stream("ann")
    for time in range(7, 15):
        before = stream.possible
        stream.skip()
        assert stream.time == time
        np.testing.assert_array_equal(stream.possible, models[time % 3].successors(before))


def test_the_law_changes_with_all_that_decides_an_answer() -> None:
    changes: list[dict[str, object]] = [
        {}, {"policy": Policy(complete=True)}, {"mechanism": "laplace"}, {"shape": "enlarged"},
        {"mechanism": "staircase"}, {"mechanism": "staircase", "gamma": "1/2"}, {"shape": "l1"},
        {"repair": "nearest"}, {"full_rank": False}, {"delta": 0.1}, {"start": "uniform"},
        {"step": Fraction(1, 2)}, {"clock": Clock(2)},
    ]  # fmt: skip
    laws = [paper_scenario(**change).law for change in changes]
    base = paper_scenario()
    other = Scenario.from_settings(base.settings, base.states, MarkovModel(np.full((6, 6), 1 / 6)))
    assert len({*laws, other.law}) == len(laws) + 1
    same = paper_scenario(epsilon=Fraction(2), limit=Fraction(9), clock=Clock(origin=3)).law
    assert same == laws[0], "prices may change from run to run"


def test_a_row_does_not_show_where_somebody_was() -> None:
    assert "77" not in repr(Row(1, "ann", "5", 5, 77))


def test_a_file_names_its_noise_and_one_without_a_name_is_k_norm(tmp_path: Path) -> None:
    assert 'mechanism = "knorm"' in paper_scenario().settings.to_toml()
    path = written(tmp_path, mechanism="staircase", gamma="1/3")
    again = Settings.read(path)
    assert (again.mechanism, again.gamma) == ("staircase", Fraction(1, 3))
    kept = [row for row in path.read_text().splitlines() if not row.startswith(("mech", "gamma"))]
    path.write_text("\n".join(kept))
    assert Settings.read(path).mechanism == "knorm"
    path.write_text("\n".join(["gamma = 0.4", *kept]))
    with pytest.raises(ScenarioError, match=":1: gamma must go with staircase noise, got knorm"):
        Settings.read(path)
    path.write_text("\n".join(["mechanism = 'staircase'", "gamma = 1.5", *kept]))
    with pytest.raises(ScenarioError, match="gamma must lie between 0 and 1, got 1"):
        Settings.read(path)


def test_a_check_of_a_staircase_says_what_it_trades() -> None:
    smooth, steps = (paper_scenario(mechanism=name).check() for name in ("knorm", "staircase"))
    assert "may lose as much as those" in steps.guarantee
    assert "may lose as much as those" not in smooth.guarantee
    assert steps.steps[-1].constrained_epsilon == ceil(smooth.steps[-1].constrained_epsilon)


def test_the_file_of_the_docs_names_every_key(tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent / "docs" / "scenario.md").read_text()
    block = page.split("```toml\n")[1].split("```")[0]
    (tmp_path / "town.toml").write_text(block)
    settings = Settings.read(tmp_path / "town.toml")
    assert (settings.name, settings.policy.distance) == ("town", 500)
    assert str(settings.limit) == "24 per 1 day, 200 in all"
    assert settings.clock.origin is not None
    written_keys = set(re.findall(r"^(\w+) =", block, re.MULTILINE))
    assert written_keys == {key for keys in KEYS.values() for key in keys} - set(KEYS)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(TypeError), whole_file(path) as out:
        out.writelines([b"new", "text"])  # type: ignore[list-item]
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


# Oracle


@given(
    st.lists(
        st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=1, max_size=9, unique=True
    ),
    st.tuples(st.floats(-200, 200), st.floats(-200, 200)),
)
def test_the_nearest_state_is_the_nearest(
    places: list[tuple[int, int]], place: tuple[float, float]
) -> None:
    states = States.on_plane(places)
    chosen = int(states.nearest([place])[0])
    distances = np.hypot(*(np.array(places, dtype=np.float64) - place).T)
    np.testing.assert_allclose(distances[chosen], distances.min(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("place", [(1e308, 1e308), (-1e308, 0.0), (float(2**62), 1.0)])
def test_the_farthest_place_has_a_nearest_state(place: tuple[float, float]) -> None:
    assert 0 <= States.on_plane([[0, 0], [1, 1]]).nearest([place])[0] < 2


def test_places_on_earth_are_found_and_given_back() -> None:
    pytest.importorskip("pyproj")
    latitude, longitude = np.array([48.1, 48.2, 48.1]), np.array([11.5, 11.5, 11.7])
    states = States(("a", "b", "c"), {"latitude": latitude, "longitude": longitude})
    settings = Settings("earth", Fraction(1), policy=Policy(complete=True))
    scenario = Scenario.from_settings(settings, states, MarkovModel(np.full((3, 3), 1 / 3)))
    assert scenario.query.dimension == 2
    assert scenario.states.nearest([[48.19, 11.51], [1e300, -1e300], [-90, 0]]).shape == (3,)
    assert scenario.state_of([48.19, 11.51]) == 1
    points = scenario.query.points
    places = scenario.in_places(scenario.query.in_units(points))
    np.testing.assert_array_equal(scenario.on_lattice(places), points)
    np.testing.assert_allclose(places, np.stack([latitude, longitude], axis=1), atol=1e-5)


def test_a_person_without_a_name_of_their_own_is_the_one_given() -> None:
    rows = read_trips(["time;x;y\n", "3;0;0\n"], paper_scenario().states, Clock(), person="ann")
    assert [(row.person, row.slot) for row in rows] == [("ann", 3)]


def test_reading_stops_at_the_row_that_is_wrong() -> None:
    lines = iter(["person,time,state\n", f"a,1,{LABELS[0]}\n", "a,2,nowhere\n", "a,3,x\n"])
    rows = read_trips(lines, paper_scenario().states, Clock())
    assert next(rows).slot == 1
    with pytest.raises(DataError, match="trips:3: state must"):
        next(rows)
    assert next(lines) == "a,3,x\n", "nothing is read ahead"


# The design


def worst_of(scenario: Scenario) -> tuple[float, int]:
    steps = list(check_steps(scenario, 6))
    return max(step.error for step in steps), min(step.least_protection for step in steps)


@pytest.mark.parametrize("error", ["1", "2.5", "10"])
def test_the_epsilon_found_is_the_smallest_in_thousandths(error: str) -> None:
    found = find_epsilon(paper_scenario(), error, steps=6)
    assert found is not None
    assert worst_of(paper_scenario(epsilon=found.value)) == (found.error, found.protection)
    assert found.error <= float(error)
    assert worst_of(paper_scenario(epsilon=found.value - Fraction(1, 1000)))[0] > float(error)


@pytest.mark.parametrize("protection", [2, 3, 4])
def test_the_radius_found_protects_and_a_step_less_does_not(protection: int) -> None:
    def at(radius: Fraction) -> tuple[float, int]:
        policy = Policy(category="category", distance=radius)
        return worst_of(paper_scenario(policy=policy))

    found = find_radius(paper_scenario(), protection=protection, steps=6)
    if found is None:
        assert at(Fraction(10))[1] < protection
        return
    assert at(found.value) == (found.error, found.protection)
    assert found.protection >= protection
    assert found.value == 0 or at(found.value - 1)[1] < protection


def test_a_wish_that_nothing_meets_has_no_design() -> None:
    assert find_radius(paper_scenario(), protection=7, steps=3) is None
    assert find_radius(paper_scenario(), error="0.001", steps=3) is None
    with pytest.raises(ArgumentError, match="must be positive"):
        find_epsilon(paper_scenario(), 0)
