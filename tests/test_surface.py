"""The public surface: every parameter of every public name is documented where it is given.

A parameter stands in the section `Args:` of its function's docstring, for a constructor in that
of the class. What a method only hands down, an override may leave to the method that it
overrides. A result that people read and do not make may document its fields one by one.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import textwrap
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import dphmm
from dphmm.cost.adversary import attack, guarantee_against
from dphmm.cost.charges import Charge
from dphmm.cost.history import History
from dphmm.cost.local_noise import LocalRelease
from dphmm.release.book import Book

# Rooms whose public names are documented as well, though few of them are in `dphmm`.
ROOMS = [
    "dphmm.errors",
    "dphmm.geometry.exact",
    "dphmm.geometry.hull",
    "dphmm.geometry.query",
    "dphmm.geometry.shapes",
    "dphmm.geometry.states",
    "dphmm.chain.belief",
    "dphmm.chain.chains",
    "dphmm.chain.markov",
    "dphmm.policy.graph",
    "dphmm.policy.protection",
    "dphmm.policy.repair",
    "dphmm.policy.sensitivity",
    "dphmm.noise.mechanism",
    "dphmm.noise.reference",
    "dphmm.cost.adversary",
    "dphmm.cost.blowfish",
    "dphmm.cost.bracket",
    "dphmm.cost.composition",
    "dphmm.cost.local_noise",
]


ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def public_objects():
    """Every public name once, with its object."""
    found = {name: getattr(dphmm, name) for name in dphmm.__all__}
    found = {name: thing for name, thing in found.items() if not inspect.ismodule(thing)}
    for room in ROOMS:
        module = import_module(room)
        for name in module.__all__:
            thing = getattr(module, name)
            if (inspect.isclass(thing) or inspect.isfunction(thing)) and all(
                thing is not known for known in found.values()
            ):
                found[f"{room}.{name}"] = thing
    return found


def documented(docstring):
    """The names in the section `Args:` of a docstring."""
    section = re.search(r"^Args:\n((?:    .*\n?|\n)*)", inspect.cleandoc(docstring or ""), re.M)
    if section is None:
        return set()
    return set(re.findall(r"^    \**(\w+): \S", section.group(1), re.M))


def described_fields(cls):
    """The fields of a class that a docstring of their own follows."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    return {
        before.target.id
        for before, after in zip(body.body, body.body[1:], strict=False)
        if isinstance(before, ast.AnnAssign)
        and isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
    }


def parameters(function):
    signature = inspect.signature(function)
    return {name for name in signature.parameters if name not in ("self", "cls")}


def made_by_hand(cls):
    """Whether a class says itself how it is made, and not a base class outside of dphmm."""
    return is_dataclass(cls) or "__init__" in vars(cls) or issubclass(cls, tuple)


def missing(thing):
    """What is not documented, as `method.parameter`."""
    if not inspect.isclass(thing):
        return sorted(parameters(thing) - documented(thing.__doc__))
    lacking = []
    if made_by_hand(thing):
        known = documented(thing.__doc__)
        if is_dataclass(thing) or issubclass(thing, tuple):
            known |= described_fields(thing)
        lacking += sorted(parameters(thing) - known)
    for name, member in inspect.getmembers(thing):
        if name.startswith("_") or not (inspect.isfunction(member) or inspect.ismethod(member)):
            continue
        if not getattr(member, "__module__", "").startswith("dphmm"):
            continue
        known = set()
        # A method that says "See `Book`" is documented there, once for all books.
        protocol = (Book,) if "See `Book`" in (member.__doc__ or "") else ()
        for base in (*thing.__mro__, *protocol):
            if name in vars(base):
                known |= documented(getattr(base, name).__doc__)
        lacking += [f"{name}.{parameter}" for parameter in sorted(parameters(member) - known)]
    return lacking


@pytest.mark.parametrize("name", sorted(public_objects()))
def test_every_parameter_is_documented(name):
    assert missing(public_objects()[name]) == []


@pytest.mark.parametrize("name", sorted(public_objects()))
def test_nothing_is_documented_that_is_no_parameter(name):
    thing = public_objects()[name]
    members = [thing]
    if inspect.isclass(thing):
        members += [m for n, m in inspect.getmembers(thing, inspect.isroutine) if n[0] != "_"]
    for member in members:
        if (member.__doc__ or "").count("Args:"):
            assert documented(member.__doc__) <= parameters(member), member


# What an object looks like

QUERY = dphmm.Query([[0, 0], [0, 1], [2, 3]], step="0.5")
POLICY = dphmm.PolicyGraph(3, [(0, 1), (1, 2)])
MODEL = dphmm.MarkovModel(np.full((3, 3), 1 / 3))
HULL = dphmm.sensitivity_hull(QUERY, POLICY)
HISTORY = History.of(QUERY, MODEL, [HULL, HULL], "0.1")


