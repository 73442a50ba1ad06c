"""The work behind each route: blocking calls on the store, for threads of a pool."""

from __future__ import annotations

import pickle
import threading
import time
import warnings
from fractions import Fraction

import numpy as np
from cachetools import LRUCache

from dphmm.books import Store
from dphmm.books.acts import record_act
from dphmm.books.quotas import some_people
from dphmm.books.scenarios import add_scenario, find_scenario, list_scenarios
from dphmm.cost.limit import Limit
from dphmm.errors import ArgumentError, DphmmError, NotFoundError, TooLargeError, check_name
from dphmm.geometry.exact import Exact, as_epsilon, as_text
from dphmm.noise.randomness import Randomness
from dphmm.release import engine
from dphmm.release.admission import Place, check_fit
from dphmm.release.engine import Ask
from dphmm.release.moment import Line
from dphmm.release.stream import Stream
from dphmm.scenario import Scenario
from dphmm.scenario.packing import pack, unpack
from dphmm.service.access import RefusedError
from dphmm.service.batches import Batched, read_rows, show_rows
from dphmm.service.bodies import NewRelease, NewScenario, NewStream
from dphmm.service.quotas import Quota
from dphmm.service.settings import ServiceSettings
from dphmm.service.showing import (
    Json,
    Released,
    read_body,
    released,
    show_release,
    show_scenario,
)

__all__ = ["Handlers"]

PAGE = 1000
"""How many releases, entries or people come in one answer."""

LONGEST = 10**20
"""The largest price, and the finest decimal, that came in a request."""

COARSE = 1000
"""The largest denominator of a price that is no decimal: sums of many have denominators, too."""

KEPT = 4
"""Scenarios that a worker keeps ready."""

SMALL_STATES = 2000
SMALL_BYTES = 2**23
SMALL_SECONDS = 0.25
"""A scenario with more, or whose first answer takes longer, is not kept where others wait."""


