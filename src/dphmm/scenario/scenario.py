"""A scenario: states, model, policy and budget, from one TOML file; nothing in it is private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dphmm.chain.belief import Belief
from dphmm.chain.estimates import Estimate
from dphmm.chain.markov import Chain
from dphmm.cost.ledger import Ledger
from dphmm.cost.limit import Limit
from dphmm.errors import ArgumentError, ScenarioError, expect
from dphmm.geometry.exact import Exact, as_text
from dphmm.geometry.query import QUERY_NAME, Query
from dphmm.geometry.states import state_number
from dphmm.noise.randomness import Randomness
from dphmm.noise.staircase import as_gamma
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Plan
from dphmm.release.book import Book
from dphmm.release.schedule import Schedule
from dphmm.release.stream import Stream
from dphmm.release.terms import Terms
from dphmm.scenario.building import (
    build_policy,
    build_start,
    check_edges,
    html_of,
    lattice_of,
    place_columns_of,
    read_policy,
    readable,
)
from dphmm.scenario.files import load_scenario, save_scenario
from dphmm.scenario.releasing import begin_stream, open_stream, release_trips
from dphmm.scenario.settings import Policy, Settings
from dphmm.tables.clock import Clock
from dphmm.tables.states import States
from dphmm.tables.units import length

if TYPE_CHECKING:
    from dphmm.audit import Audit
    from dphmm.scenario.checking import Check
    from dphmm.scenario.judging import Judgement

__all__ = ["Scenario"]

GIVEN = "given, treated as public"


class Scenario:
    """What everybody may know of a use of dphmm, and the releases that follow from it.

    Args:
        states: The states: a `States` table, the coordinates of each (one row a state), or a
            `Query`, whose answers then are the coordinates.
        model: How states follow each other.
        policy: Which states must look alike: a `PolicyGraph`, or a `Policy` of rules.
        epsilon: The price of a release.
        limit: The most that may be spent on a person: 100 in all, "24 per 1 day", see `Limit`.
        start: What is known before the first step: a label, "uniform", "stationary", or the
            probability of each label.
        name: What the scenario is called.
        columns: The columns of the states that are asked for; by default their coordinates.
        step: The spacing of the lattice on which answers lie, in `unit` or with its own.
        query: What the ledger calls the question; two answers to one question at one time are
            never given.
        mechanism: See `Plan`.
        shape: See `Plan`.
        gamma: See `Plan`.
        repair: See `Plan`.
        full_rank: See `Plan`.
        delta: See `Plan`.
        clock: How times are cut into steps.
        estimate: What stands for a belief: its "mean", or its geometric "median".
        unit: What the columns are measured in, such as "m", for people to read.
        when: When to speak; at every step by default.
        source: Where the model came from, in a sentence.

    >>> from dphmm import MarkovModel
    >>> places = States.on_plane([[0, 0], [3, 0], [0, 4]], labels=("home", "work", "park"))
    >>> walk = MarkovModel([[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]])
    >>> town = Scenario(places, walk, PolicyGraph.complete(3), epsilon=1, start="home", name="town")
    >>> town
    Scenario('town', 3 states, epsilon 1)
    """

    def __init__(
        self,
        states: States | Query | ArrayLike,
        model: Chain,
        policy: PolicyGraph | Policy,
        *,
        epsilon: Exact,
        limit: Exact | Limit | None = None,
        start: str | int | Mapping[str, float] = "uniform",
        name: str = "scenario",
        columns: Sequence[str] = (),
        step: Exact | None = None,
        query: str = QUERY_NAME,
        mechanism: str = "knorm",
        shape: str = "hull",
        gamma: Exact | None = None,
        repair: str | None = "min_error",
        full_rank: bool = True,
        delta: Exact = 0,
        clock: Clock | None = None,
        estimate: Estimate = "mean",
        unit: str = "",
        when: Schedule | None = None,
        source: str = GIVEN,
    ) -> None:
        if isinstance(states, Query):
            step, states = states.step if step is None else step, states.values
        if not isinstance(states, States):
            states = States.at(states)
            if isinstance(columns, Sequence) and not columns:
                columns = tuple(states.numbers)
        graph, rules = read_policy(policy)
        if isinstance(start, int):
            start = states.labels[state_number(start, len(states), "start")]
        checked: Any = Settings  # which makes every number exact
        settings = checked(
            name, epsilon, limit=limit, start=start, columns=columns,
            step=1 if step is None else length(step, unit, "step"), query=query, policy=rules,
            mechanism=mechanism, shape=shape, gamma=as_gamma(gamma, mechanism), repair=repair,
            full_rank=full_rank, delta=delta, clock=Clock() if clock is None else clock,
            when=when, estimate=estimate, unit=unit,
        )  # fmt: skip
        self._build(settings, states, model, source, (), graph)

    @classmethod
    def from_settings(
        cls,
        settings: Settings,
        states: States,
        model: Chain,
        source: str = GIVEN,
        edges: tuple[tuple[str, str], ...] = (),
    ) -> Scenario:
        """The scenario of a file's settings.

        Args:
            settings: What the file says.
            states: The table that it names.
            model: The chain that it names.
            source: Where the chain came from, in a sentence.
            edges: The labels that the policy's edges file links.
        """
        scenario = cls.__new__(cls)
        scenario._build(settings, states, model, source, edges, None)
        return scenario

    def _build(
        self,
        settings: Settings,
        states: States,
        model: Chain,
        source: str,
        edges: tuple[tuple[str, str], ...],
        graph: PolicyGraph | None,
    ) -> None:
        expect(settings, Settings, "settings")
        expect(states, States, "states")
        expect(source, str, "source")
        expect(model, Chain, "model")
        if model.n_places != len(states):
            raise ScenarioError(
                f"{settings.model}: model must have the {len(states)} states of "
                f"{settings.states}, got {model.n_places}"
            )
        self.settings = settings
        self.states = states
        self.model = model
        self.source = source  # where the chain came from, in a sentence
        if graph is not None and graph.n_states != len(states):
            raise ScenarioError(f"policy must have {len(states)} states, got {graph.n_states}")
        self._graph = graph
        """The policy as a graph, if it was given as one and not as rules."""
        self._edges = check_edges(edges)

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """The labels that the policy's edges file links, or would."""
        if self._graph is None:
            return self._edges
        return tuple((self.labels[a], self.labels[b]) for a, b in self._graph.edges)

    def replace(self, **changes: Any) -> Scenario:
        """The same scenario with some settings changed.

        Args:
            changes: Fields of `Settings` and their new values.
        """
        settings = replace(self.settings, **changes)
        other = self.from_settings(settings, self.states, self.model, self.source, self._edges)
        other._graph = None if "policy" in changes else self._graph
        return other

    @classmethod
    def load(cls, path: str | Path) -> Scenario:
        """The scenario of a TOML file and of the files that it names.

        Args:
            path: The TOML file.
        """
        return load_scenario(cls, path)

    def save(self, path: str | Path) -> None:
        """Write the TOML file and, beside it, the files that it names.

        Args:
            path: The TOML file.
        """
        save_scenario(self, path)

    def __repr__(self) -> str:
        name, price = self.settings.name, as_text(self.settings.epsilon)
        return f"Scenario({name!r}, {len(self.states)} states, epsilon {price})"

    def _repr_html_(self) -> str:
        return html_of(self)

    @property
    def name(self) -> str:
        """What pages and reports call the scenario."""
        return self.settings.name

    @property
    def labels(self) -> tuple[str, ...]:
        """What each state is called."""
        return self.states.labels

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the states that the query asks for."""
        return self.settings.columns or place_columns_of(self.states)

    @cached_property
    def query(self) -> Query:
        """The answer of every state, on the scenario's lattice."""
        settings = self.settings
        return Query(self.states.values(self.columns), step=settings.step, name=settings.query)

    @cached_property
    def policy(self) -> PolicyGraph:
        """The union of every part of the policy."""
        if self._graph is not None:
            return self._graph
        return build_policy(self.settings.policy, self.states, self.query, self.model, self._edges)

    @cached_property
    def plan(self) -> Plan:
        """What protects each possible set; shared by every stream of the scenario."""
        chosen = ("mechanism", "shape", "gamma", "repair", "full_rank", "delta")
        settings: Any = {name: getattr(self.settings, name) for name in chosen}
        return Plan(self.policy, self.query, **settings)

    @cached_property
    def start(self) -> Belief:
        """What everybody knows before the first step."""
        return build_start(self.settings.start, self.states, self.model)

    def state_of(self, place: str | ArrayLike) -> int:
        """The state of a place.

        Args:
            place: A label, or finite coordinates, which belong to the nearest state.
        """
        return self.states.state_of(place)

    @cached_property
    def terms(self) -> Terms:
        """What everybody's releases have in common, for the engine."""
        settings = self.settings
        return Terms(
            model=self.model,
            plan=self.plan,
            start=self.start,
            epsilon=settings.epsilon,
            limit=settings.limit and settings.limit.in_steps(settings.clock.law),
            origin=settings.clock.first_slot,
            clock=settings.clock.law,
            estimate=settings.estimate,
            schedule=settings.schedule,
            time_of=settings.clock.time_of,
            plane=self.states._center(self.columns),
        )

    @property
    def law(self) -> str:
        """The fingerprint of all that shapes answers, epsilon apart, in hexadecimal."""
        return self.terms.law.hex()

    def check(self, steps: int = 10) -> Check:
        """Who is exposed when, what repair adds, and what an answer is worth.

        Args:
            steps: How many steps to look at, without any release.
        """
        from dphmm.scenario.checking import check_scenario

        return check_scenario(self, steps)

    def stream(
        self,
        person: str,
        *,
        book: Book | None = None,
        client: str = "",
        time: int | None = None,
        ledger: Ledger | None = None,
        randomness: Randomness | None = None,
    ) -> Stream:
        """One person's stream; with a book it goes on where they stand, and writes there.

        Args:
            person: Their name.
            book: Where answers are written down before they leave; nowhere by default.
            client: Whose person it is, in a service.
            time: The slot at which the start is known; by default the clock's origin.
            ledger: Without a book, what was said before; by default nothing, under the
                scenario's limit.
            randomness: See `Stream`.
        """
        if book is not None:
            if ledger is not None:
                raise ArgumentError("ledger must not be given with a book, which has its own")
            return open_stream(self, book, client, person, time, randomness)
        return begin_stream(self, client, person, time, ledger, randomness)

    def release(
        self,
        trips: Any,
        *,
        book: Book | None = None,
        client: str = "",
        person: str | None = None,
        columns: Mapping[str, str] | None = None,
        randomness: Randomness | None = None,
    ) -> Any:
        """The answers to all rows of a file or table, as a table of the same kind.

        Nothing is drawn unless all rows can be answered, which no schedule with `error` lets tell.

        Args:
            trips: A file (CSV, JSON lines, Parquet) or a Polars, pandas or Arrow table.
            book: Where answers are written down before they leave; in memory by default.
            client: Whose people they are, in a service.
            person: Whose rows they are, if no column says so.
            columns: What a column is called, if not by its usual name.
            randomness: See `Stream`.
        """
        return release_trips(self, trips, book, client, person, columns, randomness)

    def evaluate(self, trips: Any, *, columns: Mapping[str, str] | None = None) -> Judgement:
        """Whether the model helps, on people it was not learned from. Private.

        Args:
            trips: Their trips, as for `release`; releases to them are simulated.
            columns: What a column is called, if not by its usual name.
        """
        from dphmm.scenario.judging import evaluate_trips

        return evaluate_trips(self, trips, columns)

    def audit(self, *, draws: int | None = None) -> Audit:
        """The scenario's noise held against its epsilon, from its answers alone.

        Args:
            draws: How many answers to draw for each audited state.
        """
        from dphmm.scenario.auditing import audit_scenario

        return audit_scenario(self, draws)

    def in_places(self, answers: ArrayLike) -> np.ndarray[Any, Any]:
        """Answers as people read them: metres on the plane become latitude and longitude.

        Args:
            answers: A row an answer, in the units of the query.
        """
        return readable(self, answers)

    def on_lattice(self, places: ArrayLike) -> np.ndarray[Any, Any]:
        """The lattice points of answers as people read them, the reverse of `in_places`.

        Args:
            places: A row an answer, as people read it.
        """
        return lattice_of(self, places)
