"""The client: the same answers as by hand, retries that are safe, errors that say what happened."""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
import types
from dataclasses import FrozenInstanceError, fields, is_dataclass
from fractions import Fraction
from math import inf

import httpx
import polars
import pytest

import dphmm
from dphmm import (
    ArgumentError,
    AsyncClient,
    BudgetError,
    Client,
    DataError,
    DphmmError,
    MissingExtraError,
    ServiceError,
    StoreError,
)
from dphmm.books import find_problems
from dphmm.client import clients, results, talking
from dphmm.client.many import deal
from dphmm.client.talking import Reply, wait_for
from dphmm.errors import NotFoundError
from dphmm.service import bodies
from tests import paper
from tests.service_worlds import World

KEY = "dphmm_a-secret-that-nobody-sees"
SECRET_STATE = "s5-the-secret"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("client"))
    yield world
    assert find_problems(world.store) == []
    world.close()


@pytest.fixture(scope="module")
def red(world):
    return world.client()


@pytest.fixture
def quick(monkeypatch):
    """Pauses that are written down and not waited for."""
    pauses = []
    monkeypatch.setattr(clients.time, "sleep", pauses.append)
    return pauses


def answering(*replies, retries=5, kind=Client, seen=None):
    """A client of a service that says these things, one after the other."""
    waiting = list(replies)

    def handle(request):
        if seen is not None:
            seen.append(request)
        reply = waiting.pop(0)
        if isinstance(reply, Exception):
            raise reply
        status, content, *headers = reply
        text = content if isinstance(content, str) else json.dumps(content)
        return httpx.Response(status, text=text, headers=dict(headers))

    return kind("http://127.0.0.1", key=KEY, retries=retries, transport=httpx.MockTransport(handle))


# Paper


def test_a_person_from_beginning_to_end(world, red):
    town = red.add_scenario(paper_town())
    assert (town.name, town.states, town.epsilon) == ("town", 6, Fraction(1))
    assert town.id in red.scenarios()
    assert red.scenario(town) == red.scenario(town.id) == town
    begun = red.begin(town, "cleo", budget="3 per 10 steps, 5 in all")
    assert (begun.person, begun.time, begun.slot) == ("cleo", None, None)
    first = red.release(town, "cleo", 1, "s3")
    assert first.epsilon == Fraction(1)
    assert len(first.answer) == len(first.lattice) == len(first.estimate) == 2
    again = red.release(town, "cleo", 1, "s5")
    assert (again.answer, again.repeated, first.repeated) == (first.answer, True, False)
    half = red.release(town, "cleo", 2, paper.VALUES[4], epsilon="1/2")
    assert half.epsilon == Fraction(1, 2)
    assert [one.slot for one in red.releases(town, "cleo")] == [1, 2]
    assert [one.slot for one in red.releases(town, "cleo", after=1)] == [2]
    assert red.track(town, "cleo").slots == (1, 2)
    statement = red.privacy(town, "cleo")
    assert (statement.releases, statement.spent) == (2, Fraction(3, 2))
    assert statement.tells.delta > 0
    ledger = red.ledger("cleo")
    assert (ledger.spent, len(ledger.entries)) == (Fraction(3, 2), 2)
    assert ledger.budget == "3 per 10 steps, 5 in all"
    assert tuple(red.entries("cleo")) == ledger.entries
    assert "cleo" in list(red.people())
    assert list(red.people(after="zz")) == []
    assert red.erase("cleo").spent == Fraction(3, 2)
    with pytest.raises(NotFoundError, match="there is no such thing, or it is not yours"):
        red.ledger("cleo")
    assert red.is_ready()
    assert "dphmm_answers_total" in world.client(scope="operate").metrics()


def paper_town():
    states = dphmm.States.on_plane(paper.VALUES, labels=[f"s{n}" for n in range(1, 7)])
    return dphmm.Scenario(
        states,
        dphmm.MarkovModel(paper.TRANSITION),
        dphmm.PolicyGraph.by_category(paper.CATEGORIES),
        epsilon=1,
        start="s1",
        name="town",
    ).replace(query="town")


