"""When to speak: from the clock and the public belief alone, and the same for everybody."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import (
    ArgumentError,
    Batch,
    BudgetError,
    Clock,
    KeyedRandomness,
    Ledger,
    MarkovModel,
    Plan,
    PolicyGraph,
    Query,
    Schedule,
    Standing,
    Stream,
)
from dphmm.release.hours import slots_within
from dphmm.release.schedule import SILENCE, allowed_at, expected_error, price_of

KEYED = KeyedRandomness(bytes(range(32)))
MINUTE = timedelta(minutes=1)
WALK = MarkovModel(
    [[0.8, 0.2, 0.0, 0.0], [0.1, 0.8, 0.1, 0.0], [0.0, 0.1, 0.8, 0.1], [0.0, 0.0, 0.2, 0.8]]
)
PLAN = Plan(PolicyGraph.complete(4), Query([[0, 0], [3, 0], [0, 4], [9, 9]]))


def stream_of(schedule: Schedule | None, **options: object) -> Stream:
    options = {"epsilon": 1, "start": 0, "time": 100, "person": "ann", **options}
    return Stream(WALK, PLAN, schedule=schedule, randomness=KEYED, **options)  # type: ignore[arg-type]


# Laws


@given(
    every=st.integers(1, 9),
    phase=st.integers(-20, 20),
    apart=st.integers(1, 12),
    window=st.integers(1, 30),
    first=st.integers(-50, 50),
)
def test_every_and_apart_are_the_plain_rules(
    every: int, phase: int, apart: int, window: int, first: int
) -> None:
    schedule = Schedule(every=every, phase=phase, apart=apart)
    spoken: list[int] = []
    for time in range(first, first + 60):
        speaks = (time - phase) % every == 0 and not (spoken and time - spoken[-1] < apart)
        assert schedule.speaks(time, spoken[-1] if spoken else None) == speaks
        spoken += [time] * speaks
    assert allowed_at(schedule, np.arange(5)).tolist() == [
        (t - phase) % every == 0 for t in range(5)
    ]
    counts = [sum(t <= time < t + window for time in spoken) for t in range(first, first + 30)]
    assert max(counts) <= schedule.most_in(window)


@given(path=st.lists(st.integers(0, 3), min_size=1, max_size=12), error=st.sampled_from([1, 2, 4]))
def test_whoever_reads_the_answers_foresees_every_decision(path: list[int], error: int) -> None:
    """The reader has no true state, so the decisions cannot depend on one."""
    schedule = Schedule(error=error, apart=2)
    stream, reader = stream_of(schedule), stream_of(schedule)
    for state in path:
        expected = reader._speaks(reader.posterior.predict(WALK))
        release = stream.release(state)
        assert release.silent != expected
        assert reader.repeat(release.lattice, release.epsilon or None).silent == release.silent
        assert reader.posterior.probabilities.tolist() == stream.posterior.probabilities.tolist()


def test_a_silent_step_says_and_costs_nothing() -> None:
    stream = stream_of(Schedule(every=3, epsilon=5), ledger=Ledger(limit=10))
    before = stream.posterior
    release = stream.release(1)
    assert (release.time, release.silent, release.epsilon) == (101, True, 0)
    assert (release.answer.shape, release.lattice.shape) == ((0,), (0,))
    assert release.statement == SILENCE
    prior = before.predict(WALK)
    assert release.estimate.tolist() == prior.mean(PLAN.query.values).tolist()
    assert "nothing" in release._repr_html_()
    assert stream.ledger.entries == ()
    assert stream.standing.spoke is None
    spoken = stream.release(1)
    assert (spoken.time, spoken.silent, spoken.epsilon) == (102, False, 5)
    assert stream.standing.spoke == 102
    with pytest.raises(ArgumentError, match="true_state must be one of the 4 states"):
        stream.release(4)
    assert [stream.release(1).silent for _ in range(4)] == [True, True, False, True]
    stream.skip(1)
    with pytest.raises(BudgetError):
        stream.release(1)


def test_a_stream_with_a_schedule_says_what_one_says_that_is_skipped() -> None:
    path = [0, 1, 1, 2, 3, 2, 1, 0, 0, 1, 2]
    stream = stream_of(Schedule(every=3))
    plain = stream_of(None, law=stream.law)
    for state in path:
        release = stream.release(state)
        if release.silent:
            plain.skip()
        else:
            assert plain.release(state).lattice.tolist() == release.lattice.tolist()
    assert stream.standing.to_bytes() == plain.standing.to_bytes()
    assert stream.smoothed().tolist() == plain.smoothed().tolist()


def test_a_stream_goes_on_from_its_standing_with_its_last_answer() -> None:
    schedule = Schedule(apart=4)
    whole, cut = stream_of(schedule), stream_of(schedule)
    path = [0, 1, 1, 2, 3, 2, 1, 0, 0, 1, 2]
    expected = [whole.release(state).lattice.tolist() for state in path]
    said = [cut.release(state).lattice.tolist() for state in path[:6]]
    standing = Standing.from_bytes(cut.standing.to_bytes())
    assert standing.spoke == 105
    cut = Stream.resume(standing, WALK, PLAN, epsilon=1, start=0, schedule=schedule,
                        randomness=KEYED)  # fmt: skip
    assert said + [cut.release(state).lattice.tolist() for state in path[6:]] == expected


def test_a_further_question_may_be_asked_at_a_silent_step() -> None:
    stream = stream_of(Schedule(every=50))
    stream.release(1)
    also = stream.release_also(1, Query([0, 1, 2, 3], name="floor"))
    assert not also.silent
    assert stream.standing.spoke is None, "the line's own question was not answered"


@given(data=st.data())
def test_a_batch_says_and_is_silent_as_single_streams_are(data: st.DataObject) -> None:
    schedule = data.draw(
        st.sampled_from(
            [Schedule(every=3), Schedule(error=2), Schedule(error=1, apart=2), Schedule(apart=3)]
        )
    )
    names = [f"p{number}" for number in range(5)]
    batch = Batch(WALK, PLAN, epsilon=1, people=names, start=0, time=100, schedule=schedule,
                  randomness=KEYED)  # fmt: skip
    streams = [stream_of(schedule, person=name) for name in names]
    for _ in range(6):
        states = data.draw(st.lists(st.integers(0, 3), min_size=5, max_size=5))
        active = np.array(data.draw(st.lists(st.booleans(), min_size=5, max_size=5)))
        release = batch.release(states, active=active)
        said = dict(zip(release.people.tolist(), release.lattice.tolist(), strict=True))
        silent = dict(zip(release.silent.tolist(), release.silent_estimate.tolist(), strict=True))
        for person, stream in enumerate(streams):
            if not active[person]:
                stream.skip()
                continue
            alone = stream.release(states[person])
            assert alone.silent == (person in silent) != (person in said)
            assert alone.lattice.tolist() == said.get(person, [])
            if alone.silent:
                assert alone.estimate.tolist() == silent[person]
    for standing, stream in zip(batch.standings(), streams, strict=True):
        assert standing.to_bytes() == stream.standing.to_bytes()


def test_the_conditions_are_in_the_law_and_the_price_is_not() -> None:
    def law(**conditions: object) -> bytes:
        return stream_of(Schedule(**conditions)).law  # type: ignore[arg-type]

    assert law() == law(epsilon=7) == stream_of(None).law
    assert law(every=4, phase=5) == law(every=4, phase=1, epsilon="1/3")
    assert law(every="20 min", step="5 min", zone="Europe/Berlin") == law(every=4)
    different = [
        law(),
        law(every=4),
        law(every=4, phase=1),
        law(apart=4),
        law(error=4),
        law(gaps="answer"),
        law(hours=["08:00"], step="5 min"),
        law(hours=["08:00"], step="10 min"),
        law(hours=["08:00"], step="5 min", zone="Europe/Berlin"),
    ]
    assert len(set(different)) == len(different)


# Oracle


def plainly_within(slot: int, hours: str, step: int, zone: str) -> bool:
    """Look at the place's clocks at every minute of the slot."""
    begin = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=slot * step)
    place = ZoneInfo(zone)
    if "-" in hours:
        first, last = hours.split("-")
        clock = begin.astimezone(place).strftime("%H:%M")
        return first <= clock < last if first < last else clock >= first or clock < last
    minutes = (begin + number * MINUTE for number in range(step // 60))
    return any(minute.astimezone(place).strftime("%H:%M") == hours for minute in minutes)


DAYS = ("2024-03-31", "2024-10-27", "2024-06-01")
"""Clocks go forward, go back, and stay."""


@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC", "Australia/Lord_Howe"])
@pytest.mark.parametrize("step", [5, 15, 60, 180, 420, 1440, 2880])
def test_hours_are_those_of_the_places_clocks(zone: str, step: int) -> None:
    hours = ("08:00", "02:30", "23:59", "17:00-19:00", "22:00-03:00", "01:45-02:15")
    for day in DAYS:
        noon = datetime.fromisoformat(f"{day}T12:00:00+00:00").timestamp()
        around = int(noon) // (step * 60)
        slots = np.arange(around - 36 * 60 // step, around + 36 * 60 // step + 1)
        for one in hours:
            expected = [plainly_within(slot, one, step * 60, zone) for slot in slots.tolist()]
            assert slots_within(slots, [one], step * 60, zone).tolist() == expected, (day, one)
    both = slots_within(slots, hours[:2], step * 60, zone)
    each = [slots_within(slots, [one], step * 60, zone) for one in hours[:2]]
    assert both.tolist() == (each[0] | each[1]).tolist()


def test_slots_that_no_date_has_are_at_no_hour() -> None:
    schedule = Schedule(hours=["00:00-24:00"], step="1 h")
    assert allowed_at(schedule, np.array([0, -(2**52), 2**53])).tolist() == [True, False, False]


def test_the_most_answers_of_a_day_are_counted_where_clocks_change() -> None:
    daily = {"hours": ["08:00"], "step": "5 min"}
    assert Schedule(**daily).most_in(288) == 1  # type: ignore[arg-type]
    # When clocks go forward two mornings are 23 hours apart.
    assert Schedule(zone="Europe/Berlin", **daily).most_in(288) == 2  # type: ignore[arg-type]
    shop = Schedule(hours=["08:00-20:00"], every="1 h", step="5 min")
    assert (shop.most_in(288), shop.most_in(144)) == (12, 12)
    assert Schedule(hours=["08:00-20:00"], apart="3 h", step="5 min").most_in(288) == 8


def test_the_most_answers_are_those_of_any_year_and_any_rhythm() -> None:
    night = Schedule(hours=["01:30"], step="30 min", zone="Europe/Moscow")
    first = Clock("30 min").slot_of("2014-10-25T18:00:00Z")  # clocks went back for good
    assert sum(night.speaks(slot) for slot in range(first, first + 48)) == 2
    assert night.most_in(48) == 2
    rare = Schedule(every="9278 h", hours=["00:00-24:00"], step="1 h")
    assert rare.most_in(24) == 1  # though no time of 2024 is among them
    noon = Schedule(hours=["12:00"], step="1 h", zone="Europe/Berlin")
    assert 365 <= noon.most_in(365 * 24) <= 375


@given(
    hours=st.sampled_from([["01:30"], ["02:00-03:00"], ["22:00-06:00", "12:00"]]),
    zone=st.sampled_from([None, "Europe/Berlin", "Europe/Moscow", "Asia/Kathmandu"]),
    step=st.sampled_from([7, 30, 60]), every=st.integers(1, 5), phase=st.integers(0, 4),
    window=st.sampled_from([1, 5, 24, 48, 200]), year=st.integers(1970, 2060),
    part=st.sampled_from([0, 80, 295, 360]),
)  # fmt: skip
def test_no_year_has_more_answers_than_the_most(
    hours: list[str], zone: str | None, step: int, every: int, phase: int, window: int,
    year: int, part: int,
) -> None:  # fmt: skip
    schedule = Schedule(
        hours=hours,
        zone=zone,
        step=f"{step} min",
        every=every,
        phase=phase,  # type: ignore[arg-type]
    )
    first = Clock(f"{step} min").slot_of(f"{year}-01-01T00:00:00Z") + part * 1440 // step
    said = allowed_at(schedule, first + np.arange(15 * 1440 // step + window))
    counts = np.convolve(said, np.ones(window, dtype=int), "valid")
    most = schedule.most_in(window)
    assert counts.max() <= most
    if zone is None and every == 1 and step != 7:
        assert counts.max() == most


@given(path=st.lists(st.integers(0, 3), min_size=1, max_size=10))
def test_an_error_bound_is_held_against_the_mean_distance(path: list[int]) -> None:
    stream = stream_of(Schedule(error="2.5"))
    for state in path:
        prior = stream.posterior.predict(WALK)
        mean = sum(p * v for p, v in zip(prior.probabilities, PLAN.query.values, strict=True))
        distances = [float(np.hypot(*(v - mean))) for v in PLAN.query.values]
        error = sum(p * d for p, d in zip(prior.probabilities, distances, strict=True))
        assert expected_error(WALK, prior, PLAN.query.values) == pytest.approx(error, rel=1e-12)
        assert stream.release(state).silent == (error <= 2.5)


# What is refused


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"every": 0}, "every must be at least 1, got 0"),
        ({"every": "2 weeks"}, "every must be a number or a duration like '5 min', got '2 weeks'"),
        ({"every": "7 min", "step": "5 min"}, "every must be a whole number of the clock's steps"),
        ({"every": "10 min", "step": 2}, "every must be a whole number of the clock's steps"),
        ({"apart": True}, "apart must be a whole number, got True"),
        ({"phase": 0.5}, "phase must be a whole number, got 0.5"),
        ({"error": 0}, "error must be positive, got 0"),
        ({"epsilon": -1}, "epsilon must be positive, got -1"),
        ({"gaps": "fill"}, "gaps must be skip or answer, got 'fill'"),
        ({"hours": "08:00"}, "hours must be a list of times, got '08:00'"),
        ({"hours": ["25:00"]}, "hours must be times such as '08:00'"),
        ({"hours": ["08:60"]}, "hours must be times such as '08:00'"),
        ({"hours": ["08:00-08:00"]}, "hours must be times such as '08:00'"),
        ({"hours": ["8-9-10"]}, "hours must be times such as '08:00'"),
        ({"hours": [8]}, "hours must be times such as '08:00'"),
        ({"hours": ["08:00"], "step": 1}, "hours must go with a clock of dates"),
        ({"step": 0}, "step must be at least 1, got 0"),
        ({"zone": "Berlin"}, "zone must be a name such as 'Europe/Berlin', got 'Berlin'"),
    ],
)
def test_what_is_no_schedule_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message.replace("(", r"\(")):
        Schedule(**given)  # type: ignore[arg-type]


def test_durations_and_hours_need_a_clock() -> None:
    with pytest.raises(ArgumentError, match="every must be a number of steps where no clock"):
        stream_of(Schedule(every="2 h"))
    with pytest.raises(ArgumentError, match="hours must go with a step such as '5 min', got none"):
        stream_of(Schedule(hours=["08:00"]))
    with pytest.raises(ArgumentError, match="schedule must be a Schedule, got int"):
        stream_of(3)  # type: ignore[arg-type]


def test_a_schedule_reads_as_a_sentence() -> None:
    assert str(Schedule()) == "every step"
    assert str(Schedule(every="2 h", phase="5 min")) == "every 2 h from 5 min on"
    words = str(Schedule(hours=["08:00", "17:00-19:00"], error="0.5", apart=6))
    assert words == (
        "at 08:00, 17:00-19:00 (UTC), when the expected error is above 0.5, at least 6 steps apart"
    )
    assert price_of(Schedule(epsilon="1/3"), Fraction(1)) == Fraction(1, 3)
