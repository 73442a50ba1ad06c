"""The work behind each route: blocking calls on the store, for threads of a pool."""

from __future__ import annotations

import threading
import warnings
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from cachetools import LRUCache

from dphmm.books import Store
from dphmm.books.scenarios import add_scenario, find_scenario, list_scenarios
from dphmm.cost.limit import Limit
from dphmm.errors import ArgumentError, DphmmError, NotFoundError, TooLargeError, check_name
from dphmm.geometry.exact import Exact, as_epsilon, as_text
from dphmm.noise.randomness import Randomness
from dphmm.release.admission import Place, Verdict, refusal
from dphmm.release.engine import Ask
from dphmm.release.moment import Line
from dphmm.release.said import Release
from dphmm.release.stream import Stream
from dphmm.scenario import Scenario
from dphmm.scenario.packing import pack, unpack
from dphmm.service.bodies import NewRelease, NewScenario, NewStream
from dphmm.service.settings import ServiceSettings

__all__ = ["Handlers", "show_release"]

Json: TypeAlias = dict[str, Any]

PAGE = 1000
"""How many releases come in one answer."""

LONGEST = 10**20
"""The largest numerator and denominator of a price that came in a request."""


class Handlers:
    """A store, and the scenarios that are in use, ready to release."""

    def __init__(
        self, store: Store, settings: ServiceSettings, randomness: Randomness | None = None
    ) -> None:
        self._store = store
        self._settings = settings
        self._randomness = randomness
        self._ready: LRUCache[tuple[str, str], Scenario] = LRUCache(settings.scenarios)
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
        digest, text = pack(body.scenario, body.states, model, body.edges)
        scenario = self._prepare(client, digest, text)
        new = add_scenario(self._store, digest, text, client=client)
        return _summary(digest, scenario), new

    def scenarios(self, client: str) -> Json:
        """The client's scenarios."""
        return {"scenarios": list_scenarios(self._store, client=client)}

    def scenario(self, client: str, digest: str) -> Json:
        """One scenario's summary."""
        return _summary(digest, self._find(client, digest))

    def begin(self, client: str, digest: str, person: str, body: NewStream) -> Json:
        """Make a person known."""
        scenario = self._find(client, digest)
        clock = scenario.settings.clock.law
        budget = None if body.budget is None else _limit(body.budget, clock)
        self._store.begin(person, client=client, budget=budget)
        slot = self._place(scenario, client, person).latest
        time = None if slot is None else scenario.settings.clock.time_of(slot)
        return {"person": person, "scenario": digest, "time": time, "slot": slot}

    def has_ready(self, client: str, digest: str) -> bool:
        """Whether a scenario is in memory, so that `ask` does not wait for the store."""
        return (client, digest) in self._ready

    def ask(self, client: str, digest: str, person: str, body: NewRelease) -> tuple[Scenario, Ask]:
        """What the engine is asked for a release; what is wrong with it alone is said here."""
        scenario = self._find(client, digest)
        ask = Ask(
            terms=scenario.terms,
            people=[check_name(person, "person")],
            times=np.array([scenario.settings.clock.slot_of(body.time)], dtype=np.int64),
            states=np.array([_state(scenario, body.state)], dtype=np.int64),
            prices=None if body.epsilon is None else [self._price(scenario, body.epsilon)],
            client=client,
            create=False,
        )
        return scenario, ask

    def _price(self, scenario: Scenario, given: Exact) -> Fraction:
        """A release's own price, which is at most what the service allows."""
        price, own = _bounded(given, "epsilon"), scenario.terms.epsilon
        most = max(own, as_epsilon(self._settings.largest_epsilon or own))
        if price > most:
            raise ArgumentError(
                f"epsilon must be at most {as_text(most)} for a release of this scenario here, "
                f"got {given!r:.40}"
            )
        return price

    def releases(self, client: str, digest: str, person: str, after: str | None) -> Json:
        """The answers after a time, with their estimates."""
        scenario = self._find(client, digest)
        slot = None if after is None else scenario.settings.clock.slot_of(after)
        line = Line(client, person, scenario.terms.query)
        if self._place(scenario, client, person).is_elsewhere(scenario.terms.plane):
            raise refusal(Verdict.ELSEWHERE)
        found = self._store.answers(line, after=slot, most=PAGE + 1)
        page = [show_release(scenario, one.release(), True) for one in found[:PAGE]]
        return {"releases": page, "next": page[-1]["time"] if len(found) > PAGE else None}

    def track(self, client: str, digest: str, person: str) -> Json:
        """The smoothed track."""
        scenario = self._find(client, digest)
        stream = self._stream(scenario, client, person)
        smoothed = stream.smoothed()
        slots = list(range(stream.time - len(smoothed) + 1, stream.time + 1))
        return {
            "times": [scenario.settings.clock.time_of(slot) for slot in slots],
            "slots": slots,
            "track": scenario.in_places(smoothed).tolist() if slots else [],
        }

    def privacy(self, client: str, digest: str, person: str) -> Json:
        """What everything said to the scenario's question costs."""
        stream = self._stream(self._find(client, digest), client, person)
        since, _ = stream._said_from
        facts = stream.statement().plain()
        if since == stream.began:
            return {**facts, "since": None}
        text = f"After slot {since}, where this scenario was adopted:\n{facts['text']}"
        return {**facts, "since": since, "text": text}

    def ledger(self, client: str, person: str) -> Json:
        """What was spent on a person, on every question."""
        ledger = self._store.ledger(person, client=client)
        budget = ledger.limit
        known = budget is not None and not any(window.timed for window in budget.windows)
        return {
            "person": person,
            "spent": str(ledger.spent),
            "budget": None if budget is None else str(budget),
            "remaining": str(ledger.remaining) if known else None,
            "entries": [
                {
                    "slot": entry.time,
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
        stone = self._store.erase(person, client=client)
        return {"spent": str(stone.spent), "slots": dict(stone.times)}

    def _find(self, client: str, digest: str) -> Scenario:
        with self._guard:
            ready = self._ready.get((client, digest))
        if ready is not None:
            return ready
        return self._prepare(client, digest, find_scenario(self._store, digest, client=client))

    def _prepare(self, client: str, digest: str, text: str) -> Scenario:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a coarse lattice is the scenario's own choice
            scenario = unpack(text)
            # The first hull and the compiled code take seconds: not while others wait.
            terms = scenario.terms
            terms.stream(terms.begin("", "nobody", 1)).release(0)
        with self._guard:
            # Another thread may have been faster: all should share one plan and what it has met.
            return self._ready.setdefault((client, digest), scenario)

    def _place(self, scenario: Scenario, client: str, person: str) -> Place:
        (place,) = self._store.places([Line(client, person, scenario.terms.query)])
        if not place.known:
            raise NotFoundError("person must be one of the store, got another")
        return place

    def _stream(self, scenario: Scenario, client: str, person: str) -> Stream:
        """A person's stream, to be read."""
        place = self._place(scenario, client, person)
        standing = place.standing
        steps = 0 if standing is None else standing.time - standing.began
        if steps * len(scenario.states) > self._settings.largest_track:
            raise TooLargeError("the stream is too long for this; read its releases instead")
        return scenario.stream(
            person,
            book=self._store,
            client=client,
            time=place.latest or 0,  # for somebody about whom nothing was said
            randomness=self._randomness,
        )


def _bounded(given: Exact, argument: str) -> Fraction:
    """A price as a fraction whose parts stay small, before anything is computed with it."""
    price = as_epsilon(given, argument)
    if max(price.denominator, price.numerator) > LONGEST:
        raise ArgumentError(
            f"{argument} must be a fraction with at most 20 digits above and below, "
            f"got {given!r:.40}"
        )
    return price


def _limit(given: Exact, clock: str) -> Limit:
    """A limit whose amounts stay small and whose windows are whole steps of a clock."""
    limit = Limit.read(given, "budget")
    totals = [] if limit.total is None else [limit.total]
    for amount in (*totals, *(window.amount for window in limit.windows)):
        _bounded(amount, "budget")
    limit.in_steps(clock, "budget")
    return limit


def _state(scenario: Scenario, given: int | str | list[float | int]) -> int:
    """The true state's number. The one who sent a wrong one learns that, and nobody else."""
    try:
        if isinstance(given, int) and 0 <= given < len(scenario.states):
            return given
        if isinstance(given, str) or (isinstance(given, list) and len(given) == 2):
            return scenario.state_of(given)
    except (DphmmError, OverflowError):
        pass
    raise ArgumentError("state must be a number or label of a state, or two finite coordinates")


def _summary(digest: str, scenario: Scenario) -> Json:
    settings = scenario.settings
    return {
        "id": digest,
        "name": scenario.name,
        "states": len(scenario.states),
        "dimension": scenario.query.dimension,
        "epsilon": str(settings.epsilon),
        "limit": None if settings.limit is None else str(settings.limit),
        "speaks": settings.speaks,
    }


def show_release(scenario: Scenario, release: Release, repeated: bool) -> Json:
    """An answer as the client reads it; null where nothing was said."""
    said = [release.estimate] if release.silent else [release.estimate, release.answer]
    estimate, *answer = scenario.in_places(said).tolist()
    return {
        "time": scenario.settings.clock.time_of(release.time),
        "slot": release.time,
        "silent": release.silent,
        "answer": answer[0] if answer else None,
        "lattice": [int(number) for number in release.lattice] if answer else None,
        "estimate": estimate,
        "epsilon": str(release.epsilon),
        "statement": release.statement,
        "repeated": repeated,
    }