def test_a_scenario_may_be_a_file(red, tmp_path):
    town = paper_town()
    town.save(tmp_path / "town.toml")
    assert red.add_scenario(tmp_path / "town.toml").name == "town"
    (tmp_path / "model.npz").unlink(missing_ok=True)
    for model in tmp_path.glob("*.npz"):
        model.unlink()
    with pytest.raises(DataError, match="model must be readable"):
        red.add_scenario(str(tmp_path / "town.toml"))


def test_keys_are_managed(world, red):
    made = red.create_key(["read"], days=3)
    assert made.key not in repr(made)
    assert made.scopes == ("read",)
    listed = red.keys()
    assert made.id in [key.id for key in listed]
    rotated = red.rotate_key(made.id, hours=1)
    assert red.expire_key(rotated.id, hours=2).expires is not None
    assert not red.revoke_key(rotated.id).open
    done = [act.act for act in red.acts()]
    assert {"key create", "key revoke"} <= set(done)
    assert len(list(red.acts(after=1))) < len(done)
    with pytest.raises(ServiceError, match="scope") as caught:
        world.client(scope="read").create_key(["read"])
    assert caught.value.status == 403


def test_pages_are_read_one_after_the_other(world, red, monkeypatch):
    from dphmm.service import handlers

    for name in ("page1", "page2", "page3"):
        red.begin(world.scenario, name)
    monkeypatch.setattr(handlers, "PAGE", 2)
    names = list(red.people())
    assert names == sorted(names)
    assert {"anna", "page1", "page2", "page3"} <= set(names)


def test_a_page_is_asked_for_when_it_is_needed():
    def page(slots, following):
        said = [{**answer_facts(), "slot": slot} for slot in slots]
        return 200, {"releases": said, "next": following}

    seen = []
    first, second = page([1, 2], "2024-05-01T10:00:00+02:00"), page([3], None)
    listed = answering(first, second, seen=seen).releases("0" * 64, "ann", after="2024")
    assert [next(listed).slot, next(listed).slot, len(seen)] == [1, 2, 1]
    assert next(listed).slot == 3
    assert seen[1].url.params["after"] == "2024-05-01T10:00:00+02:00"
    assert list(listed) == []


def test_entries_beyond_a_page_are_read(quick):
    def page(slots, following):
        facts = {"person": "ann", "spent": "3", "budget": None, "remaining": None}
        listed = [
            {"slot": slot, "query": "state", "epsilon": "1", "constrained": "inf"} for slot in slots
        ]
        return 200, {**facts, "entries": listed, "next": following}

    seen = []
    red = answering(page([1, 2], 2), page([3], None), seen=seen)
    found = red.ledger("ann")
    assert [entry.slot for entry in found.entries] == [1, 2, 3]
    assert found.entries[0].constrained == inf
    assert seen[1].url.params["after"] == "2"
    stuck = answering(*[page([1], 5)] * 3)
    with pytest.raises(ServiceError, match="the same one again"):
        list(stuck.entries("ann"))


def test_the_service_pages_a_ledger(world, monkeypatch):
    """The route itself; a worker has its own PAGE, so the handler is asked directly."""
    from dphmm.service import handlers

    world.release(1, 4)
    world.release(2, 4)
    monkeypatch.setattr(handlers, "PAGE", 1)
    own = handlers.Handlers(world.store, dphmm_settings(), long=True)
    first = own.ledger("red", "anna", 0)
    assert ([entry["slot"] for entry in first["entries"]], first["next"]) == ([1], 1)
    last = own.ledger("red", "anna", first["next"])
    assert ([entry["slot"] for entry in last["entries"]], last["next"]) == ([2], None)
    assert world.ask("GET", "/v1/people/anna/ledger?after=1").json()["entries"] == last["entries"]
    assert world.ask("GET", "/v1/people/anna/ledger?after=-1").status_code == 422


