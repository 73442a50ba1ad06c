"""One person's releases over time: the paper's Algorithm 2.

A `Stream` knows only public things: model, plan, epsilon, and what it has said. The true
state enters `release`, is handed to the noise in one line, and is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import FloatArray, Mask, ObjectArray
from dphmm.chain.belief import Belief, Start
from dphmm.chain.estimates import Estimate, check_estimate, estimate_of
from dphmm.chain.markov import Chain
from dphmm.cost.ledger import ELSEWHERE, Entry, Ledger
from dphmm.cost.sharing import UNSHARED, Single
from dphmm.cost.whereabouts import Surroundings
from dphmm.cost.words import release_statement
from dphmm.errors import ArgumentError, check_name, expect
from dphmm.geometry.exact import Exact, as_epsilon, whole
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from dphmm.geometry.states import as_array
from dphmm.noise.mechanism import read_lattice
from dphmm.noise.randomness import Randomness, source_of
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Plan, Protected
from dphmm.release.also import protected_also
from dphmm.release.lagging import Estimates
from dphmm.release.moment import Line, check_client, check_parts, law_of, moment_bytes, read_state
from dphmm.release.said import Release, Said, add_up_said, believed, likelihoods, silence
from dphmm.release.schedule import Schedule, expected_error, fills_gaps, price_of
from dphmm.release.standing import Standing, check_law

if TYPE_CHECKING:
    from dphmm.cost.statement import PrivacyStatement

__all__ = ["Stream"]

MOST_STEPS = 10**7


class Stream(Single):
    """Private answers about one person's state, one step at a time.

    Several threads may share a stream: each release is a moment of its own.

    Args:
        model: How states follow each other.
        plan: Who must look like whom, what is asked, which noise answers.
        epsilon: The price of a release, unless `release` is given another.
        start: What everybody knows before the first step: a state, probabilities or a `Belief`.
            The first release comes after one transition.
        time: The slot of the clock at which that is known; needed for keyed noise, so that
            two days never share it. Without one, slots count from 0.
        person: Who it is about; needed for keyed noise.
        client: Whose person it is, in a service.
        ledger: What was said before and the limit; a new one without a limit by default.
        schedule: When to speak; at every step by default.
        randomness: The operating system's secure source by default; `KeyedRandomness(key)` for
            answers that can be repeated, `SeededRandomness(rng)` for experiments.
        law: The fingerprint of everything public that shapes answers, if it is more than
            model, plan and start.
        estimate: What stands for the belief: its "mean", or its geometric "median".

    >>> from dphmm import MarkovModel, PolicyGraph, Query
    >>> model = MarkovModel([[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]])
    >>> plan = Plan(PolicyGraph.complete(3), Query([[0, 0], [3, 0], [0, 4]]))
    >>> stream = Stream(model, plan, epsilon=1, start=0)
    >>> stream.release(2).time, stream.possible.tolist()
    (1, [False, True, True])
    """

    def __init__(
        self,
        model: Chain,
        plan: Plan,
        *,
        epsilon: Exact,
        start: Start,
        time: int | None = None,
        person: str = "",
        client: str = "",
        ledger: Ledger | None = None,
        schedule: Schedule | None = None,
        randomness: Randomness | None = None,
        law: bytes | None = None,
        estimate: Estimate = "mean",
    ) -> None:
        check_parts(model, plan, randomness, time, schedule, law)
        if not isinstance(person, str) or person:
            check_name(person, "person")
        self._randomness = source_of(randomness, person)
        self.model, self.plan, self.query = model, plan, plan.query
        self.estimate, self.schedule = check_estimate(estimate), schedule
        self.epsilon = price_of(schedule, as_epsilon(epsilon))
        self.person, self.client = person, check_client(client)
        self.ledger = Ledger() if ledger is None else ledger
        expect(self.ledger, Ledger, "ledger")
        self.start = model.known(start)
        self.began = self.time = 0 if time is None else whole(time, "time", None)
        self.prior = self.posterior = self.start
        self.said: list[Said] = []
        """What was said since the start, or since the standing that the stream was resumed from."""
        self._said_from, self._law = (self.began, self.start), law
        self._step: Protected | None = None
        self._totals: tuple[Fraction, Fraction | float] = Fraction(0), Fraction(0)
        """Of this line: every epsilon, and the same for the worst pair of possible states."""
        self._totalled = 0
        """How many of `said` are in the totals: they are added when somebody asks."""
        self._answered: tuple[str, ...] = ()
        self._spoke: int | None = None
        self._recent: tuple[tuple[int, Fraction], ...] = ()
        self._clock = ""
        self._plane: str | None = None
        self._also: dict[str, Plan] = {}
        self._share("stream")
        self._locate: Callable[[Any], int] | None = None
        """How labels and coordinates become states; a scenario's."""
        self._rule = schedule
        """When something is said about the person, also where a book decides that."""
        self._around = Surroundings(None)
        """Where states are, and the hours of slots; a scenario's."""

    @classmethod
    def resume(cls, standing: Standing, model: Chain, plan: Plan, **options: Any) -> Self:
        """A stream that goes on where another stood.

        Args:
            standing: Where it stood; it must be of the same law.
            model: See `Stream`.
            plan: See `Stream`.
            options: The other arguments of `Stream`; person, client and time are the standing's.
        """
        expect(standing, Standing, "standing")
        client, person, _ = standing.line
        stream = cls(model, plan, client=client, person=person, time=standing.began, **options)
        return stream._stand_at(standing)

    def _like(self, standing: Standing, randomness: Randomness | None) -> Self:
        """What `resume` gives for another standing, where these parts are known to fit.

        For the engine, whose book counts and remembers: nobody else ever has this stream.
        """
        stream = object.__new__(type(self))
        client, person, _ = standing.line
        vars(stream).update(vars(self), client=client, person=person, began=standing.began)
        stream._randomness, stream.ledger = source_of(randomness, person), ELSEWHERE
        stream.said, stream._also, stream._lock = [], {}, UNSHARED
        return stream._stand_at(standing)

    def _stand_at(self, standing: Standing) -> Self:
        check_law(standing, self.law, self.model.n_states)
        self.time, self.prior, self.posterior = standing.time, standing.belief, standing.belief
        self._said_from = standing.time, standing.belief
        self._totals = standing.spent, standing.constrained
        self._answered, self._spoke = standing.answered, standing.spoke
        self._recent, self._clock, self._plane = standing.recent, standing.clock, standing.plane
        return self

    @property
    def line(self) -> Line:
        """Whose releases these are, and which question they answer."""
        return Line(self.client, self.person, self.query.name)

    @property
    def law(self) -> bytes:
        """The fingerprint of everything public that shapes answers."""
        if self._law is None:
            self._law = law_of(self.model, self.plan, self.start, schedule=self.schedule)
        return self._law

    @property
    def standing(self) -> Standing:
        """Where the stream stands, to be resumed later or elsewhere."""
        with self._lock:
            new, self._totalled = self.said[self._totalled :], len(self.said)
            self._totals = add_up_said(self._totals, new)
            standing = Standing(
                *(self.line, self.law, self.began),
                time=self.time,
                belief=self.posterior,
                spent=self._totals[0],
                constrained=self._totals[1],
                answered=self._answered,
                spoke=self._spoke,
                clock=self._clock,
                plane=self._plane,
            )
            said, width = ((one.time, one.epsilon) for one in self.said), self.ledger.width
            return standing.remember([*self._recent, *said], width) if width else standing

    @property
    def possible(self) -> Mask:
        """The states that are possible now, given everything said: C_t."""
        return self.model.place_mask(self.posterior.possible)

    @property
    def hull(self) -> SensitivityHull | None:
        """The body of the latest noise."""
        return None if self._step is None else self._step.body

    @property
    def policy(self) -> PolicyGraph:
        """The policy as restricted and repaired at the latest release."""
        return self.plan.policy if self._step is None else self._step.policy

    def release(self, true_state: Any, epsilon: Exact | None = None) -> Release:
        """Move one step and answer the query about the state there (Algorithm 2).

        Where the schedule is silent nothing is drawn: the release has an estimate and no answer.
        A state outside the possible set is answered as the possible one with the nearest
        answer, and nothing records that it was. Refused, before any noise is drawn, when
        the ledger's limit does not allow the price.

        Args:
            true_state: The state's number; in a scenario also its label or coordinates. Secret:
                it is in nothing that comes back.
            epsilon: The price, if not the stream's own.
        """
        with self._lock:
            prior = self.model.predict(self.posterior, self.time + 1)
            if self._speaks(prior):
                step = self.plan.at(self.plan.to_protect(prior, self.model.memory))
                return self._release(true_state, epsilon, self.time + 1, prior, step)
            self._state(true_state)  # one that is none is refused at every step alike
            return self._pass(prior)

    def release_also(self, true_state: Any, query: Query, epsilon: Exact | None = None) -> Release:
        """Answer another query about the present step; the prices add up.

        What hides a state from the first query hides it from the others too: the edges that
        protected the step so far, repaired and implied, bind this query (Theorem 7.1 does not
        hold without that, see the notes on the paper).

        Args:
            true_state: See `release`.
            query: The other question, with a name of its own.
            epsilon: The price, if not the stream's own.
        """
        with self._lock:
            if self.time == self.began:
                raise ArgumentError("release_also must follow a step, got none; call release first")
            expect(query, Query, "query")
            if query.name in (self.query.name, *self._answered):
                raise ArgumentError(
                    f"query must be new at time {self.time}, got one already answered"
                )
            step = protected_also(self, query)
            return self._release(true_state, epsilon, self.time, self.posterior, step)

    def repeat(self, lattice: ArrayLike, epsilon: Exact | None = None) -> Release:
        """Move one step and say again the answer that was given there, or nothing.

        Nothing is drawn and nothing is recorded: this is how published answers lead a reader,
        or a stream that is taken up again, to where they stand.

        Args:
            lattice: The answer on the query's lattice; empty for a step that was silent.
            epsilon: The price that it had, if not the stream's own.
        """
        with self._lock:
            prior = self.model.predict(self.posterior, self.time + 1)
            if not as_array(lattice, "lattice").size:
                return self._pass(prior)
            step = self.plan.at(self.plan.to_protect(prior, self.model.memory))
            own = epsilon is None or step.is_lone  # where only one state is possible it was 0
            price = self.epsilon if own else as_epsilon(epsilon)  # type: ignore[arg-type]
            said = read_lattice(lattice, self.query)
            return self._say(said, step.price(price), self.time + 1, prior, step, None)

    def skip(self, steps: int = 1) -> None:
        """Move without a release: nothing is said, nothing is spent, the belief spreads.

        Args:
            steps: How many.
        """
        if whole(steps, "steps") > MOST_STEPS:
            raise ArgumentError(f"steps must be at most {MOST_STEPS}, got {steps!r}")
        with self._lock:
            for _ in range(steps):
                self._move(self.model.predict(self.posterior, self.time + 1))

    def estimates(self, *, lag: int, estimate: Estimate | None = None) -> Estimates:
        """Estimates that wait: of every step of `observations`, final `lag` steps later.

        Args:
            lag: How many later steps count; 0 for what was known at the time.
            estimate: What stands for a belief, if not the stream's own.
        """
        return Estimates._follow(self, lag, estimate)

    def smoothed(self) -> FloatArray:
        """The estimate at every step of `observations`, given everything said until now."""
        return np.array(
            [estimate_of(one, self.query.values, self.estimate) for one in self.smooth()]
        )

    def smooth(self) -> list[Belief]:
        """The belief at every step of `observations`, given everything said until now."""
        time, start = self._said_from
        return self.model.smooth(self.observations(), start=start, time=time)

    def observations(self) -> list[FloatArray | None]:
        """The log-likelihood of what was said at each step, for the model's own inference."""
        with self._lock:
            return likelihoods(self.said, self._said_from[0], self.time, self.plan.delta)

    def statement(self, *, width: int = 10) -> PrivacyStatement:
        """What everything said has cost, in words and numbers; since it was resumed, if it was.

        Args:
            width: The steps of the window that it tells about.
        """
        from dphmm.release.stating import state_costs

        with self._lock:
            return state_costs(self, width)

    def _speaks(self, prior: Belief) -> bool:
        """Whether something is said at the next step, for which `prior` is believed."""
        return self.schedule is None or self.schedule.speaks(
            self.time + 1, self._spoke, lambda: expected_error(self.model, prior, self.query.values)
        )

    def _pass(self, prior: Belief) -> Release:
        """Move one step and say nothing: the estimate is what follows from before."""
        estimate = self.model.estimate(prior, self.query.values, self.estimate)
        self._move(prior)
        return silence(self.time, estimate, self._randomness.private)

    def _move(self, prior: Belief) -> None:
        # In one line: between a time and its belief nobody may be stopped and go on.
        self.time, self.prior, self.posterior, self._answered = self.time + 1, prior, prior, ()

    def _release(
        self, true_state: Any, epsilon: Exact | None, time: int, prior: Belief, step: Protected
    ) -> Release:
        price = self.epsilon if epsilon is None else as_epsilon(epsilon)
        state = self._state(true_state)
        name = step.query.name
        if self.ledger.has(time, name) or (time == self.time and name in self._answered):
            raise ArgumentError(f"query must be new at time {time}, got one already answered")
        price = step.price(price)
        if price:
            self.ledger.check(price, time)
        context: tuple[bytes, ...] = ()
        if self._randomness.keyed:
            moment = moment_bytes(self.client, self.person, time, name)
            context = (moment, self.law)
        if step.is_lone:
            lattice = step.known_answer
        else:
            noise = step.mechanism(price)
            lattice = noise.sample_lattice(state, self._randomness, context, step.possible)
        entry = Entry(time, name, price, step.constrained(price))
        return self._say(lattice, price, time, prior, step, entry)

    def _say(
        self,
        lattice: ObjectArray,
        price: Fraction,
        time: int,
        prior: Belief,
        step: Protected,
        entry: Entry | None,
    ) -> Release:
        """Write an answer down, then believe it: all of it is public."""
        delta, memory = self.plan.delta, self.model.memory
        posterior, estimate = believed(prior, step, price, lattice, delta, self.estimate, memory)
        now = (*(self._answered if time == self.time else ()), step.query.name)
        zeros, filled = self.model.has_zeros_into(time), fills_gaps(self._rule)
        text = release_statement(step, price, delta=delta, stated_zeros=zeros, filled=filled)
        release = Release(
            time=time,
            answer=step.query.in_units(lattice),
            lattice=lattice,
            estimate=estimate,
            epsilon=price,
            statement=text,
            private=self._randomness.private,
        )
        if entry is not None:
            self.ledger.record(entry)
        spoke = time if step.query.name == self.query.name else self._spoke
        self.time, self.prior, self.posterior, self._step = time, prior, posterior, step
        self._answered, self._spoke = now, spoke
        self.said.append(Said(time, step.query, price, lattice, step))
        return release

    def _state(self, true_state: Any) -> int:
        return read_state(true_state, self.query.n_states, self._locate)

    def __repr__(self) -> str:
        return f"Stream(person={self.person!r}, time={self.time}, {self.ledger!r})"
