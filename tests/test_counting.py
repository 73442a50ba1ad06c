"""Chains that know people: counted, written, read, and the same by every route."""

from __future__ import annotations

import base64
from datetime import datetime
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import (
    Batch,
    Calendar,
    Clock,
    Journal,
    KeyedRandomness,
    MarkovModel,
    MemoryBook,
    MemoryModel,
    MomentumModel,
    SecondOrderModel,
    Store,
    TimeVaryingModel,
)
from dphmm.chain.ground import Ground
from dphmm.chain.markov import Chain
from dphmm.errors import ArgumentError, ScenarioError
from dphmm.release import engine
from dphmm.scenario import Policy, Row, Scenario, Settings, States, read_model
from dphmm.scenario.counting import CONFIDENCE, CONTEXTS, Counted, Counting
from dphmm.scenario.learning import Moves, learn_public, learn_walks
from dphmm.scenario.models import write_model
from dphmm.scenario.packing import pack, unpack
from dphmm.scenario.releasing import ask_rows
from dphmm.studio.drawing import Drawing
from dphmm.studio.effects import Situation
from dphmm.studio.opened import Opened
from dphmm.studio.requests import Walk, read_request
from dphmm.studio.simulate import walk
from tests.scenarios import run

SIDE = 4
CELLS = np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE)), axis=-1).reshape(-1, 2) * 100.0
GROUND = Ground(CELLS)
HOURS = Calendar("hour", 300, "Europe/Berlin")
KEYED = KeyedRandomness(bytes(range(32)))
KINDS = ("first", "second", "momentum")


