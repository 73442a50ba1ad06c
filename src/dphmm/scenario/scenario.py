"""A scenario: states, model, policy and budget, from one TOML file; nothing in it is private."""

from __future__ import annotations

import csv
import hashlib
import io
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dphmm.chain.belief import Belief
from dphmm.chain.chains import TimeVaryingModel
from dphmm.chain.markov import Chain, MarkovModel
from dphmm.cost.ledger import Ledger
from dphmm.errors import ArgumentError, DataError, ScenarioError
from dphmm.geometry.exact import as_text
from dphmm.geometry.query import Query
from dphmm.noise.randomness import encoded
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Plan
from dphmm.release.stream import Stream
from dphmm.scenario.models import read_model, write_model
from dphmm.scenario.settings import Settings
from dphmm.tables.files import csv_text, read_text, write_whole
from dphmm.tables.states import States

__all__ = ["Scenario"]


@dataclass(frozen=True, eq=False, repr=False)
class Scenario:
    """What everybody may know of a use of dphmm, and the streams that follow from it.

    >>> states = States.on_plane([[0, 0], [3, 0], [0, 4]], labels=("home", "work", "park"))
    >>> model = MarkovModel([[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]])
    >>> from fractions import Fraction
    >>> from dphmm.scenario import Policy
    >>> settings = Settings("town", Fraction(1), start="home", policy=Policy(complete=True))
    >>> scenario = Scenario(settings, states, model)
    >>> scenario
    Scenario('town', 3 states, epsilon 1)
    >>> scenario.stream("ann").release(scenario.state_of("park")).time
    1
    """

    settings: Settings
    states: States
    base_model: Chain
    """The chain as its file has it; `model` is the same on the scenario's clock."""
    source: str = "given, treated as public"
    """Where the chain came from, in a sentence."""
    edges: tuple[tuple[str, str], ...] = field(default=())
    """The labels that the policy's edges file links."""

    def __post_init__(self) -> None:
        if self.base_model.n_states != len(self.states):
            raise ScenarioError(
                f"{self.settings.model}: model must have the {len(self.states)} states of "
                f"{self.settings.states}, got {self.base_model.n_states}"
            )

    @classmethod
    def load(cls, path: str | Path) -> Scenario:
        """The scenario of a TOML file and of the files that it names."""
        settings = Settings.read(path)
        folder = Path(path).parent
        states = States.read(folder / settings.states)
        learned = read_model(folder / settings.model)
        edges: tuple[tuple[str, str], ...] = ()
        if settings.policy.edges is not None:
            edges = read_edges(folder / settings.policy.edges, states)
        scenario = cls(settings, states, learned.model, learned.source, edges)
        try:
            _ = scenario.plan, scenario.start, scenario.model
        except ScenarioError:
            raise
        except (ArgumentError, DataError) as fault:
            raise ScenarioError(f"{Path(path).name}: {fault}") from None
        return scenario

    def save(self, path: str | Path) -> None:
        """Write the TOML file and, beside it, the files that it names."""
        folder = Path(path).parent
        self.states.write(folder / self.settings.states)
        write_model(folder / self.settings.model, self.base_model, self.source)
        if self.settings.policy.edges is not None:
            write_whole(folder / self.settings.policy.edges, csv_text([("a", "b"), *self.edges]))
        write_whole(path, self.settings.to_toml())

    def __repr__(self) -> str:
        name, price = self.settings.name, as_text(self.settings.epsilon)
        return f"Scenario({name!r}, {len(self.states)} states, epsilon {price})"

    @property
    def name(self) -> str:
        """What ledgers call the scenario."""
        return self.settings.name

    @property
    def labels(self) -> tuple[str, ...]:
        """What each state is called."""
        return self.states.labels

    @cached_property
    def model(self) -> Chain:
        """The chain, turned so that its first transitions are those after the clock's origin."""
        if not isinstance(self.base_model, TimeVaryingModel):
            return self.base_model
        first = self.settings.clock.first_slot
        if first is None:
            raise ScenarioError("time.origin must be given for a model that changes with time")
        schedule: Any = self.base_model._schedule
        turned = [schedule[(first + time) % len(schedule)] for time in range(len(schedule))]
        return TimeVaryingModel(self.base_model.models, turned)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the states that the query asks for."""
        chosen = self.settings.columns or self.states.place_columns
        if not chosen:
            raise ScenarioError("query.columns must name columns of numbers of the states")
        return chosen

    @cached_property
    def query(self) -> Query:
        """The answer of every state, on the scenario's lattice."""
        return Query(self.states.values(self.columns), step=self.settings.step)

    @cached_property
    def policy(self) -> PolicyGraph:
        """The union of every part of the policy."""
        chosen, n_states = self.settings.policy, len(self.states)
        graph = PolicyGraph(n_states)
        if chosen.complete:
            graph = graph | PolicyGraph.complete(n_states)
        if chosen.category is not None:
            graph = graph | PolicyGraph.by_category(self.category(chosen.category))
        if chosen.distance is not None:
            graph = graph | PolicyGraph.within_distance(self.query, chosen.distance)
        if chosen.one_step:
            models = (
                self.base_model.models
                if isinstance(self.base_model, TimeVaryingModel)
                else (self.base_model.at(1),)
            )
            for model in models:
                graph = graph | PolicyGraph.one_step(model)
        if self.edges:
            linked = [[self.states.state_of(a), self.states.state_of(b)] for a, b in self.edges]
            graph = graph | PolicyGraph(n_states, linked)
        return graph

    def category(self, column: str) -> tuple[Any, ...]:
        """The values of a column that groups the states."""
        if column in self.states.texts:
            return self.states.texts[column]
        if column in self.states.numbers:
            return tuple(self.states.numbers[column].tolist())
        raise ScenarioError(f"policy.category must be a column of the states, got {column!r}")

    @cached_property
    def plan(self) -> Plan:
        """What protects each possible set; shared by every stream of the scenario."""
        settings: Any = self.settings
        return Plan(
            self.policy,
            self.query,
            mechanism=settings.mechanism,
            shape=settings.shape,
            repair=settings.repair,
            full_rank=settings.full_rank,
        )

    @cached_property
    def start(self) -> Belief:
        """What everybody knows before the first step."""
        start, n_states = self.settings.start, len(self.states)
        if isinstance(start, str):
            if start == "uniform":
                return Belief.uniform(n_states)
            if start == "stationary":
                return self._stationary()
            if start not in self.labels:
                raise ScenarioError(
                    f"start must be a label, 'uniform' or 'stationary', got {start!r}"
                )
            return Belief.certain(self.states.state_of(start), n_states)
        probabilities = np.zeros(n_states)
        for label, value in start.items():
            if label not in self.labels:
                raise ScenarioError(f"start must name labels of the states, got {label!r}")
            probabilities[self.states.state_of(label)] = value
        try:
            return Belief.from_probabilities(probabilities)
        except ArgumentError as fault:
            raise ScenarioError(f"start: {fault}") from None

    def _stationary(self) -> Belief:
        if not isinstance(self.base_model, MarkovModel):
            raise ScenarioError("start must not be 'stationary' for a model that changes with time")
        return self.base_model.stationary()

    def state_of(self, place: str | ArrayLike) -> int:
        """The state with a label, or the one nearest to a finite pair of coordinates."""
        if isinstance(place, str):
            return self.states.state_of(place)
        return int(self.states.nearest(place)[0])

    def stream(
        self, person: str, key: bytes | None = None, ledger: Ledger | None = None, **options: Any
    ) -> Stream:
        """One person's stream under this scenario, with the shared plan."""
        return Stream(
            self.model,
            self.policy,
            self.query,
            epsilon=self.settings.epsilon,
            start=self.start,
            delta=self.settings.delta,
            limit=self.settings.limit if ledger is None else None,
            ledger=ledger,
            person=person,
            scenario=self.name,
            key=key,
            plan=self.plan,
            **options,
        )

    @cached_property
    def law(self) -> str:
        """A fingerprint of all that decides what an answer means, epsilon and limit apart."""
        settings, policy = self.settings, self.policy
        facts = (settings.mechanism, settings.shape, settings.repair, settings.full_rank)
        parts = [
            self.query.digest,
            repr((*facts, settings.delta, settings.clock)).encode(),
            self.start.possible.tobytes() + self.start.probabilities.tobytes(),
            *(array.tobytes() for array in (policy.links, policy.members, policy.offsets)),
        ]
        model = self.base_model
        several = isinstance(model, TimeVaryingModel)
        for part in model.models if isinstance(model, TimeVaryingModel) else (model.at(1),):
            matrix = part.transition
            parts += [
                matrix.data.tobytes(),
                matrix.indices.astype("<i8").tobytes(),
                matrix.indptr.astype("<i8").tobytes(),
            ]
        if several:
            parts.append(repr(model._schedule).encode())  # type: ignore[attr-defined]
        return hashlib.sha256(encoded(tuple(parts))).hexdigest()[:16]

    def in_places(self, answers: ArrayLike) -> np.ndarray[Any, Any]:
        """Answers as people read them: metres on the plane become latitude and longitude."""
        values = np.atleast_2d(np.asarray(answers, dtype=np.float64))
        if not self._on_earth:
            return values
        assert self.states.plane is not None
        degrees = self.states.plane.to_degrees(values[:, 0], values[:, 1])
        return np.stack(degrees, axis=-1).round(7)

    def on_lattice(self, places: ArrayLike) -> np.ndarray[Any, Any]:
        """The lattice points of answers as people read them, the reverse of `in_places`."""
        values = np.atleast_2d(np.asarray(places, dtype=np.float64))
        if self._on_earth:
            assert self.states.plane is not None
            values = np.stack(self.states.plane.to_plane(values[:, 0], values[:, 1]), axis=-1)
        steps = np.rint(values / float(self.settings.step))
        return np.array([[int(number) for number in row] for row in steps])

    @property
    def _on_earth(self) -> bool:
        return self.states.plane is not None and self.columns == self.states.place_columns


def read_edges(path: str | Path, states: States) -> tuple[tuple[str, str], ...]:
    """The pairs of labels of a CSV file with a header of two columns."""
    name = Path(path).name
    rows = list(csv.reader(io.StringIO(read_text(path))))
    edges = []
    for line, row in enumerate(rows[1:], start=2):
        if not row:
            continue
        pair = tuple(cell.strip() for cell in row)
        if len(pair) != 2 or not all(label in states._numbers_of for label in pair):
            raise DataError(f"{name}:{line}: row must be two labels of {states.source}")
        edges.append((pair[0], pair[1]))
    return tuple(edges)
