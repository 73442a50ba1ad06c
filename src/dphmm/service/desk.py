"""The work behind each route: blocking calls on the store, for threads of a pool."""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from dphmm.books import Answer, Request, Rules, Store
from dphmm.books.scenarios import packed, rules_of, unpacked
from dphmm.cost import Bracket, History, PrivacyStatement, privacy_statement
from dphmm.errors import ArgumentError, DphmmError, NotFoundError, TooLargeError
from dphmm.release.stream import Release, Stream
from dphmm.scenario import Scenario
from dphmm.service.bodies import NewRelease, NewScenario, NewStream
from dphmm.service.settings import ServiceSettings

__all__ = ["Desk"]

Json: TypeAlias = dict[str, Any]

PAGE = 1000
"""How many releases come in one answer."""


@dataclass(frozen=True)
class _Ready:
    scenario: Scenario
    rules: Rules


class Desk:
    """A store, and the scenarios that are in use, ready to release."""

    def __init__(
        self,
        store: Store,
        settings: ServiceSettings,
        noise_key: bytes | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._noise_key = noise_key
        self._ready: OrderedDict[tuple[str, str], _Ready] = OrderedDict()
        self._guard = threading.Lock()

    def health(self) -> Json:
        """Whether the store answers."""
        with self._store.database.transaction(write=False) as transaction:
            transaction.rows("SELECT value FROM facts WHERE name = 'version'")
        return {"status": "ok"}

    def add_scenario(self, client: str, body: NewScenario) -> tuple[Json, bool]:
        """Check and keep a scenario; the same one again changes nothing."""
        if (body.transition is None) == (body.model is None):
            raise ArgumentError("transition or model must be given, and not both")
        model = body.model if body.transition is None else body.transition
        digest, text = packed(body.scenario, body.states, model, body.edges)
        ready = self._prepared(client, digest, text)
        new = self._store.add_scenario(digest, text, client=client)
        return _summary(digest, ready.scenario), new

    def scenarios(self, client: str) -> Json:
        """The client's scenarios."""
        return {"scenarios": self._store.scenarios(client=client)}

    def scenario(self, client: str, digest: str) -> Json:
        """One scenario's summary."""
        return _summary(digest, self._find(client, digest).scenario)

    def begin(self, client: str, digest: str, person: str, body: NewStream) -> Json:
        """Open a stream."""
        rules = self._find(client, digest).rules
        time = self._store.begin(rules, person, client=client, budget=body.budget)
        return {"person": person, "scenario": digest, "time": time}

    def has_ready(self, client: str, digest: str) -> bool:
        """Whether a scenario is in memory, so that `request` does not wait for the store."""
        return (client, digest) in self._ready

    def request(self, client: str, digest: str, person: str, body: NewRelease) -> Request:
        """What the store is asked for a release."""
        ready = self._find(client, digest)
        state = _state(ready.scenario, body.state)
        return Request(ready.rules, person, body.time, state, body.epsilon, client, create=False)

    def answered(self, client: str, digest: str, answer: Answer) -> Json:
        """The store's answer as the client reads it."""
        scenario = self._find(client, digest).scenario
        return _released(scenario, answer.release, answer.repeated)

    def releases(self, client: str, digest: str, person: str, after: int) -> Json:
        """The answers after a time, with their estimates."""
        ready = self._find(client, digest)
        found = self._store.releases(ready.rules, person, client=client, after=after, most=PAGE + 1)
        page = found[:PAGE]
        return {
            "releases": [_released(ready.scenario, release, True) for release in page],
            "next": page[-1].time if len(found) > PAGE else None,
        }

    def track(self, client: str, digest: str, person: str) -> Json:
        """The smoothed track."""
        ready = self._find(client, digest)
        stream = self._stream(ready, client, person)
        if stream.time == 0:
            return {"times": [], "track": []}
        with ready.rules.lock:
            smoothed = stream.smoothed()
        return {
            "times": list(range(1, stream.time + 1)),
            "track": ready.scenario.in_places(smoothed).tolist(),
        }

    def privacy(self, client: str, digest: str, person: str) -> Json:
        """What everything said in this scenario costs."""
        ready = self._find(client, digest)
        stream = self._stream(ready, client, person)
        if not stream.said:
            raise NotFoundError("person must have a release in this scenario, got none")
        with ready.rules.lock:
            statement = _statement(stream, ready.rules)
        return _costs(statement)

    def ledger(self, client: str, person: str) -> Json:
        """What was spent on a person in all scenarios."""
        ledger = self._store.ledger(person, client=client)
        return {
            "person": person,
            "spent": str(ledger.spent),
            "budget": None if ledger.limit is None else str(ledger.limit),
            "entries": [
                {
                    "time": entry.time,
                    "scenario": entry.scenario,
                    "query": entry.query,
                    "epsilon": str(entry.epsilon),
                    "constrained": str(entry.constrained),
                }
                for entry in ledger.entries
            ],
        }

    def people(self, client: str) -> Json:
        """The client's people."""
        return {"people": self._store.people(client=client)}

    def erase(self, client: str, person: str) -> Json:
        """Delete all but a tombstone."""
        buried = self._store.erase(person, client=client)
        return {
            "spent": str(buried.spent),
            "times": {scenario: time for scenario, (time, _) in buried.scenarios.items()},
        }

    def _find(self, client: str, digest: str) -> _Ready:
        with self._guard:
            ready = self._ready.get((client, digest))
            if ready is not None:
                self._ready.move_to_end((client, digest))
                return ready
        return self._prepared(client, digest, self._store.scenario(digest, client=client))

    def _prepared(self, client: str, digest: str, text: str) -> _Ready:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a coarse lattice is the scenario's own choice
            scenario = unpacked(text)
            # The first hull and the compiled code take seconds: not while a person is locked.
            scenario.stream("nobody").release(0)
        rules = rules_of(scenario, name=digest, key=self._noise_key)
        with self._guard:
            # Another thread may have been faster: all must share one plan and one lock.
            ready = self._ready.setdefault((client, digest), _Ready(scenario, rules))
            while len(self._ready) > self._settings.scenarios:
                self._ready.popitem(last=False)
        return ready

    def _stream(self, ready: _Ready, client: str, person: str) -> Stream:
        steps = self._store.time(ready.rules, person, client=client)
        if steps * len(ready.scenario.states) > self._settings.largest_track:
            raise TooLargeError("the stream is too long for this; read its releases instead")
        return self._store.stream(ready.rules, person, client=client)


def _state(scenario: Scenario, given: int | str | list[float | int]) -> int:
    """The true state's number. The one who sent a wrong one learns that, and nobody else."""
    if isinstance(given, int):
        return given
    try:
        if isinstance(given, list) and len(given) != 2:
            raise ArgumentError("")
        return scenario.state_of(given)
    except (DphmmError, OverflowError):
        raise ArgumentError(
            "state must be a number or label of a state, or two finite coordinates"
        ) from None


def _summary(digest: str, scenario: Scenario) -> Json:
    settings = scenario.settings
    return {
        "id": digest,
        "name": scenario.name,
        "states": len(scenario.states),
        "dimension": scenario.query.dimension,
        "epsilon": str(settings.epsilon),
        "limit": None if settings.limit is None else str(settings.limit),
    }


def _released(scenario: Scenario, release: Release, repeated: bool) -> Json:
    places = scenario.in_places([release.answer, release.estimate]).tolist()
    return {
        "time": release.time,
        "answer": places[0],
        "lattice": [int(number) for number in release.lattice],
        "estimate": places[1],
        "epsilon": str(release.epsilon),
        "statement": release.statement,
        "repeated": repeated,
    }


def _statement(stream: Stream, rules: Rules) -> PrivacyStatement:
    """The statement about a stream: its public answers said again, and what shaped each."""
    again = rules.fresh(stream.person)
    hulls: list[Any] = []
    possible: list[Any] = []
    epsilons: list[Fraction] = []
    for said in stream.said:
        gap = said.time - again.time - 1
        hulls += [None] * gap
        possible += [None] * gap
        epsilons += [said.epsilon] * (gap + 1)
        again.skip(gap)
        again.repeat(said.lattice, said.epsilon)
        hulls.append(again.hull)
        possible.append(again.prior.possible)
    history = History.of(
        stream.query, stream.model, hulls, epsilons, start=stream.start, possible=possible
    )
    unseen = stream.model.smooth([None] * len(hulls), start=stream.start)
    seen = stream.model.smooth(stream.observations()[: len(hulls)], start=stream.start)
    return privacy_statement(
        history,
        prior=[belief.probabilities for belief in unseen],
        posterior=[belief.probabilities for belief in seen],
        adaptive=True if stream.delta else None,
    )


def _costs(statement: PrivacyStatement) -> Json:
    sequence = statement.sequence
    upper = sequence.upper if isinstance(sequence, Bracket) else sequence
    costs = {
        "linked": statement.linked,
        "worst_pair": statement.worst_pair,
        "event": statement.event,
        "window": statement.window,
        "sequence": upper,
    }
    return {
        "releases": statement.releases,
        "spent": str(statement.spent),
        "text": statement.text(),
        **{name: None if cost is None else str(cost) for name, cost in costs.items()},
    }