def tracks(seed: int = 0, people: int = 8, length: int = 80) -> list[tuple[list[int], list[int]]]:
    """Walks over the grid with gaps, in slots of five minutes."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(people):
        slots = np.cumsum(rng.choice([1, 1, 1, 1, 3], length)) + int(rng.integers(0, 2000))
        place = rng.integers(0, SIDE, 2)
        where = []
        for _ in slots:
            place = np.clip(place + rng.integers(-1, 2, 2), 0, SIDE - 1)
            where.append(int(place[1] * SIDE + place[0]))
        found.append((slots.tolist(), where))
    return found


def learned(chain: str, calendar: Calendar | None = None) -> Chain:
    return learn_walks(tracks(), Counting(SIDE**2, chain, calendar, GROUND)).model


def town(model: Chain, **changes: object) -> Scenario:
    settings = {"epsilon": Fraction(1), "step": Fraction(10), "clock": Clock("5 min"), **changes}
    settings.setdefault("policy", Policy(distance=Fraction(150)))
    return Scenario.from_settings(Settings("town", **settings), States.on_plane(CELLS), model)


CHAINS = {
    "second": lambda: learned("second"),
    "momentum": lambda: learned("momentum"),
    "hours": lambda: learned("first", HOURS),
    "momentum by hours": lambda: learned("momentum", HOURS),
    "weekdays": lambda: learned("first", Calendar("weekday", 300)),
    "three steps": lambda: learned("momentum").every(3),
}


# Laws


@pytest.mark.parametrize("kind", KINDS)
def test_a_gap_is_no_move_and_rows_may_come_in_any_order(kind: str) -> None:
    counting = Counting(SIDE**2, kind, None, GROUND)
    slots, states = [5, 6, 7, 9, 10], [0, 1, 2, 9, 10]
    whole = counting.count(slots, states)
    order = [3, 1, 4, 0, 2]
    again = counting.count([slots[i] for i in order] + [6], [states[i] for i in order] + [15])
    assert all((one == other).all() for one, other in zip(whole, again, strict=True))
    parts = [counting.count(slots[:3], states[:3]), counting.count(slots[3:], states[3:])]
    assert Counted.joined(parts).times.sum() == whole.times.sum() == 3


def test_counting_places_is_what_the_plain_counter_does() -> None:
    walks = tracks()
    ours = learn_walks(walks, Counting(SIDE**2), smoothing=0.5).model
    theirs = learn_public([Moves.of_rows(*walk) for walk in walks], SIDE**2, smoothing=0.5).model
    assert ours.digest == theirs.digest


def test_counting_contexts_is_what_fit_does() -> None:
    walks = [np.array(states) for _, states in tracks()]
    ours = learn_walks(
        [(np.arange(len(w)), w) for w in walks], Counting(16, "momentum", None, GROUND)
    )
    theirs = MomentumModel.fit(walks, places=CELLS)
    assert ours.model.digest == theirs.digest
    assert isinstance(ours.model, MomentumModel)
    assert ours.model.n_states == 16 * CONTEXTS


def test_people_who_walk_straight_go_on_straight() -> None:
    walks = [([*range(4)], [row * 4 + column for column in range(4)]) for row in range(4)] * 5
    walks += [(slots, states[::-1]) for slots, states in walks]
    model = learn_walks(walks, Counting(16, "momentum", None, GROUND)).model
    plain = learn_walks(walks, Counting(16)).model
    seen = [np.where(np.arange(16) == place, 0.0, -5.0) for place in (4, 5, 6)]
    after, before = (
        chain.filter([*seen, None], start=4)[-1].probabilities[7] for chain in (model, plain)
    )
    assert after > 0.75 > 0.6 > before


def test_hours_are_those_of_the_place() -> None:
    for slot in (0, 5, 123_456, 5_000_000):
        moment = datetime.fromtimestamp(slot * 300, ZoneInfo("Europe/Berlin"))
        assert HOURS(slot) == moment.hour
        assert Calendar("weekday", 300, "Europe/Berlin")(slot) == moment.weekday()
    assert HOURS.parts([0, 1, 12, 0]).tolist() == [1, 1, 2, 1]


def test_what_is_seen_at_an_hour_counts_there_most() -> None:
    # At one they go right, at two they stay.
    walks = [([0, 1], [0, 1]), ([12, 13], [0, 0])] * 300
    model = learn_walks(walks, Counting(16, "first", Calendar("hour", 300))).model
    assert isinstance(model, TimeVaryingModel)
    chances = [model.at(slot).transition[0, 1] for slot in (1, 13, 100)]
    assert chances[0] > 0.9
    assert chances[1] < 0.1
    assert chances[2] == pytest.approx(0.5)


@pytest.mark.parametrize("name", CHAINS)
def test_a_model_file_holds_the_chain_to_the_last_bit(name: str, tmp_path: Path) -> None:
    model = CHAINS[name]()
    write_model(tmp_path / "model.npz", model, "made up", "300 s")
    again = read_model(tmp_path / "model.npz")
    assert (again.model.digest, again.source, again.step) == (model.digest, "made up", "300 s")
    assert (again.model.n_places, again.model.n_states) == (model.n_places, model.n_states)


def test_a_density_of_places_is_kept(tmp_path: Path) -> None:
    model = MemoryModel(np.full((3, 3), 1 / 3), [0, 0, 1], [0, 2], anywhere=0.1, density=[0.2, 0.8])
    write_model(tmp_path / "model.npz", model, "made up")
    again = read_model(tmp_path / "model.npz")
    assert (again.model.digest, again.step) == (model.digest, None)


# Routes


def rows_of(people: int, seed: int = 3) -> list[Row]:
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(people):
        slots = np.sort(rng.choice(np.arange(4000, 4040), 8, replace=False)).tolist()
        rows += [Row(0, f"p{person:02d}", str(slot), slot, int(rng.integers(16))) for slot in slots]
    return rows


@pytest.mark.parametrize("name", CHAINS)
def test_every_book_and_a_stream_say_the_same(name: str, tmp_path: Path) -> None:
    town(CHAINS[name]()).save(tmp_path / "town.toml")
    scenario = Scenario.load(tmp_path / "town.toml")
    assert scenario.law == town(CHAINS[name]()).law
    rows = rows_of(18)
    found = []
    with Journal(tmp_path / "ledger.jsonl", scenario.settings.clock.time_of) as journal:
        books = (journal, Store.open(str(tmp_path / "streams.db")), MemoryBook())
        for book in books:
            (answered,) = engine.release(book, [ask_rows(scenario, rows)], KEYED)
            assert not answered.faults
            found.append((answered.answers.lattice, answered.answers.estimate))
            # A second time they are repeated, and a stream goes on where the book stands.
            (again,) = engine.release(book, [ask_rows(scenario, rows)], KEYED)
            assert again.repeated == len(rows)
            stream = scenario.stream("p00", book=book, randomness=KEYED)
            assert stream.time == max(row.slot for row in rows if row.person == "p00")
        books[1].close()
    for lattice, estimate in found[1:]:
        assert (lattice == found[0][0]).all()
        assert (estimate == found[0][1]).all()
    for person in ("p00", "p07"):
        mine = [number for number, row in enumerate(rows) if row.person == person]
        stream = scenario.stream(person, time=rows[mine[0]].slot - 1, randomness=KEYED)
        for number in mine:
            stream.skip(rows[number].slot - stream.time - 1)
            release = stream.release(rows[number].state)
            assert (release.lattice == found[0][0][number]).all()


@pytest.mark.parametrize("name", CHAINS)
def test_a_batch_equals_its_streams(name: str) -> None:
    scenario = town(CHAINS[name](), estimate="median")
    options = {"epsilon": 1, "start": scenario.start, "time": 4000, "randomness": KEYED}
    people = ["ann", "bob", "eve"]
    batch = Batch(scenario.model, scenario.plan, people=people, estimate="median", **options)
    streams = [scenario.stream(person, time=4000, randomness=KEYED) for person in people]
    batch._laws = [scenario.terms.law]
    rng = np.random.default_rng(0)
    for _ in range(3):
        states = rng.integers(16, size=3)
        said = batch.release(states)
        for number, stream in enumerate(streams):
            release = stream.release(int(states[number]))
            assert (said.lattice[number] == release.lattice).all()
            assert (said.estimate[number] == release.estimate).all()


@pytest.mark.parametrize("name", ["momentum", "momentum by hours", "three steps"])
@pytest.mark.spark
def test_a_partition_of_spark_says_what_the_local_engine_does(name: str) -> None:
    from tests.spark_worlds import as_batch, local_run, same_answers
    from tests.test_spark_partition import run as run_partition

    scenario, rows = town(CHAINS[name]()), rows_of(18)
    answers, _ = run_partition(scenario, [as_batch(rows)])
    with local_run(scenario, rows) as journal:
        assert same_answers(scenario, answers, journal)


@pytest.mark.parametrize("name", ["second", "momentum by hours"])
def test_a_scenario_travels_in_one_text_to_the_service(name: str, tmp_path: Path) -> None:
    scenario = town(CHAINS[name]())
    scenario.save(tmp_path / "town.toml")
    model = base64.b64encode((tmp_path / "model.npz").read_bytes()).decode()
    texts = [(tmp_path / file).read_text() for file in ("town.toml", "states.csv")]
    _, packed = pack(*texts, model)
    assert unpack(packed).law == scenario.law


@pytest.mark.parametrize("name", CHAINS)
def test_the_studio_draws_and_walks(name: str) -> None:
    scenario = town(CHAINS[name]())
    drawing = Drawing("town", "made up", "m", ("x", "y"), CELLS, 100.0)
    opened = Opened(scenario, drawing, scenario.settings.to_toml())
    assert opened.described["n_states"] == 16
    (released,) = walk(opened, read_request(Walk, {"length": 3}, n_states=16))["runs"]
    assert max(released["steps"][-1]["posterior"]["states"]) < 16
    assert Situation.of(scenario, 2).released()["step"] == scenario.check(2).steps[-1].plain()


@pytest.mark.parametrize("name", CHAINS)
def test_check_statement_and_one_step_policies_are_about_places(name: str) -> None:
    scenario = town(CHAINS[name](), policy=Policy(one_step=True), start="stationary")
    if scenario.model.varies:
        scenario = scenario.replace(start="uniform")
    assert scenario.policy.n_states == 16
    assert scenario.check(steps=2).steps[0].possible == 16
    stream = scenario.stream("ann", time=4000)
    for state in (1, 2, 3):
        stream.release(state)
    assert stream.statement(width=2).releases == 3


# Commands


def write_trips(folder: Path) -> None:
    States.on_plane(CELLS).write(folder / "states.csv")
    clock = Clock("5 min")
    lines = [
        f"p{person},{clock.time_of(slot)},{state}"
        for person, (slots, states) in enumerate(tracks())
        for slot, state in zip(slots, states, strict=True)
    ]
    (folder / "trips.csv").write_text("\n".join(["person,time,state", *lines]) + "\n")


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (("--chain", "momentum"), MomentumModel),
        (("--chain", "second"), SecondOrderModel),
        (("--by", "hour", "--time-zone", "Europe/Berlin"), TimeVaryingModel),
        (("--chain", "momentum", "--by", "weekday"), TimeVaryingModel),
    ],
)
def test_learn_gives_the_library_s_chain(options: tuple[str, ...], kind: type, tmp_path: Path):
    write_trips(tmp_path)
    arguments = ("learn", tmp_path / "trips.csv", "--states", tmp_path / "states.csv")
    output = ("--time-step", "5 min", "-o", tmp_path / "model.npz")
    result = run(*arguments, *output, *options, "--confidence", "counts")
    assert result.exit_code == 0, result.output
    assert "16 states" in result.stdout
    model = read_model(tmp_path / "model.npz")
    calendar = None
    if "--by" in options:
        zone = "Europe/Berlin" if "--time-zone" in options else None
        calendar = Calendar(options[options.index("--by") + 1], 300, zone)
    chain = options[1] if options[0] == "--chain" else "first"
    expected = learned(chain, calendar)
    assert isinstance(expected, kind)
    assert (model.model.digest, model.step) == (expected.digest, "300 s")


def test_less_confidence_is_nearer_to_what_people_do_anywhere(tmp_path: Path) -> None:
    for chain in ("first", "momentum"):
        sure, unsure = (
            learn_walks(tracks(), Counting(16, chain, None, GROUND, confidence)).model.at(1)  # type: ignore[arg-type]
            for confidence in (1.0, 0.01)
        )
        assert unsure.transition.data.max() < sure.transition.data.max()
        assert sure.transition.nnz == unsure.transition.nnz
    write_trips(tmp_path)
    arguments = ("learn", tmp_path / "trips.csv", "--states", tmp_path / "states.csv",
                 "--time-step", "5 min", "-o", tmp_path / "model.npz")  # fmt: skip
    for options, counting in (
        ((), Counting(16, "first", None, GROUND, CONFIDENCE["first"])),
        (("--chain", "momentum"), Counting(16, "momentum", None, GROUND, CONFIDENCE["momentum"])),
        (("--confidence", 0.5), Counting(16, "first", None, GROUND, 0.5)),
    ):
        assert run(*arguments, *options).exit_code == 0
        found = read_model(tmp_path / "model.npz")
        assert found.model.digest == learn_walks(tracks(), counting).model.digest
        assert found.source == counting.source
    held_out = run(*arguments, "--confidence", "held-out")
    assert held_out.exit_code == 0, held_out.stderr
    assert "; confidence " in read_model(tmp_path / "model.npz").source


def test_a_confidence_is_a_share_and_needs_places() -> None:
    with pytest.raises(ArgumentError, match="confidence must be above 0 and at most 1, got 2"):
        Counting(16, "first", None, GROUND, 2)
    with pytest.raises(ArgumentError, match="confidence must not be given for states without"):
        Counting(16, "first", None, None, 0.5)


def test_a_scenario_with_longer_steps_takes_several_of_the_model_s(tmp_path: Path) -> None:
    model = learned("momentum")
    town(model).save(tmp_path / "town.toml")
    text = (tmp_path / "town.toml").read_text()
    (tmp_path / "town.toml").write_text(text.replace('"5 min"', '"15 min"'))
    scenario = Scenario.load(tmp_path / "town.toml")
    assert scenario.model.digest == model.every(3).digest
    # Written and read again it is the same, in steps of its own.
    (tmp_path / "again").mkdir()
    scenario.save(tmp_path / "again" / "town.toml")
    assert Scenario.load(tmp_path / "again" / "town.toml").law == scenario.law
    for wrong in ('"7 min"', "5"):
        (tmp_path / "town.toml").write_text(text.replace('"5 min"', wrong))
        with pytest.raises(
            ScenarioError, match=r"time.step must be a whole number of steps of 300"
        ):
            Scenario.load(tmp_path / "town.toml")


# Oracle


@given(st.integers(0, 2**32 - 1))
def test_pairs_are_counted_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    walk_of = rng.integers(0, 4, 12)
    counting = Counting(4, "second")
    model = learn_walks([(np.arange(12), walk_of)], counting, zeros="facts").model
    assert isinstance(model, SecondOrderModel)
    first = np.eye(4)
    for before, after in pairwise(walk_of):
        first[before, after] += 1
    first /= first.sum(axis=1, keepdims=True)
    for number, (previous, current) in enumerate(model.pairs.tolist()):
        row = 10 * first[current]
        for a, b, c in zip(walk_of, walk_of[1:], walk_of[2:], strict=False):
            if (a, b) == (previous, current):
                row[c] += 1
        found = np.zeros(4)
        entries = slice(*model.transition.indptr[number : number + 2])
        np.add.at(found, model.current[model.transition.indices[entries]],
                  model.transition.data[entries])  # fmt: skip
        np.testing.assert_allclose(found, row / row.sum(), rtol=1e-12)


# Bad input


def test_what_does_not_go_together_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="chain must not be 'momentum' for states without"):
        Counting(4, "momentum")
    with pytest.raises(ArgumentError, match="chain must be one of first, second, momentum"):
        Counting(4, "third")
    with pytest.raises(ArgumentError, match="smoothing must stand without a chain that remembers"):
        learn_walks(tracks(), Counting(16, "second"), smoothing=1.0)
    with pytest.raises(ArgumentError, match="by must be hour or weekday, got 'month'"):
        Calendar("month", 300)
    with pytest.raises(ArgumentError, match="zone must be a name such as 'Europe/Berlin'"):
        Calendar("hour", 300, "Berlin")
    with pytest.raises(ArgumentError, match="time must be a slot of the years 1 to 9999"):
        Calendar("hour", 300)(10**15)
    with pytest.raises(ArgumentError, match="trust must be above 0"):
        TimeVaryingModel.drawn_to(MarkovModel(np.eye(2)), [], trust=0)
    with pytest.raises(ArgumentError, match="step must be a duration like '5 min', got 5"):
        _ = Clock(5).seconds
    write_trips(tmp_path)
    plain = ("learn", tmp_path / "trips.csv", "--states", tmp_path / "states.csv", "-o", "x.npz")
    timed = (*plain, "--time-step", "5 min")
    for options, message in (
        ((*plain, "--by", "hour"), "--by must go with a --time-step like '5 min'"),
        ((*timed, "--by", "hour", "--slots", 2), "must stand without --slots"),
        (
            (*timed, "--chain", "second", "--smoothing", 1),
            "--confidence counts, to go with",
        ),
        (
            (*timed, "--chain", "second", "--epsilon", 1, "--radius", 9),
            "--epsilon must stand without --chain second",
        ),
    ):
        result = run(*options)
        assert (result.exit_code, message in result.stderr) == (2, True), result.output
    (tmp_path / "named.csv").write_text("label\na\nb\n")
    result = run(
        *plain[:2], "--states", tmp_path / "named.csv", "-o", "x.npz", "--chain", "momentum"
    )
    assert "must go with states that have places" in result.stderr