def dphmm_settings():
    from dphmm.service import ServiceSettings

    return ServiceSettings()


# Many


def rows_of(people, times, state=4):
    return [{"person": one, "time": time, "state": state} for time in times for one in people]


@pytest.fixture(scope="module")
def crowd(world, red):
    people = [f"p{number}" for number in range(6)]
    for person in people:
        red.begin(world.scenario, person)
    red.begin(world.scenario, "poor", budget=1)
    return people


def test_every_row_has_its_verdict(world, red, crowd):
    rows = [
        *rows_of(crowd, [2, 1]),
        {"person": "nobody", "time": 1, "state": 4},
        {"person": "poor", "time": 1, "state": 4},
        {"person": "poor", "time": 2, "state": 4},
        {"person": "p0", "time": 3, "state": "no such state"},
    ]
    found = red.release_many(world.scenario, rows, chunk=4)
    assert [one.person for one in found] == [row["person"] for row in rows]
    assert [one.status for one in found] == [200] * 12 + [404, 200, 409, 422]
    assert found[0].result().slot == 2
    assert isinstance(found[12].error, NotFoundError)
    assert isinstance(found[14].error, BudgetError)
    assert (found[14].error.requested, found[14].error.remaining) == (2, 1)
    assert isinstance(found[15].error, ArgumentError)
    with pytest.raises(BudgetError, match="ask for less or raise the limit"):
        found[14].result()
    again = red.release_many(world.scenario, rows[:12], chunk=100)
    assert [one.answer.lattice for one in again] == [one.answer.lattice for one in found[:12]]
    assert all(one.answer.repeated for one in again)


def test_a_table_is_rows(world, red, crowd):
    rows = rows_of(crowd, [5])
    table = polars.DataFrame(rows)
    found = red.release_many(world.scenario, table)
    assert {one.status for one in found} == {200}
    once_more = red.release_many(world.scenario, rows)
    assert [one.answer.answer for one in once_more] == [one.answer.answer for one in found]


def test_a_table_goes_as_arrow_and_as_json_where_arrow_is_missing():
    pytest.importorskip("pyarrow")
    import pandas

    seen = []
    missing = (415, {"problem": "Arrow must be installed at the service; send JSON"})
    answer = (200, {"rows": [{"person": "a", "status": 404, "problem": "no"}]})
    table = polars.DataFrame(
        {"person": ["a", "b"], "time": [1, 1], "state": [3, 4], "more": [1, 2]}
    )
    other = (200, {"rows": [{"person": "b", "status": 404, "problem": "no"}]})
    red = answering(missing, answer, other, seen=seen)
    found = red.release_many("0" * 64, table, chunk=1)
    assert [one.status for one in found] == [404, 404]
    kinds = [request.headers["content-type"] for request in seen]
    assert kinds == ["application/vnd.apache.arrow.stream", "application/json", "application/json"]
    rows = [json.loads(request.content)["rows"] for request in seen[1:]]
    assert rows == [
        [{"person": "a", "time": 1, "state": 3}],
        [{"person": "b", "time": 1, "state": 4}],
    ]
    for wrong, says in (
        (polars.DataFrame({"person": ["a"], "time": [1]}), "rows must have the columns"),
        (polars.DataFrame({"person": [" a"], "time": [1], "state": [1]}), "row 0: person must be"),
        (polars.DataFrame({"person": [], "time": [], "state": []}), "rows must be one or more"),
        (pandas.DataFrame({"person": ["a"], "time": [1], "state": [object()]}), "of one kind"),
    ):
        with pytest.raises(ArgumentError, match=says):
            red.release_many("0" * 64, wrong)


def test_tables_of_other_libraries(world, red, crowd):
    pyarrow = pytest.importorskip("pyarrow")
    import pandas

    plain = {"person": crowd, "time": [6] * len(crowd), "state": ["s5"] * len(crowd)}
    tables = (pandas.DataFrame(plain), pyarrow.table(plain), polars.LazyFrame(plain))
    found = [red.release_many(world.scenario, table, chunk=3) for table in tables]
    answers = [[one.result().lattice for one in verdicts] for verdicts in found]
    assert answers[0] == answers[1] == answers[2]