class Handlers:
    """A store, and the scenarios that are in use, ready to release.

    In the service only what is short is done with small scenarios that a worker has prepared; the
    workers, whose work may be `long`, have handlers of their own.
    """

    def __init__(
        self,
        store: Store,
        settings: ServiceSettings,
        randomness: Randomness | None = None,
        *,
        long: bool = False,
    ) -> None:
        self._store = store
        self._settings = settings
        self._randomness = randomness
        self._long = long
        self._ready: LRUCache[tuple[str, str], Scenario | None] = LRUCache(
            KEPT if long else settings.scenarios
        )
        self._guard = threading.Lock()
        self._seconds: dict[tuple[str, str], float] = {}
        """What preparing each took."""
        self._quota = Quota(store, settings.most_people)

    def is_known(self, client: str, digest: str) -> bool:
        """Whether a scenario has been looked up."""
        return (client, digest) in self._ready

    def is_small(self, client: str, digest: str) -> bool:
        """Whether a scenario is at hand here."""
        with self._guard:
            return self._ready.get((client, digest)) is not None

    def keep(self, client: str, digest: str, scenario: Scenario | None) -> None:
        """Remember what a worker made of a scenario: itself, or None if it stays there."""
        with self._guard:
            self._ready[client, digest] = scenario

    def load(self, client: str, digest: str) -> Scenario | None:
        """A scenario that is small enough to be kept by the service, prepared; for workers."""
        scenario = self._find(client, digest)
        if self._seconds[client, digest] > SMALL_SECONDS or len(scenario.states) > SMALL_STATES:
            return None
        return scenario if len(pickle.dumps(scenario)) <= SMALL_BYTES else None

    def add_scenario(self, client: str, content: bytes) -> tuple[Json, bool, Scenario | None]:
        """Check and keep a scenario; the same one again changes nothing. See also `load`."""
        body = read_body(NewScenario, content)
        if (body.transition is None) == (body.model is None):
            raise ArgumentError("transition or model must be given, and not both")
        model = body.model if body.transition is None else body.transition
        digest, text = pack(body.scenario, body.states, model, body.edges)
        scenario = self._prepare(client, digest, text)
        if len(scenario.states) > self._settings.most_states:
            raise TooLargeError(
                f"states must be at most {self._settings.most_states} here, "
                f"got {len(scenario.states)}"
            )
        _bounded(scenario.terms.epsilon, "epsilon")
        most = self._settings.most_scenarios, self._settings.most_bytes
        new = add_scenario(self._store, digest, text, client=client, most=most)
        return show_scenario(digest, scenario), new, self.load(client, digest)

    def scenarios(self, client: str) -> Json:
        """The client's scenarios."""
        return {"scenarios": list_scenarios(self._store, client=client)}

    def scenario(self, client: str, digest: str) -> Json:
        """One scenario's summary."""
        return show_scenario(digest, self._find(client, digest))

    def begin(self, client: str, digest: str, person: str, body: NewStream, who: str) -> Json:
        """Make a person known."""
        scenario = self._find(client, digest)
        clock = scenario.settings.clock.law
        budget = None if body.budget is None else _limit(body.budget, clock)
        line = Line(client, check_name(person, "person"), scenario.terms.query)
        (place,) = self._store.places([line])
        check_fit(place, clock, scenario.terms.plane)
        if not place.known:
            self._quota.take(client)
        if budget is not None and place.limit is None:
            record_act(self._store, who, client, "budget")
        self._store.begin(person, client=client, budget=budget)
        slot = self._place(scenario, client, person).latest
        time = None if slot is None else scenario.settings.clock.time_of(slot)
        return {"person": person, "scenario": digest, "time": time, "slot": slot}

    def ask(self, client: str, digest: str, person: str, body: NewRelease) -> tuple[Scenario, Ask]:
        """What the engine is asked for a release; what is wrong with it alone is said here."""
        scenario = self._find(client, digest)
        slot, state, price = self._row(scenario, body)
        ask = Ask(
            terms=scenario.terms,
            people=[check_name(person, "person")],
            times=np.array([slot], dtype=np.int64),
            states=np.array([state], dtype=np.int64),
            prices=None if price is None else [price],
            client=client,
            create=False,
        )
        return scenario, ask

    def release(self, client: str, digest: str, person: str, body: NewRelease) -> Released:
        """A release by itself, however long its way is; for workers."""
        scenario, ask = self.ask(client, digest, person, body)
        return released(scenario, engine.release(self._store, [ask], self._randomness)[0])

    def batch(self, client: str, digest: str, content: bytes, kind: str) -> Batched:
        """Many releases by one commit, each row with its answer or its problem; for workers."""
        rows = read_rows(content, kind)
        scenario = self._find(client, digest)
        taken: list[tuple[int, str, int, int, Fraction | None]] = []
        faults: dict[int, DphmmError] = {}
        for number, row in enumerate(rows):
            try:
                name = check_name(row.person, "person")
                taken.append((number, name, *self._row(scenario, row)))
            except DphmmError as fault:
                faults[number] = fault
        answered = None
        if taken:
            _, people, slots, states, prices = zip(*taken, strict=True)
            own = scenario.terms.epsilon
            ask = Ask(
                terms=scenario.terms,
                people=people,
                times=np.array(slots, dtype=np.int64),
                states=np.array(states, dtype=np.int64),
                prices=[price or own for price in prices] if any(prices) else None,
                client=client,
                create=False,
            )
            (answered,) = engine.release(self._store, [ask], self._randomness)
        return show_rows(scenario, rows, answered, [row[0] for row in taken], faults, kind)

    def _row(self, scenario: Scenario, row: NewRelease) -> tuple[int, int, Fraction | None]:
        """The slot, the state and the own price of a row."""
        price = None if row.epsilon is None else self._price(scenario, row.epsilon)
        return scenario.settings.clock.slot_of(row.time), _state(scenario, row.state), price

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
        self._place(scenario, client, person)
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

    def ledger(self, client: str, person: str, after: int) -> Json:
        """What was spent on a person, on every question; entries after so many."""
        ledger = self._store.ledger(person, client=client)
        budget, end = ledger.limit, after + PAGE
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
                for entry in ledger.entries[after:end]
            ],
            "next": end if len(ledger.entries) > end else None,
        }

    def people(self, client: str, after: str) -> Json:
        """Some of the client's people."""
        if after:
            check_name(after, "after")
        found = some_people(self._store, client, after, PAGE + 1)
        return {"people": found[:PAGE], "next": found[PAGE - 1] if len(found) > PAGE else None}

    def erase(self, client: str, person: str, who: str) -> Json:
        """Delete all but a tombstone; that it will be done is written down first."""
        (place,) = self._store.places([Line(client, check_name(person, "person"), "")])
        if place.known:
            record_act(self._store, who, client, "erase")
        stone = self._store.erase(person, client=client)
        return {"spent": str(stone.spent), "slots": dict(stone.times)}

    def _find(self, client: str, digest: str) -> Scenario:
        with self._guard:
            ready = self._ready.get((client, digest))
        if ready is not None:
            return ready
        if not self._long:  # it was let go of meanwhile
            raise RefusedError(503, "the service is busy; ask again in a second", retry_after=1)
        return self._prepare(client, digest, find_scenario(self._store, digest, client=client))

    def _prepare(self, client: str, digest: str, text: str) -> Scenario:
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a coarse lattice is the scenario's own choice
            scenario = unpack(text)
            terms = scenario.terms
            terms.stream(terms.begin("", "nobody", 1)).release(0)
        with self._guard:
            self._seconds[client, digest] = time.process_time() - began
            self._ready[client, digest] = scenario
        return scenario

    def _place(self, scenario: Scenario, client: str, person: str) -> Place:
        (place,) = self._store.places([Line(client, person, scenario.terms.query)])
        if not place.known:
            raise NotFoundError("person must be one of the store, got another")
        check_fit(place, scenario.terms.clock, scenario.terms.plane)
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
    """A price as a fraction whose parts stay small, as do those of any sum of such prices."""
    price = as_epsilon(given, argument)
    if price > LONGEST or (LONGEST % price.denominator and price.denominator > COARSE):
        raise ArgumentError(
            f"{argument} must be a decimal with at most 20 places, or a fraction with a "
            f"denominator of at most {COARSE}, got {given!r:.40}"
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
