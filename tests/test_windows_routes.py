"""Limits with windows over HTTP, on Spark's workers, by commands, and through kills."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm import BudgetError, Clock, Limit, MarkovModel, PolicyGraph, Scenario, Schedule
from dphmm.books import Store, find_problems
from dphmm.geometry.exact import as_text
from dphmm.release import engine
from dphmm.release.admission import Verdict
from dphmm.release.engine import Ask
from dphmm.scenario import Row
from dphmm.service import ServiceSettings
from tests.crash import paper_scenario
from tests.crash.killing import PEOPLE, Killing
from tests.scenarios import FEWER, run, trips, written
from tests.service_worlds import World
from tests.test_service_processes import ask as ask_server
from tests.test_service_processes import key_of, serving
from tests.windows import SCHEDULES, Paid, Plain, allows, holds, limits

SETTINGS = ServiceSettings(tick=0, rate=0, wrong_keys=0, key_memory=0, largest_epsilon="2")
PRICES = [Fraction(1, 2), Fraction(1), Fraction(3, 2)]


def body(limit: str, query: str = "state", when: Schedule | None = None) -> dict[str, Any]:
    toml = f'limit = "{limit}"\n' + paper_scenario.TOML
    if when is not None:
        toml += f"[when]\nevery = {when.every}\nphase = {when.phase}\napart = {when.apart}\n"
    return paper_scenario.body(toml.replace("[query]", f'[query]\nname = "{query}"'))


def random_rows(rng: np.random.Generator, count: int) -> list[tuple[str, int, Fraction]]:
    """Two questions, mostly forwards in time."""
    forwards = np.sort(rng.integers(1, 2 * count, size=count))
    slots = np.maximum(1, forwards - rng.integers(0, 4, size=count))
    return [
        (["state", "other"][int(rng.integers(2))], slot, PRICES[int(rng.integers(3))])
        for slot in slots.tolist()
    ]


# HTTP


STATUSES = {
    Verdict.SILENT: 200, Verdict.NEW: 200, Verdict.REPEATED: 200, Verdict.LATE: 422,
    Verdict.OVER: 409,
}  # fmt: skip


def check_service(world: World, person: str, seed: int) -> set[int]:
    """Every status and every refusal's fields against the plain rules; the verdicts met."""
    limit, own = Limit.read("3 per 4 steps, 30 in all"), Limit.read("4 per 7 steps")
    paths = {}
    when = None if seed % 2 else Schedule(every=1 + seed // 2, apart=2)
    for query in ("state", "other"):
        asked = body(str(limit), query, when)
        added = world.ask("POST", "/v1/scenarios", asked).json()
        assert added["limit"] == "3 per 4 steps, 30 in all"
        paths[query] = f"/v1/scenarios/{added['id']}/people/{person}"
    assert world.ask("PUT", paths["state"], {"budget": str(own)}).status_code == 200
    plain, rng = Plain(), np.random.default_rng(seed)
    plain.answered |= {"state": {0}, "other": {0}}  # the origin
    seen = set()
    for query, slot, price in random_rows(rng, 40):
        asked = {"time": slot, "state": int(rng.integers(6)), "epsilon": str(price)}
        before = [*plain.paid]
        ((verdict,), _) = plain.judge(query, [(slot, price)], limit, own, when=when)
        answer = world.ask("POST", paths[query] + "/releases", asked)
        assert answer.status_code == STATUSES[Verdict(verdict)], answer.text
        seen.add(verdict)
        if verdict == Verdict.OVER:
            said = answer.json()
            assert Fraction(said["remaining"]) < price == Fraction(said["requested"])
            later = [
                when
                for when in range(slot, 100)
                if allows(before, limit, when, price) and allows(before, own, when, price)
            ]
            assert said.get("slot") == said.get("time") == (later[0] if later else None)
            if later:
                assert said["window"] in ("3 per 4 steps", "4 per 7 steps")
                assert f"ask again for {later[0]} or later" in said["problem"]
    assert holds(plain.paid, limit)
    assert holds(plain.paid, own)
    page = world.ask("GET", f"/v1/people/{person}/ledger").json()
    assert page["budget"] == "4 per 7 steps"
    latest = max(slot for slot, _ in plain.paid)
    held = max(sum((p for s, p in plain.paid if a <= s < a + 7), start=Fraction(0))
               for a in range(latest - 6, latest + 1))  # fmt: skip
    assert Fraction(page["remaining"]) == 4 - held
    worst = world.ask("GET", paths["state"] + "/privacy").json()
    assert "at an instant" in worst["text"]
    assert set(worst["windows"]) == {"4 steps", "7 steps"}
    return seen


def test_a_service_gives_the_verdicts_of_the_plain_rules(tmp_path: Path) -> None:
    world = World(tmp_path, SETTINGS)
    seen = [check_service(world, f"p{seed}", seed) for seed in range(4)]
    assert set.union(*seen) == set(STATUSES)
    assert find_problems(world.store) == []
    world.store.close()


def test_a_budget_that_is_no_limit_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path, SETTINGS)
    for bad, says in [
        ("24 per 1 day", "budget must count its windows in steps where steps have no duration"),
        ("24 per 3 apples", "budget must be like '24', '24 per 1 day'"),
        ("24 per", "pattern"),
        ("1/100000000000000000001 per 2 steps", "pattern"),
        ("0 per 2 steps", "budget must be positive"),
        (10**21, "budget must be a decimal with at most 20 places"),
    ]:
        answer = world.ask("PUT", world.person, {"budget": bad})
        assert answer.status_code == 422, bad
        assert says in answer.json()["problem"]
    for fine in (5, "5"):
        assert world.ask("PUT", world.person, {"budget": fine}).status_code == 200
    assert world.ask("PUT", world.person, {"budget": "5 per 9 steps"}).status_code == 422
    world.store.close()