def test_nobodys_rows_are_torn_apart():
    people = ["a", "b", "a", "c", "a", "d", "b"]
    dealt = deal(people, 3)
    assert sorted(number for one in dealt for number in one) == list(range(7))
    whose = [{people[number] for number in numbers} for numbers in dealt]
    assert sum(map(len, whose)) == 4, "each person is in one request"
    assert deal(["a"] * 5, 2) == [[0, 1, 2, 3, 4]]
    with pytest.raises(ArgumentError, match="rows of one person must be at most 65536"):
        deal(["a"] * 65537, 2)


def test_a_service_that_goes_away_leaves_verdicts(quick):
    answer = {"rows": [{"person": "a", "status": 404, "problem": "no"}]}
    away = (503, {"problem": "the service is shutting down; ask again"})
    red = answering((200, answer), away, away, retries=1)
    rows = [{"person": one, "time": 1, "state": 1} for one in "abc"]
    found = red.release_many("0" * 64, rows, chunk=1)
    assert [one.status for one in found] == [404, 503, 503]
    assert found[2].error.status == 503
    wrong = answering((401, {"problem": "the key must be one that the operator gave you"}))
    with pytest.raises(ServiceError, match="operator gave you"):
        wrong.release_many("0" * 64, rows)
    odd = answering((200, {"rows": []}))
    with pytest.raises(ServiceError, match="a verdict for each row"):
        odd.release_many("0" * 64, rows)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([], "rows must be one or more"),
        (5, "rows must be a sequence, got int"),
        ("text", "rows must be a table, or mappings"),
        ([{"person": "a", "time": 1}], "row 0: each must have person, time, state"),
        ([{"person": "a", "time": 1, "state": 1, "x": 2}], "row 0: each must have"),
        ([{"person": "a", "time": 1.5, "state": 1}], "row 0: time must be a whole number"),
        ([{"person": " a", "time": 1, "state": 1}], "row 0: person must be"),
        ([{"person": "a", "time": 1, "state": None}], "row 0: state must be"),
        ([{"person": "a", "time": 1, "state": [41, "x"]}], "row 0: state must be"),
        ([{"person": "a", "time": 1, "state": 1, "epsilon": -1}], "row 0: epsilon must be"),
    ],
)
def test_rows_are_checked_before_any_is_sent(rows, says):
    with pytest.raises(ArgumentError, match=says) as caught:
        answering().release_many("0" * 64, rows)
    assert "41" not in str(caught.value)


# Again


BUSY = (503, {"problem": "busy"}, ("retry-after", "2"))
FAST = (429, {"problem": "slower"}, ("retry-after", "1"))


def test_what_may_be_asked_again_is(quick):
    seen = []
    good = (200, answer_facts())
    lost = httpx.ReadTimeout("late")
    red = answering(BUSY, FAST, lost, httpx.ConnectError("no"), good, seen=seen)
    assert red.release("0" * 64, "ann", 1, 2).slot == 1
    assert len({request.read() for request in seen}) == 1
    assert len(seen) == 5
    assert quick[0] >= 2
    assert quick[1] >= 1
    assert len(quick) == 4


def answer_facts():
    said = {"time": 1, "slot": 1, "silent": False, "answer": [1.5, 2], "lattice": [1, 2]}
    more = {"estimate": [1, 2], "epsilon": "1", "statement": "s", "repeated": False, "newer": 1}
    return said | more


def test_what_was_wrong_is_not_asked_again(quick):
    for status in (400, 401, 403, 404, 405, 413, 422, 500):
        seen = []
        red = answering((status, {"problem": "no"}), seen=seen)
        with pytest.raises(DphmmError, match="no"):
            red.release("0" * 64, "ann", 1, 2)
        assert len(seen) == 1
    assert quick == []


