"""Wrong arguments: every public function refuses them in the house's words, by their name.

The functions are found, not listed. A new one, or a new parameter, is tested without being
named here if its parameters have defaults or are called like others; else the first test fails
until their right values are added.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import opendp.prelude as dp
import pytest
from matplotlib.figure import Figure

import dphmm
from dphmm import (
    Batch,
    Belief,
    Blowfish,
    Calendar,
    Charge,
    Clock,
    Entry,
    Estimates,
    FixedLag,
    History,
    Journal,
    Ledger,
    LocalRelease,
    MarkovModel,
    Mechanism,
    MemoryBook,
    MemoryModel,
    MomentumModel,
    Plan,
    Policy,
    PolicyGraph,
    Query,
    Randomness,
    Scenario,
    Schedule,
    SecondOrderModel,
    Secret,
    SensitivityHull,
    States,
    Store,
    Stream,
    TimeVaryingModel,
    attack,
    constrained_epsilon,
    counting_query,
    exposed,
    private_score,
    sensitivity_hull,
)
from dphmm.cost.bracket import path_epsilon
from dphmm.cost.local_noise import local_hull
from dphmm.errors import ArgumentError, DphmmError, expect
from dphmm.geometry.exact import as_epsilon, exact, whole
from dphmm.geometry.states import state_number
from dphmm.noise.mechanism import body_for
from dphmm.release.admission import Place
from dphmm.release.answers import Answers
from dphmm.release.book import KeyInUse
from dphmm.release.moment import Line
from tests import paper

QUERY = Query(paper.VALUES)
POLICY = PolicyGraph.by_category(paper.CATEGORIES)
MODEL = MarkovModel(paper.TRANSITION)
HULL = sensitivity_hull(QUERY, POLICY)
CHARGE = Charge(QUERY, HULL, 1)
HISTORY = History(MODEL, [[CHARGE]] * 3, start=0)
PLAN = Plan(POLICY, QUERY)
NOISE = Mechanism(QUERY, HULL, 1)
WALKS = MomentumModel.fit([[0, 1, 0]], places=[0, 1], patience=2)
PAIRS = SecondOrderModel.fit([[0, 1, 0, 0, 1, 0, 0]], n_states=2, zeros="facts")
SEEN = np.zeros((2, 6))
FOUND = attack(SEEN, model=MODEL, start=3)
TRUTH = [4, 5]
SECRETS = [Secret("Ann", "flu"), Secret("Ann", "cancer")]
COUNTS = counting_query(SECRETS, [lambda secret: secret.value == "cancer"])
TOWN = Scenario(QUERY, MODEL, POLICY, epsilon=1)
LINE = Line("", "ann", "state")
STANDING = TOWN.terms.begin("", "ann", 1)
FOUND_SCHEDULE = dphmm.find_schedule(TOWN, "4 per 4 steps", people=2)
AXES = Figure().subplots()
THEIRS = SimpleNamespace(
    transmat_=np.eye(2), transitions=SimpleNamespace(transition_matrix=np.eye(2))
)
"""What hmmlearn's models and dynamax' parameters have."""
ANSWERS = Answers(QUERY, TOWN.terms.law, [LINE], np.array([1]))


def coin(state: int, size: int) -> np.ndarray:
    lies = np.random.default_rng().random((size, 1)) < 0.25
    return np.where(lies, 1 - state, state)


# What the parameters are, by name


def named(value: Any, names: str) -> dict[str, Any]:
    return dict.fromkeys(names.split(), value)


RIGHT: dict[str, Any] = {
    **named(0, "a after state secret time"),
    **named(1, "b claimed epsilon number radius step true_state width"),
    **named(2, "lag n_models n_places patience rank size steps"),
    **named(3, "length slot start"),
    **named([0], "owners states"),
    **named([1], "known times"),
    **named([1, 2], "answers lattice possible true_states vector"),
    **named([0, 1, 2], "values"),
    **named([0.5, 0.5], "density posterior prior"),
    **named(np.array([[1, 2]]), "points vectors vertices"),
    **named([[0, 1, 0]], "sequences"),
    **named(np.eye(2), "counts support"),
    **named(SEEN, "observations"),
    "anywhere": 0.1,
    "belief": Belief.uniform(3),
    "body": HULL,
    "book": MemoryBook(),
    "centers": paper.VALUES,
    "charges": [[CHARGE]],
    "client": "",
    "columns": ("x", "y"),
    "conditions": [lambda secret: True],
    "draws": 1000,
    "edges": [(0, 1)],
    "entry": Entry(1, "state", Fraction(1)),
    "found": FOUND,
    "gamma": Fraction(1, 2),
    "graph": POLICY.to_networkx(),
    "history": HISTORY,
    "hull": HULL,
    "hulls": [HULL],
    "key": KeyInUse(None, 1),
    "labels": "abcdef",
    "line": LINE,
    "lines": [LINE],
    "mechanism": "knorm",
    "model": MODEL,
    "models": [MODEL, MODEL],
    "n_states": 6,
    "pairs": PAIRS.pairs,
    "chain": MODEL,
    "estimate": "median",
    "law": "",
    "log_likelihood": np.zeros(6),
    "trust": 3.0,
    "weight": 3.0,
    "partners": {0: 1},
    "people": ["ann", "bob"],
    "person": "ann",
    "place": "0",
    "places": [[1.0, 2.0]],
    "plan": PLAN,
    "probabilities": [[0.5, 0.5]],
    "policy": POLICY,
    "query": QUERY,
    "rng": np.random.default_rng(0),
    "scenario": TOWN,
    "schedule": Schedule(),
    "secrets": SECRETS,
    "sequence": [0, 1, 0],
    "settings": TOWN.settings,
    "smoothing": 0.5,
    "standing": STANDING,
    "standings": [STANDING],
    "suspects": [(MODEL, 3), (MODEL, 1)],
    "truth": TRUTH,
    "when": Schedule(every=2),
}

# What they are where a function means something else by the name

LEARNED = {"n_states": 2}
REPAIRED = {"possible": [0, 1, 2], "body": SensitivityHull.l1_ball}
COMMITTED = {"answers": [ANSWERS], "standings": [STANDING], "places": [Place()]}
OTHERWISE: dict[str, dict[str, Any]] = {
    "Batch.belief": {"person": 1},
    "Batch.ledger": {"person": 1},
    "Batch": {"law": TOWN.terms.law},
    "Batch.resume": {"epsilon": 1, "law": TOWN.terms.law},
    "Batch.standings": {"people": [0]},
    **{
        f"Client.{verb}": {"scenario": "0" * 64}
        for verb in ("begin", "privacy", "release", "releases", "scenario", "track")
    },
    "Client": {"key": "zq", "url": "http://127.0.0.1"},
    "AsyncClient": {"key": "zq", "url": "http://127.0.0.1"},
    "Client.acts": {"after": 1},
    "Client.create_key": {"scopes": ["read"], "client": "red"},
    **{
        f"Client.{verb}": {"key_id": "ab12", "client": "red"}
        for verb in ("expire_key", "revoke_key", "rotate_key")
    },
    "Client.keys": {"client": "red"},
    "Client.people": {"after": "ann"},
    "Client.release_many": {
        "scenario": "0" * 64,
        "rows": [{"person": "ann", "time": 1, "state": 0}],
    },
    "Belief.condition": {"log_likelihood": np.zeros(6)},
    "Belief.from_log_probabilities": {"log_probabilities": [0.0, 0.0]},
    "Belief.from_probabilities": {"probabilities": [0.5, 0.5]},
    "Belief.mean": {"values": np.zeros(6)},
    "Belief.plot": {"values": np.zeros(6), "axes": AXES},
    "MarkovModel.from_dynamax": {"parameters": THEIRS},
    "MarkovModel.from_hmmlearn": {"model": THEIRS},
    "MarkovModel.from_networkx": {"graph": MODEL.to_networkx()},
    "Belief.median": {"values": np.zeros(6)},
    "Blowfish": {"query": COUNTS, "possible": [0, 1]},
    "History": {"possible": [[1, 2]]},
    "History.of": {"possible": [[1, 2]]},
    **{
        f"{book}.rotate": {"make": lambda *_: KeyInUse(None, 1)} for book in ("MemoryBook", "Store")
    },
    "Store.erase": {"unless": lambda *_: False},
    "Journal.commit": COMMITTED,
    "MemoryBook.commit": COMMITTED,
    "Store.commit": COMMITTED,
    "Journal": {"path": "ledger", "time_of": str},
    "KeyedRandomness": {"key": bytes(32)},
    "Ledger.has": {"query": "state"},
    "LocalRelease": {"hulls": {1: HULL}},
    "LocalRelease.sample_lattice": {"state": 1},
    "MarkovModel": {"transition": np.eye(2)},
    "MarkovModel.fit": LEARNED,
    "MarkovModel.fit_em": {"sequences": [SEEN]},
    "Plan": {"mechanism": "staircase"},
    **{
        f"{kind}.{verb}": {"belief": Belief.uniform(6)}
        for kind in ("MarkovModel", "TimeVaryingModel")
        for verb in ("place_belief", "predict")
    },
    **{
        f"{kind}.estimate": {"belief": Belief.uniform(6), "values": np.zeros((6, 2))}
        for kind in ("MarkovModel", "TimeVaryingModel")
    },
    "Plan.replace": {"repair": "nearest", "query": QUERY, "policy": POLICY, "delta": 0},
    "Plan.to_protect": {"prior": Belief.uniform(6)},
    "Policy": {"complete": True, "category": "x", "distance": 1, "one_step": True, "edges": "e"},
    "Query.nearest_states": {"states": [0], "possible": [1]},
    "Scenario": {"states": QUERY, "query": "state", "start": "0", "mechanism": "staircase"},
    "Scenario.from_settings": {"states": TOWN.states, "edges": [("0", "1")]},
    "Scenario.load": {"path": "town.toml"},
    "Limit.read": {"limit": "2 per 3 steps"},
    "PrivacyLoss.delta": {"epsilon": 0.5},
    "PrivacyLoss.epsilon": {"delta": 0.1},
    "SensitivityHull.lattice_layers": {"vectors": [[1, 2]], "gamma": Fraction(1, 2)},
    "Standing.remember": {"pairs": [(1, Fraction(1))], "width": 2},
    "best_gamma": {"rank": 2, "epsilon": 1},
    "privacy_loss": {"mechanism": NOISE},
    "realised_leakage": {"prior": [Belief.uniform(6)], "posterior": [Belief.uniform(6)]},
    "temporal_leakage": {
        "history": History.of(QUERY, MODEL, [HULL], 1, start=Belief.uniform(6)),
        **{"start": Belief.uniform(6), "moment": None, "depth": 1},
    },
    "whereabouts": {
        **{"beliefs": [[0.5, 0.5]], "prior": [[0.5, 0.5]], "places": [[0.0], [1.0]]},
        **{"hours": [1.0], "heard": [None], "unit": "m", "zone": ""},
    },
    "Whereabouts.text": {"person": "ann"},
    "Scenario.release": {"columns": {"person": "who"}, "trips": "trips.csv"},
    "Scenario.evaluate": {"columns": {"person": "who"}, "trips": "walk.csv"},
    **{f"BudgetDesign.{verb}": {"way": FOUND_SCHEDULE.best} for verb in ("error", "measured")},
    "find_budget": {"error": 20, "per": "4 steps", "people": 2},
    "find_epsilon": {"error": 20},
    "find_radius": {"error": 20},
    "find_schedule": {"budget": "4 per 4 steps", "people": 2},
    "learn_private": {
        **{"people": [([1, 2, 3], [0, 1, 0])], "levels": [[0, 0], [1, 0]], "prior": 0.5},
        **{"randomness": None},
    },
    "Scenario.replace": vars(TOWN.settings),
    "Scenario.save": {"path": "saved.toml"},
    "SecondOrderModel": {"transition": PAIRS.transition, "density": None, "anywhere": 0},
    "SecondOrderModel.fit": LEARNED,
    "MemoryModel": {
        **{"transition": PAIRS.transition, "current": PAIRS.current, "fresh": PAIRS.memory.fresh},
        **{"anywhere": 0.1, "density": [0.5, 0.5]},
    },
    "MomentumModel": {"transition": WALKS.transition, "n_places": 2},
    "MomentumModel.fit": {"places": [0, 1]},
    "TimeVaryingModel.drawn_to": {"counts": [np.eye(6), np.eye(6)], "schedule": [0, 1]},
    "Calendar": {"by": "hour", "seconds": 300, "zone": "Europe/Berlin"},
    "Calendar.parts": {"times": [1, 2]},
    "FixedLag": {"start": 3},
    "Estimates": {"start": 3},
    "Estimates.tell": {"time": 9},
    "Schedule": {
        **{"every": 2, "phase": 1, "hours": ["08:00"], "error": 5, "apart": 2, "gaps": "skip"},
        **{"epsilon": 1, "step": "5 min", "zone": "UTC"},
    },
    "Schedule.most_in": {"steps": 10},
    "Schedule.speaks": {"spoke": 1, "error": lambda: 1.0},
    "Secret": {"value": "flu"},
    "Standing.from_bytes": {"data": STANDING.to_bytes()},
    "States": {"labels": ("a", "b"), "numbers": {"x": np.zeros(2)}, "texts": {"kind": ("u", "v")}},
    "States.in_degrees": {"values": [[1.0, 2.0]]},
    "States.read": {"path": "states.csv"},
    "States.read_edges": {"path": "edges.csv"},
    "States.write": {"path": "written.csv"},
    "Store.open": {"url": "store.db", "secret": None},
    "Stream.release_also": {"query": Query(range(6), name="number")},
    "Stream": {"law": TOWN.terms.law},
    "Stream.resume": {"epsilon": 1, "start": 3, "law": TOWN.terms.law},
    "TimeVaryingModel": {"schedule": [0, 1]},
    "TimeVaryingModel.fit": {**LEARNED, "schedule": [0, 1]},
    "audit_sampler": {"sampler": coin, "points": [[0], [1]], "lattice": False},
    "compose": {"charges": [CHARGE]},
    "added_edges": REPAIRED,
    "protect": REPAIRED,
    "local_hull": {"state": 1},
    "largest_gains": {"mechanism": NOISE, "prior": 0},
    "path_epsilon": {"path": [1, 2, 2], "other": [2, 2, 2]},
}

# The functions


def a_stream() -> Stream:
    stream = TOWN.stream("ann")
    stream.release(1)
    return stream


def a_store() -> Store:
    store = Store.open(f"{next(NUMBERED)}.db")
    store.begin("ann")
    return store


def a_client() -> dphmm.Client:
    """A client of a service that says everything at once."""
    said: dict[str, Any] = {
        **named("", "id name speaks person scenario statement text unit zone who client act chain"),
        **named("", "time delta created key"),
        **named("1", "epsilon linked linked_delta realised spent before constrained delta"),
        **named(1, "states dimension slot releases width number"),
        **named(False, "silent repeated adaptive open"),
        **named([1, 2], "answer lattice estimate slots"),
        **named([], "times track near scopes scenarios people releases entries keys acts"),
        **named(None, "limit budget remaining since besides own tells moment home next expires"),
        **named(None, "condition event window sequence worst_pair near_before"),
        "windows": {},
        "rows": [{"person": "ann", "status": 404, "problem": "no"}],
    }

    def handle(request: httpx.Request) -> httpx.Response:
        changed = {"slots": {}} if request.method == "DELETE" else {}
        changed |= {"releases": 1} if request.url.path.endswith("/privacy") else {}
        return httpx.Response(200, json=said | changed)

    return dphmm.Client(transport=httpx.MockTransport(handle))


NUMBERED = itertools.count()
MAKE: dict[type, Callable[[], Any]] = {
    Batch: lambda: Batch(MODEL, PLAN, epsilon=1, people=["ann", "bob"], start=3),
    Belief: lambda: Belief.uniform(6),
    Blowfish: lambda: Blowfish(SECRETS, COUNTS, edges=[(0, 1)]),
    dphmm.BudgetDesign: lambda: FOUND_SCHEDULE,
    dphmm.Check: lambda: TOWN.check(2),
    Charge: lambda: CHARGE,
    dphmm.Client: a_client,
    Clock: Clock,
    History: lambda: HISTORY,
    Journal: lambda: Journal(f"{next(NUMBERED)}.ledger"),
    Ledger: Ledger,
    dphmm.Limit: lambda: dphmm.Limit.read("2 per 3 steps"),
    Calendar: lambda: Calendar("hour", 300),
    Estimates: lambda: Estimates(MODEL, PLAN, start=3, lag=2),
    FixedLag: lambda: FixedLag(MODEL, start=3, lag=2),
    MemoryModel: lambda: PAIRS,
    MomentumModel: lambda: WALKS,
    LocalRelease: lambda: LocalRelease.local(QUERY, POLICY, 1, [1, 2]),
    MarkovModel: lambda: MODEL,
    Mechanism: lambda: NOISE,
    MemoryBook: MemoryBook,
    Plan: lambda: PLAN,
    PolicyGraph: lambda: POLICY,
    dphmm.PrivacyLoss: lambda: dphmm.privacy_loss(NOISE, POLICY),
    dphmm.PrivacyStatement: lambda: a_stream().statement(),
    Query: lambda: QUERY,
    dphmm.Release: lambda: a_stream().release(1),
    Scenario: lambda: TOWN,
    Schedule: lambda: Schedule(every=2, apart=3, error=2),
    SecondOrderModel: lambda: PAIRS,
    SensitivityHull: lambda: HULL,
    dphmm.Standing: lambda: STANDING,
    States: lambda: TOWN.states,
    Store: a_store,
    Stream: a_stream,
    TimeVaryingModel: lambda: TimeVaryingModel([MODEL, MODEL]),
    dphmm.Whereabouts: lambda: dphmm.whereabouts([[0.5, 0.5]], [[0.5, 0.5]], [[0.0], [1.0]]),
}

READ_ONLY = (
    *(dphmm.BatchRelease, Belief, dphmm.Check, Entry, dphmm.Leakage, dphmm.PrivacyLoss),
    *(dphmm.PrivacyStatement, dphmm.Release, SensitivityHull, dphmm.Standing, Store),
    *(dphmm.BudgetDesign, dphmm.Design, dphmm.Judgement, dphmm.Spending, dphmm.Whereabouts),
)
"""Made by the library; what they are made of has been checked."""


def functions() -> dict[str, tuple[type | None, Callable[..., Any]]]:
    """Every public function and method with parameters, and what it must be called on."""
    found: dict[str, tuple[type | None, Any]] = {}
    things = {name: getattr(dphmm, name) for name in dphmm.__all__}
    things |= {one.__name__: one for one in (as_epsilon, body_for, exact, local_hull, path_epsilon)}
    for name, thing in things.items():
        if not inspect.isclass(thing):
            if inspect.isfunction(thing):
                found[name] = None, thing
            continue
        if issubclass(thing, (Exception, Warning)) or inspect.isabstract(thing):
            continue
        if thing not in READ_ONLY:
            found[name] = None, thing
        # What draws noise reads words by the thousand, and asks no user for its arguments.
        if issubclass(thing, (Randomness, tuple)):
            continue
        for method, member in inspect.getmembers(thing):
            is_function = inspect.isfunction(member) or inspect.ismethod(member)
            own = getattr(member, "__func__", member)
            tested = [getattr(base, method, None) for base in thing.__mro__[1:] if base in MAKE]
            seen = any(own is getattr(other, "__func__", other) for other in tested)
            # What is awaited is the same steps.
            seen = seen or thing is dphmm.AsyncClient
            # It has no wheel for the newest Python.
            seen = seen or (method == "to_hmmlearn" and find_spec("hmmlearn") is None)
            if is_function and not method.startswith("_") and not seen:
                owner = None if inspect.ismethod(member) else thing
                found[f"{name}.{method}"] = owner, member
    return {name: pair for name, pair in found.items() if parameters(pair[1]) or name in OTHERWISE}


def parameters(function: Callable[..., Any]) -> list[str]:
    signature = inspect.signature(function).parameters.values()
    return [p.name for p in signature if p.name != "self" and p.kind != p.VAR_KEYWORD]


FUNCTIONS = functions()


def names_of(name: str) -> list[str]:
    return list(dict.fromkeys([*parameters(FUNCTIONS[name][1]), *OTHERWISE.get(name, {})]))


def right(name: str) -> dict[str, Any]:
    """Arguments that are right; what has a default and no value here keeps the default."""
    return {one: RIGHT[one] for one in names_of(name) if one in RIGHT} | OTHERWISE.get(name, {})


def call(name: str, changes: dict[str, Any]) -> None:
    owner, function = FUNCTIONS[name]
    used = [] if owner is None else [MAKE[owner]()]
    if name in ("Journal.adopt", "MemoryBook.adopt", "Store.adopt"):  # only what stands goes on
        used[0].commit(**COMMITTED)
    try:
        made = function(*used, **right(name) | changes)
        if inspect.isgenerator(made):
            made = list(made)
        used.append(made)
        # What is wrong with them shows when they are used.
        if isinstance(made, Plan):
            Stream(MODEL, made, epsilon=1, start=3).release(0)
            assert made.digest
        if isinstance(made, Policy):
            made = Scenario(TOWN.states, MODEL, made, epsilon=1)
        if isinstance(made, Scenario):
            made.stream("ann").release(0)
            made.save("made/made.toml")
    finally:
        for one in used:
            if isinstance(one, (Journal, Store, dphmm.Client)):
                one.close()


# The laws

MARK = "zq41"
WRONG = [None, 3, MARK, 41.5, -1, float("nan"), b"", object(), [], {}, [["a", "b"]]]
WRONG += [QUERY, POLICY, HULL]
WRONG += [10**400, 2**63, np.array(np.nan), np.zeros((2, 2, 2)), [[1], [2, 3]]]

HANDED_DOWN = {
    "Batch.resume": "time",
    "Scenario.in_places": "values",
    "Scenario.state_of": "places",
    "Client.create_key": "scopes|client",
    "Client.release_many": "row",
    "States": "x",
    "States.state_of": "places",
    "States.at": "states",
    "States.on_plane": "x|category",
}
"""What else a message may name: the parameter of a function further in, a column."""


SECRET = ("key", "place", "places", "secret", "state", "true_state", "true_states", "truth")
"""What may be a true state, where somebody is, or a key: no message shows it."""


@pytest.fixture(scope="module", autouse=True)
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("arguments")
    (folder / "made").mkdir()
    dp.enable_features("contrib", "honest-but-curious")
    with contextlib.chdir(folder):
        TOWN.save("town.toml")
        Path("trips.csv").write_text("who,time,state\nann,1,0\n")
        Path("walk.csv").write_text("who,time,state\nann,1,3\nann,2,4\nbob,1,4\nbob,2,3\n")
        yield
    dp.disable_features("contrib", "honest-but-curious")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_arguments_above_are_right(name: str) -> None:
    call(name, {})


@pytest.mark.filterwarnings("ignore::dphmm.CollapsedAnswersWarning")
@pytest.mark.parametrize(
    ("name", "argument"),
    [pytest.param(name, one, id=f"{name}-{one}") for name in FUNCTIONS for one in names_of(name)],
)
def test_a_wrong_argument_is_refused_by_its_name(name: str, argument: str) -> None:
    # Two arguments that do not fit each other may be told by either name.
    names = "|".join([*names_of(name), *HANDED_DOWN.get(name, "").split()])
    known = inspect.signature(FUNCTIONS[name][1]).parameters.get(argument)
    for wrong in WRONG:
        if known is not None and known.default is wrong:
            continue
        said = None
        try:
            call(name, {argument: wrong})
        except DphmmError as fault:
            said = fault
        # What is in a file or a store has its own sentences.
        if isinstance(said, ArgumentError):
            assert re.match(rf"(each of )?({names})\b.* must", str(said)), str(said)
        if argument in SECRET and name != "Blowfish.protected_by":
            assert "41" not in str(said), str(said)


# The cases that were found


def test_swapped_arguments_are_named():
    with pytest.raises(ArgumentError, match="query must be a Query, got PolicyGraph"):
        exposed(POLICY, QUERY)
    with pytest.raises(ArgumentError, match="query must be a Query, got SensitivityHull"):
        Mechanism(HULL, QUERY, 1)
    with pytest.raises(ArgumentError, match="hull must be a SensitivityHull, got Query"):
        constrained_epsilon(QUERY, QUERY, 1)
    with pytest.raises(ArgumentError, match="found must be an Attack, got list"):
        private_score([], TRUTH, QUERY, model=MODEL, start=3)


def test_a_float_epsilon_is_its_decimal():
    assert Mechanism(QUERY, HULL, 0.5).epsilon == Fraction(1, 2)
    assert Mechanism(QUERY, HULL, 0.1).epsilon == Fraction(1, 10)
    assert LocalRelease(QUERY, 0.1, {1: HULL}).epsilon == Fraction(1, 10)


def test_a_message_names_the_argument_that_was_given():
    for function, argument in (
        (lambda: PolicyGraph.within_distance(QUERY, "far"), "radius"),
        (lambda: Query([0, 1], step="coarse"), "step"),
        (lambda: HULL.norm(["a", 1]), "vector"),
        (lambda: HULL.mean_squared_error("some"), "epsilon"),
    ):
        with pytest.raises(ArgumentError, match=f"^{argument} must be finite and rational, got"):
            function()


# The checkers


def test_a_whole_number_is_an_integer_and_no_truth():
    assert whole(np.int32(3), "size") == 3
    assert whole(-3, "time", None) == -3
    for wrong in (True, 3.0, "3", None):
        with pytest.raises(ArgumentError, match=r"^size must be a whole number, got"):
            whole(wrong, "size", 1)
    with pytest.raises(ArgumentError, match=r"^size must be at least 1, got 0$"):
        whole(0, "size", 1)


def test_a_state_is_never_shown():
    assert state_number(np.int64(2), 3) == 2
    for wrong in (41, -41):
        with pytest.raises(ArgumentError, match="state must be one of the 3 states") as caught:
            state_number(wrong, 3)
        assert "41" not in str(caught.value)
    for wrong in (True, "41", 41.0, None):
        with pytest.raises(ArgumentError, match="state must be a state's number") as caught:
            state_number(wrong, 3)
        assert "41" not in str(caught.value)


def test_expect_names_the_argument_and_both_types():
    expect(QUERY, Query, "query")
    with pytest.raises(ArgumentError, match=r"^query must be a Query, got NoneType$"):
        expect(None, Query, "query")
    with pytest.raises(ArgumentError, match=r"^error must be an ArgumentError, got int$"):
        expect(1, ArgumentError, "error")


# What a second fuzzer found

HALF = "\ud800"


def in_a_store(act: Callable[[Store], object]) -> None:
    with contextlib.closing(a_store()) as store:
        act(store)


@pytest.mark.parametrize(
    ("said", "act"),
    [
        ("name must be text that can be written", lambda: TOWN.replace(name=HALF)),
        ("unit must be text that can be written", lambda: TOWN.replace(unit=HALF)),
        ("each of labels must be text", lambda: States((HALF,), {})),
        ("each name of numbers must be a str", lambda: States(("a",), {1: [2]})),
        ("x must be a Sized, got int", lambda: States(("a",), {"x": 1})),
        ("kind must be a Sized, got None", lambda: States(("a",), {}, {"kind": None})),
        ("x must", lambda: States(("a",), {"x": ["b"]})),
        ("trips must name a file", lambda: TOWN.release(HALF)),
        ("trips must name a file", lambda: TOWN.evaluate("\0")),
        ("states must be numbers in one row", lambda: QUERY.nearest_states([[0, 1]], [1])),
        ("pairs must be a whole number", lambda: STANDING.remember([("a", "b")], 2)),
        ("each price of pairs must be a Fraction", lambda: STANDING.remember([(1, "b")], 2)),
        ("person must be text", lambda: in_a_store(lambda store: store.erase(HALF))),
        ("person must be text", lambda: in_a_store(lambda store: store.ledger("a\0"))),
        (
            "client must be text",
            lambda: in_a_store(lambda store: store.hash_name("a", client=HALF)),
        ),
        ("times must be at most", lambda: in_a_store(lambda store: store.find(LINE, [2**70]))),
        (
            "claimed must be",
            lambda: dphmm.audit_sampler(coin, claimed=np, points=[[0], [1]], edges=[(0, 1)]),
        ),
        (
            "trips must be a file or a table of Polars, pandas or Arrow, got dict",
            lambda: TOWN.release({"person": ["ann"], "time": [1], "state": ["s1"]}),
        ),
        ("one row of coordinates a state, got list", lambda: dphmm.States.at(["park", "bank"])),
    ],
)
def test_what_was_left_midway_is_refused_in_a_sentence(said: str, act: Callable[[], Any]) -> None:
    with pytest.raises(ArgumentError, match=said):
        act()