def test_a_persons_day_is_counted_in_the_scenarios_steps(tmp_path: Path) -> None:
    world = World(tmp_path, SETTINGS)
    toml = paper_scenario.TOML.replace("origin = 0", 'step = "6 hours"')
    digest = world.ask("POST", "/v1/scenarios", paper_scenario.body(toml)).json()
    person = f"/v1/scenarios/{digest['id']}/people/ben"
    assert world.ask("PUT", person, {"budget": "2 per 1 day"}).status_code == 200
    refused = []
    for hour in ("00", "06", "12", "18"):
        asked = {"time": f"2024-05-01T{hour}:30:00Z", "state": 4}
        refused.append(world.ask("POST", person + "/releases", asked))
    assert [answer.status_code for answer in refused] == [200, 200, 409, 409]
    said = refused[2].json()
    assert (said["window"], said["remaining"]) == ("2 per 1 day", "0")
    assert said["time"] == "2024-05-02T00:00:00Z"
    page = world.ask("GET", "/v1/people/ben/ledger").json()
    assert (page["budget"], page["remaining"]) == ("2 per 1 day", "0")
    assert find_problems(world.store) == []
    world.store.close()


def paid_in(url: str, client: str = "red") -> dict[str, Paid]:
    store = Store.open(url)
    found = {
        person: [
            (entry.time, entry.epsilon) for entry in store.ledger(person, client=client).entries
        ]
        for person in store.people(client=client)
    }
    store.close()
    return found