def test_attempts_end(quick):
    red = answering(*[BUSY] * 3, retries=2)
    with pytest.raises(ServiceError, match="busy") as caught:
        red.ledger("ann")
    assert caught.value.status == 503
    assert len(quick) == 2
    gone = answering(*[httpx.ConnectError("host.example")] * 2, retries=1)
    with pytest.raises(ServiceError, match=r"could not be asked \(ConnectError\)") as caught:
        gone.ledger("ann")
    assert caught.value.status is None
    assert "host.example" not in str(caught.value)


def test_what_may_not_be_done_twice_is_asked_again_only_if_it_was_not_done(quick):
    made = {"id": "ab", "client": "red", "scopes": ["read"], "created": "", "expires": None}
    made |= {"open": True, "key": KEY}
    red = answering(FAST, httpx.ConnectError("no"), (201, made))
    assert red.create_key(["read"]).key == KEY
    for fault in (httpx.ReadTimeout("late"), BUSY):
        with pytest.raises(ServiceError):
            answering(fault).create_key(["read"])
        with pytest.raises(ServiceError):
            answering(fault).erase("ann")


def test_pauses_grow_and_are_bounded():
    waits = [wait_for(attempt, None) for attempt in range(12)]
    assert all(0.05 * 2**n <= wait <= 0.1 * 2**n for n, wait in enumerate(waits[:5]))
    assert max(waits) <= talking.LONGEST
    assert wait_for(0, "3") == 3
    assert wait_for(0, "99999") == talking.MOST_ASKED_FOR
    assert wait_for(0, "Wed, 21 Oct 2015 07:28:00 GMT") <= 0.1


# What was wrong


def test_a_budget_is_a_budget_error(world, red):
    red.begin(world.scenario, "spender", budget="1 per 5 steps")
    red.release(world.scenario, "spender", 1, 4)
    with pytest.raises(BudgetError) as caught:
        red.release(world.scenario, "spender", 2, 4)
    assert (caught.value.spent, caught.value.requested, caught.value.remaining) == (1, 1, 0)
    assert (caught.value.opens, caught.value.window) == (6, "1 per 5 steps")
    direct = world.ask(
        "POST", world.person.replace("anna", "spender") + "/releases", {"time": 2, "state": 4}
    )
    assert str(caught.value) == direct.json()["problem"]


@pytest.mark.parametrize(
    ("reply", "kind", "says"),
    [
        ((404, {"problem": "no"}), StoreError, "^no$"),
        ((422, {"problem": "no"}), ArgumentError, "^no$"),
        ((409, {"problem": "odd"}), ServiceError, "^odd$"),
        ((409, {"problem": "odd", "remaining": "1/0", "spent": "x"}), ServiceError, "^odd$"),
        ((500, "<html>"), ServiceError, "must say what is wrong, got status 500"),
        ((301, ""), ServiceError, "got status 301"),
        ((418, [1]), ServiceError, "got status 418"),
        ((200, "<html>"), ServiceError, "must answer in JSON"),
        ((200, "[" * 100_000), ServiceError, "must answer in JSON"),
        ((200, {}), ServiceError, "as this version describes"),
        ((200, [1]), ServiceError, "as this version describes"),
        ((200, {**answer_facts(), "slot": "1"}), ServiceError, "as this version describes"),
        ((200, {**answer_facts(), "epsilon": "1/0"}), ServiceError, "as this version describes"),
    ],
)
def test_an_answer_that_is_none_is_an_error(reply, kind, says):
    with pytest.raises(kind, match=says):
        answering(reply).release("0" * 64, "ann", 1, 2)