def test_a_statement_prints_as_its_words():
    statement = dphmm.privacy_statement(HISTORY)
    assert str(statement) == statement.text()
    assert str(statement) != repr(statement)


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        (QUERY, "Query(n_states=3, dimension=2, step=0.5)"),
        (POLICY, "PolicyGraph(n_states=3, links=2, cliques=0)"),
        (MODEL, "MarkovModel(3 states, 9 moves)"),
        (HULL, "SensitivityHull(dimension=2, rank=2, corners=4, step=0.5)"),
        (dphmm.Mechanism(QUERY, HULL, 0.1), f"Mechanism({QUERY}, {HULL}, epsilon=0.1)"),
        (dphmm.Belief.certain(1, 3), "Belief(3 states, 1 possible)"),
        (dphmm.TimeVaryingModel([MODEL]), "TimeVaryingModel(3 states, 1 models)"),
        (Charge(QUERY, HULL, "1/3"), f"Charge({QUERY}, {HULL}, epsilon=1/3)"),
        (HISTORY, "History(steps=2, releases=2, states=3)"),
        (attack([None, None], model=MODEL, start=0), "Attack(steps=2, score=0)"),
        (
            guarantee_against(QUERY, POLICY, HULL, 1, possible=[0, 1], known=[1, 2]),
            "Knowledge(case='other', common=1 states, epsilon=1, unprotected=0 states)",
        ),
        (
            LocalRelease.shared(QUERY, HULL, 1, [0, 1]),
            f"LocalRelease({QUERY}, epsilon=1, states=2, hulls=1)",
        ),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_an_object_shows_what_it_is(thing, text):
    assert repr(thing) == text


@pytest.mark.parametrize("name", sorted(public_objects()))
def test_no_class_looks_like_a_place_in_memory(name):
    thing = public_objects()[name]
    if inspect.isclass(thing) and not inspect.isabstract(thing):
        assert thing.__repr__ is not object.__repr__


PLACES = dphmm.States.on_plane([[0, 0], [3, 0], [0, 4]], labels=("home", "work", "park"))
TOWN = dphmm.Scenario(PLACES, MODEL, POLICY, epsilon=1, limit=3, name="a <b>", source="R&D")


def test_sources_of_noise_and_books_show_no_secret(tmp_path):
    key = bytes(range(32))
    assert repr(dphmm.KeyedRandomness(key)) == "KeyedRandomness(key=<secret>)"
    assert repr(dphmm.SecureRandomness()) == "SecureRandomness()"
    assert repr(dphmm.SeededRandomness(np.random.default_rng(0))) == "SeededRandomness()"
    assert repr(PLACES) == "States(3 states, columns x, y)"
    book = dphmm.MemoryBook()
    TOWN.stream("ann", book=book).release("park")
    assert repr(book) == "MemoryBook(1 people, 1 answers)"
    with dphmm.Journal(tmp_path / "ledger.jsonl") as journal:
        assert repr(journal) == "Journal(0 people, 0 answers)"
    store = dphmm.Store.open(str(tmp_path / "answers.db"))
    assert repr(store) == "Store(sqlite)"
    store.close()


def test_what_users_wrote_is_escaped_where_it_is_shown():
    assert repr(TOWN) == "Scenario('a <b>', 3 states, epsilon 1)"
    shown = TOWN._repr_html_()
    assert "<b>a &lt;b&gt;</b>" in shown
    assert "R&amp;D" in shown
    assert "<td>1<tr><th>limit<td>3<" in shown
    assert "hidden among" in TOWN.check(steps=2)._repr_html_()
    stream = TOWN.stream("ann")
    release = stream.release("park")
    assert release._repr_html_().startswith("time 1: <b>")
    assert stream.ledger._repr_html_().endswith("<b>1</b> spent, limit 3")


def test_names_on_demand_are_there_and_others_are_not():
    assert dphmm.datasets.synthetic_city is not None
    assert dphmm.audit_sampler.__name__ == "audit_sampler"
    with pytest.raises(AttributeError, match="no attribute 'snapshot'"):
        _ = dphmm.snapshot


def test_a_statement_shows_its_sentences_as_a_list():
    shown = dphmm.privacy_statement(HISTORY)._repr_html_()
    assert shown.startswith("<ul><li>2 releases, epsilon 0.2 in all.</li><li>")
    assert shown.count("<li>") == shown.count("</li>") == 6
    assert "paper&#x27;s" in shown


# The docs


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_import_from_dphmm_alone(page):
    imports = re.findall(r"^>>> (?:from|import) (dphmm[\w.]*)", page.read_text(), re.M)
    # What runs on a cluster is an extra with a name of its own.
    assert {name for name in imports if name != "dphmm.spark"} <= {"dphmm"}


# The test itself


def test_a_parameter_that_is_left_out_is_seen():
    def function(one, two):
        """Nothing.

        Args:
            one: The first.

        two: Not in the section.
        """

    class Thing:
        """A thing.

        Args:
            first: The first.
        """

        def __init__(self, first, second):
            pass

        def act(self, how):
            """Act."""

    Thing.act.__module__ = "dphmm"
    assert missing(function) == ["two"]
    assert missing(Thing) == ["second", "act.how"]


def test_every_field_of_a_result_counts_as_documented_by_its_own_docstring():
    statement = dphmm.PrivacyStatement
    assert {field.name for field in fields(statement)} >= described_fields(statement) > {"linked"}


def test_what_a_release_does_not_need_is_imported_when_somebody_asks():
    later = ["dphmm.cost.windows", "dphmm.scenario", "scipy.sparse.csgraph", "scipy.sparse.linalg"]
    code = f"import sys, dphmm; print([name for name in {later!r} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert said.stdout == "[]\n"