def check_two_servers(url: str) -> None:
    """Two processes, four clients, eight people; each client asks for every slot."""
    limit, people = Limit.read("3/2 per 5 steps"), [f"p{number}" for number in range(8)]
    asked = body(str(limit), when=Schedule(apart=2))
    key, seen, guard = key_of(url), [], threading.Lock()
    with serving(url, "--tick", "0") as one, serving(url, "--tick", "0") as two:
        status, added = ask_server(one[1], key, "POST", "/v1/scenarios", asked)
        assert status == 201
        path = f"/v1/scenarios/{added['id']}/people/"
        for person in people:
            assert ask_server(one[1], key, "PUT", path + person, {})[0] == 200

        def client(port: int, seed: int) -> None:
            rng = np.random.default_rng(seed)
            for slot in range(1, 13):
                for person in people:
                    price = PRICES[int(rng.integers(2))]
                    asked = {"time": slot, "state": seed, "epsilon": str(price)}
                    answer = 503
                    while answer == 503:
                        answer, _ = ask_server(port, key, "POST", f"{path}{person}/releases", asked)
                    with guard:
                        seen.append((person, slot, price, answer))

        ports = (one[1], two[1])
        threads = [
            threading.Thread(target=client, args=(ports[seed % 2], seed)) for seed in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    paid = paid_in(url)
    assert {status for *_, status in seen} <= {200, 409, 422}
    assert any(status == 409 for *_, status in seen)
    assert all(holds(some, limit) for some in paid.values())
    assert all(
        (np.diff([slot for slot, price in some if price]) >= 2).all() for some in paid.values()
    )
    for person, slot, price, status in seen:
        # What is spent only grows, so whatever was refused must still be.
        assert status != 409 or not allows(paid[person], limit, slot, price)


def test_two_servers_on_one_file_never_pass_a_window(tmp_path: Path) -> None:
    check_two_servers(str(tmp_path / "store.db"))


@pytest.mark.postgres
def test_two_servers_on_postgresql_never_pass_a_window(request: pytest.FixtureRequest) -> None:
    check_two_servers(request.getfixturevalue("postgres_server").new_database())


def check_kills(url: str, kills: int) -> None:
    budget = Limit.read("2 per 5 steps")
    seen = Killing(url, 11, budget=str(budget)).run(kills)
    assert seen.violations(url) == []
    paid = paid_in(url)
    assert all(holds(some, budget) for some in paid.values())
    assert len(paid) == PEOPLE
    for person, slot in seen.refused:
        assert not allows(paid[person], budget, slot, Fraction(1))


def test_no_window_is_passed_by_servers_that_are_killed(tmp_path: Path) -> None:
    check_kills(str(tmp_path / "store.db"), 4)


@pytest.mark.slow
def test_no_window_is_passed_by_servers_that_are_killed_often(tmp_path: Path) -> None:
    check_kills(str(tmp_path / "store.db"), 100)


@pytest.mark.slow
@pytest.mark.postgres
def test_no_window_is_passed_by_killed_servers_on_postgresql(
    request: pytest.FixtureRequest,
) -> None:
    check_kills(request.getfixturevalue("postgres_server").new_database(), 100)


# Two processes, and any windows


Asked = tuple[str, int, Fraction, int]
"""A person, an instant in tens of minutes, the price, and the verdict."""


def random_world(seed: int) -> tuple[dict[str, Limit], dict[int, Scenario]]:
    """People with limits of their own, and two questions whose steps differ in length."""
    rng = np.random.default_rng(seed)

    def limit() -> Limit:
        hours = rng.choice([1, 2, 3, 5], size=int(rng.integers(1, 3)), replace=False).tolist()
        parts = [f"{as_text(PRICES[int(rng.integers(3))] + h)} per {h} hours" for h in hours]
        parts += [["9 in all", "30 in all"][int(rng.integers(2))]] * int(rng.integers(2))
        return Limit.read(", ".join(parts))

    shared, apart = limit(), int(rng.integers(1, 3))
    town = Scenario([0, 1], MarkovModel([[0.5, 0.5]] * 2), PolicyGraph.complete(2), epsilon=1)
    towns = {
        step: town.replace(query=f"q{step}", clock=Clock(f"{step}0 min"), limit=shared, when=when)
        for step, when in ((1, Schedule(apart=apart)), (3, None))
    }
    return {f"p{number}": limit() for number in range(4)}, towns


def ask_forwards(url: str, seed: int, side: int) -> list[Asked]:
    """One process: everybody's rows, about forwards in time, at prices of its own."""
    people, towns = random_world(seed)
    rng, asked = np.random.default_rng([seed, side]), []
    with closing(Store.open(url)) as store:
        for instant in range(1, 31):
            for name in rng.permutation([*people]).tolist():
                for step, town in towns.items():
                    slot = (instant + int(rng.integers(2))) // step
                    price = PRICES[int(rng.integers(3))]
                    one = Ask(town.terms, [name], np.array([slot]), np.array([side]), [price])
                    (answered,) = engine.release(store, [one])
                    asked.append((name, slot * step, price, int(answered.verdicts[0])))
    return asked


def check_two_processes(url: str, seed: int) -> None:
    people, towns = random_world(seed)
    with closing(Store.open(url)) as store:
        for name, own in people.items():
            store.begin(name, budget=own)
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        sides = [pool.submit(ask_forwards, url, seed, side) for side in (0, 1)]
        asked = [row for side in sides for row in side.result()]
    assert {Verdict.NEW, Verdict.REPEATED, Verdict.OVER} <= {verdict for *_, verdict in asked}
    shared = towns[1].settings.limit
    assert shared is not None
    for name, own in people.items():
        mine = [(when, price, verdict) for person, when, price, verdict in asked if person == name]
        paid = [(when, price) for when, price, verdict in mine if verdict == Verdict.NEW]
        both = (shared.in_steps("600 s"), own.in_steps("600 s"))
        assert all(holds(paid, limit) for limit in both)
        for when, price, verdict in mine:
            # What is spent only grows, so whatever was refused must still be.
            refused = not all(allows(paid, limit, when, price) for limit in both)
            assert refused or verdict != Verdict.OVER
    assert sum((price for person in paid_in(url, "").values() for _, price in person)) == sum(
        price for _, _, price, verdict in asked if verdict == Verdict.NEW
    )
    with closing(Store.open(url)) as store:
        assert find_problems(store) == []


def test_two_processes_on_one_file_never_pass_any_window(tmp_path: Path) -> None:
    check_two_processes(str(tmp_path / "store.db"), 1)


@pytest.mark.postgres
def test_two_processes_on_postgresql_never_pass_any_window(request: pytest.FixtureRequest) -> None:
    check_two_processes(request.getfixturevalue("postgres_server").new_database(), 2)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("seed", range(3, 13))
def test_two_processes_on_postgresql_never_pass_any_of_many_windows(
    request: pytest.FixtureRequest, seed: int
) -> None:
    check_two_processes(request.getfixturevalue("postgres_server").new_database(), seed)


# Spark's workers


@pytest.mark.spark
@FEWER
@given(
    runs=st.lists(st.lists(st.integers(1, 20), min_size=1, max_size=6, unique=True), max_size=4),
    limit=limits(windows=1),
    when=SCHEDULES,
)
def test_a_partition_stops_where_the_plain_rules_refuse(
    runs: list[list[int]], limit: Limit, when: Schedule | None
) -> None:
    """Each run knows of the one before what is in its state."""
    from dphmm.spark.partition import Partition
    from tests.spark_worlds import KEYED, as_batch, city

    scenario, plain, state = city(2, limit=limit, when=when), Plain(), []
    for slots in runs:
        rows = [Row(0, "ann", str(slot), slot, slot % 4) for slot in sorted(slots)]
        again = Plain()
        again.paid, again.answered = [*plain.paid], {"q": {*plain.answered.get("q", ())}}
        again.spoke = dict(plain.spoke)
        priced = [(row.slot, Fraction(1)) for row in rows]
        verdicts, new = again.judge("q", priced, limit, when=when)
        partition = Partition(scenario, KEYED, used=KEYED.fingerprint if state else None)
        if Verdict.OVER in verdicts:
            with pytest.raises(BudgetError):
                list(partition.answer([as_batch(rows, state)]))
            continue
        plain = again
        found = [r for b in partition.answer([as_batch(rows, state)]) for r in b.to_pylist()]
        answers = [row for row in found if row["table"] == "answers"]
        assert len(answers) == sum(verdict <= Verdict.NEW for verdict in verdicts)
        said = [row["slot"] for row in answers if row["lattice"] != "[]"]
        assert said == [rows[number].slot for number in new]
        state = [row for row in found if row["table"] == "state"]
    assert holds(plain.paid, limit)


@pytest.mark.spark
@FEWER
@given(
    parts=st.lists(st.lists(st.integers(1, 20), min_size=1, max_size=6), max_size=5),
    limit=limits(windows=1),
    when=SCHEDULES,
)
def test_a_stream_on_spark_drops_what_the_plain_rules_refuse(
    parts: list[list[int]], limit: Limit, when: Schedule | None
) -> None:
    from dphmm.spark.streaming import answer
    from tests.spark_worlds import KEYED, city

    terms, held, plain = city(2, limit=limit, when=when).terms, None, Plain()
    for slots in parts:
        ordered = sorted(slots)
        priced = [(slot, Fraction(1)) for slot in ordered]
        expected, new = plain.judge("q", priced, limit, when=when)
        asked = Ask(terms, ["ann"] * len(slots), np.array(ordered), np.zeros(len(slots), dtype=int))
        held, answers, unanswered = answer(KEYED, held, asked)
        records = [record for some in answers for record in some.records()]
        assert [one.time for one in records if one.lattice] == [ordered[row] for row in new]
        left = [slot for slot, v in zip(ordered, expected, strict=True) if v > Verdict.NEW]
        assert unanswered.tolist() == left
    assert holds(plain.paid, limit)


# Commands


def day_file(folder: Path, *times: str) -> Path:
    path = folder / "rows.csv"
    path.write_text(trips(*(("ann", f"2024-05-01T{time}Z", 3) for time in times)))
    return path


def test_a_file_beyond_a_window_is_refused_whole_and_says_when_it_opens(tmp_path: Path) -> None:
    path = written(tmp_path, clock=Clock("1 hour"), limit=Limit.read("2 per 3 hours"))
    assert 'limit = "2 per 3 hours"' in path.read_text()
    full = run("release", path, day_file(tmp_path, "10:00", "11:00", "12:59"))
    assert full.exit_code == 1
    assert full.stderr == (
        "dphmm: rows.csv:4: epsilon must stay within the limit of 2 per 3 hours, got a request "
        "for 1 with 2 spent and 0 remaining; ask for less or ask again for 2024-05-01T13:00:00Z "
        "or later; all steps take up to 3 a person, and the limit of 2 in any 3 hours is too "
        "little for 1 of 1 people\n"
    )
    assert full.stdout == ""
    fine = run("release", path, day_file(tmp_path, "10:00", "11:00", "13:00"))
    assert fine.exit_code == 0, fine.stderr
    book = tmp_path / "paper.ledger.jsonl"
    shown = json.loads(run("ledger", "show", book, path, "--json").stdout)["people"]
    assert [(row["spent"], row["limit"], row["left"]) for row in shown] == [
        ("3", "2 per 3 hours", "0")
    ]
    assert "spent 3, 0 left of 2 per 3 hours" in run("ledger", "show", book, path).stdout
    alone = json.loads(run("ledger", "show", book, "--json").stdout)["people"]
    assert (alone[0]["limit"], alone[0]["left"]) == (None, None)
    piped = run("release", path, "-", stdin=day_file(tmp_path, "14:00", "15:00").read_text())
    assert piped.exit_code == 1
    assert "ask again for 2024-05-01T16:00:00Z or later" in piped.stderr
    assert [line.split(",")[1] for line in piped.stdout.splitlines()[1:]] == [
        "2024-05-01T14:00:00Z"
    ]


def test_a_limit_in_a_file_is_located_where_it_is_wrong(tmp_path: Path) -> None:
    path = written(tmp_path, clock=Clock("7 min"))
    for limit, says in [
        ("24 per 1 day", "limit must have windows of whole steps of 420 s, got '24 per 1 day'"),
        ("24 per 1 moon", "limit must be like '24', '24 per 1 day' or '24 per 288 steps, 100 in"),
        ("0 per 7 min", "limit must be positive, got '0'"),
    ]:
        path.write_text(
            f'limit = "{limit}"\n' + written(tmp_path, clock=Clock("7 min")).read_text()
        )
        refused = run("check", path)
        assert refused.exit_code == 2
        assert f"paper.toml:1: {says}" in refused.stderr
    assert Scenario.load(written(tmp_path, limit=Limit.read("3 per 2 steps"))).terms.limit


def test_check_says_the_window(tmp_path: Path) -> None:
    path = written(tmp_path, clock=Clock("1 hour"), limit=Limit.read("24 per 1 day, 100 in all"))
    assert "at most 24 in any 1 day, 100 in all a person" in run("check", path).stdout