def test_lists_that_are_none_are_errors():
    for content in ([], {}, {"people": 5, "next": None}):
        with pytest.raises(ServiceError, match="as this version describes"):
            list(answering((200, content)).people())


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda red: red.release("x", "ann", 1, 2), "scenario must be the id"),
        (lambda red: red.release("0" * 64, "", 1, 2), "person must be 1 to 200"),
        (lambda red: red.release("0" * 64, "ann", None, 2), "time must be a whole number"),
        (lambda red: red.release("0" * 64, "ann", "", 2), "time must be a whole number or a date"),
        (lambda red: red.release("0" * 64, "ann", 1, -41), "state must be a number or label"),
        (lambda red: red.release("0" * 64, "ann", 1, [41]), "state must be a number or label"),
        (lambda red: red.release("0" * 64, "ann", 1, 2, epsilon=0), "epsilon must be positive"),
        (lambda red: red.begin("0" * 64, "ann", budget="lots"), "budget must"),
        (lambda red: list(red.people(after=5)), "after must be a name"),
        (lambda red: list(red.acts(after=-1)), "after must be at least 0"),
        (lambda red: red.create_key("read"), "scopes must be some of"),
        (lambda red: red.create_key(["read"], days=0), "days must be at least 1"),
        (lambda red: red.rotate_key("../x"), "key_id must be the id"),
        (lambda red: red.keys(client=""), "client must be"),
        (lambda red: red.add_scenario(5), "scenario must be a Scenario or its file"),
        (lambda red: red.release_many("0" * 64, [], chunk=0), "chunk must be at least 1"),
    ],
)
def test_wrong_arguments_are_refused_without_a_request(call, says):
    with pytest.raises(ArgumentError, match=says) as caught:
        call(answering())
    assert "41" not in str(caught.value)


# The key


def test_the_key_comes_from_an_argument_a_file_or_the_environment(monkeypatch, tmp_path):
    for name in ("DPHMM_URL", "DPHMM_KEY", "DPHMM_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "key.txt"
    file.write_text(KEY + "\n")
    file.chmod(0o600)

    def sent(client):
        return client._http.headers.get("authorization")

    assert sent(Client()) is None
    assert Client().url == "http://127.0.0.1:8000"
    assert sent(Client(key=KEY)) == sent(Client(key_file=file)) == f"Bearer {KEY}"
    monkeypatch.setenv("DPHMM_KEY_FILE", str(file))
    monkeypatch.setenv("DPHMM_URL", "https://releases.example/")
    assert sent(Client()) == f"Bearer {KEY}"
    assert repr(Client()) == "Client('https://releases.example')"
    monkeypatch.setenv("DPHMM_KEY", "other")
    assert sent(Client()) == "Bearer other"
    with pytest.raises(ArgumentError, match="key must be given by itself or in key_file"):
        Client(key=KEY, key_file=file)
    file.chmod(0o644)
    with pytest.raises(DataError, match="key must be closed to others"):
        Client(key_file=file)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"url": "ftp://x"}, "url must be the address"),
        ({"url": "nonsense"}, "url must be the address"),
        ({"url": "http://[x"}, "url must be the address"),
        ({"url": "https://ann:hunter2@host"}, "url must hold no name or password"),
        ({"url": "http://releases.example"}, "url must be https"),
        ({"key": "two words"}, "key must be one"),
        ({"key": "zq41\n\r"}, None),
        ({"key": "zq\x0041"}, "key must be one"),
        ({"key": ""}, "key must be one"),
        ({"key": 5}, "key must be one"),
        ({"key_file": 5}, "key_file must name a file, got int"),
        ({"transport": 5}, "transport must be a BaseTransport, got int"),
        ({"timeout": 0}, "timeout must be positive"),
        ({"timeout": "long"}, "timeout must be a number"),
        ({"retries": -1}, "retries must be at least 0"),
        ({"ca_file": "missing.pem"}, "ca_file must be a readable file"),
    ],
)
def test_a_client_that_cannot_be_is_refused(given, says):
    if says is None:
        assert Client(**given)._http.headers["authorization"] == "Bearer zq41"
        return
    with pytest.raises(ArgumentError, match=says) as caught:
        Client(**given)
    assert "hunter2" not in str(caught.value)


def test_plain_is_said():
    assert Client("http://releases.example", plain=True).url == "http://releases.example"


def test_tls_is_checked():
    import ssl

    context = clients._context(None)
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname


def test_no_message_or_repr_has_a_secret(quick):
    red = answering(httpx.ReadTimeout(KEY), retries=0)
    with pytest.raises(ServiceError) as caught:
        red.release("0" * 64, "ann", 1, SECRET_STATE)
    call = next(dphmm.client.operations.release("0" * 64, "ann", 1, SECRET_STATE))
    shown = str(caught.value) + repr(caught.value) + repr(red) + repr(call) + str(vars(call).keys())
    shown += repr(Reply(200, content=SECRET_STATE.encode()))
    assert KEY not in shown
    assert SECRET_STATE not in shown
    assert "ann" not in shown.replace("answer", "")


def test_a_redirect_is_not_followed():
    seen = []
    red = answering((307, "", ("location", "https://elsewhere.example/")), seen=seen)
    with pytest.raises(ServiceError):
        red.ledger("ann")
    assert len(seen) == 1


# Two clients, one set of rules


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def test_both_clients_do_the_same_and_are_documented():
    assert public(Client) - {"url"} == public(AsyncClient) - {"url"}
    for name in public(Client):
        own, other = getattr(Client, name), getattr(AsyncClient, name)
        assert own.__doc__
        assert next(iter(inspect.signature(own).parameters)) == "self"
        assert inspect.signature(own).parameters == inspect.signature(other).parameters
    bound = inspect.signature(Client().release).parameters
    assert list(bound) == ["scenario", "person", "time", "state", "epsilon"]


def test_the_awaited_client(world):
    async def run():
        transport = httpx.ASGITransport(world.app)
        world.client()
        key = world.keys["red", None]
        async with AsyncClient("http://127.0.0.1", key=key, transport=transport) as red:
            await red.begin(world.scenario, "dora")
            first = await red.release(world.scenario, "dora", 1, 4)
            listed = [one async for one in red.releases(world.scenario, "dora")]
            rows = rows_of(["dora"], [1, 2])
            verdicts = await red.release_many(world.scenario, rows)
            names = [name async for name in red.people()]
            return first, listed, verdicts, names

    first, listed, verdicts, names = asyncio.run(run())
    assert listed[0].answer == first.answer == verdicts[0].result().answer
    assert "dora" in names


def test_the_awaited_client_pauses(monkeypatch):
    import anyio

    pauses = []

    async def sleep(seconds):
        pauses.append(seconds)

    monkeypatch.setattr(anyio, "sleep", sleep)
    red = answering(BUSY, httpx.ConnectError("no"), (200, answer_facts()), kind=AsyncClient)
    assert asyncio.run(red.release("0" * 64, "ann", 1, 2)).slot == 1
    assert len(pauses) == 2


SAME = {
    results.ScenarioFacts: bodies.ScenarioSummary,
    results.Person: bodies.StreamSummary,
    results.Answer: bodies.Released,
    results.Track: bodies.Track,
    results.PathCosts: bodies.PathCosts,
    results.Near: bodies.Near,
    results.Tells: bodies.Tells,
    results.Statement: bodies.Statement,
    results.LedgerEntry: bodies.LedgerEntry,
    results.Erased: bodies.Erased,
    results.KeyFacts: bodies.KeyFacts,
    results.MadeKey: bodies.MadeKey,
    results.Act: bodies.ActFacts,
}


@pytest.mark.parametrize("kind", SAME, ids=lambda kind: kind.__name__)
def test_results_have_every_field_of_the_services_page(kind):
    assert {one.name for one in fields(kind)} == set(SAME[kind].model_fields)


def test_results_are_frozen():
    kinds = [kind for kind in vars(dphmm.client).values() if is_dataclass(kind)]
    assert len(kinds) == len(SAME) + 2
    with pytest.raises(FrozenInstanceError):
        results.Erased(Fraction(1), {}).spent = 2


# What is missing


def test_the_extra_is_named_when_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", types.ModuleType("httpx"))
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dphmm\[client\]'"):
        Client()


def test_importing_dphmm_loads_no_client():
    script = "import sys, dphmm; print({'httpx', 'dphmm.client'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "set()"
