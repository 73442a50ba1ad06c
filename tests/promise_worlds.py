"""Small worlds in which everything can be enumerated, made at random."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

import numpy as np

from dphmm import (
    Chain,
    Ledger,
    MarkovModel,
    MemoryModel,
    Plan,
    PolicyGraph,
    Query,
    Schedule,
    SeededRandomness,
    Standing,
    Stream,
    TimeVaryingModel,
)
from dphmm.errors import CollapsedAnswersWarning
from tests.promise_answers import CONDITION, Answer


@dataclass
class World:
    """A small world: what everybody knows about it, and what was said in it."""

    matrices: list[np.ndarray]
    """The models' own moves, one matrix for each of the models that take turns."""
    anywhere: list[float]
    """How often each of the models goes anywhere."""
    current: np.ndarray
    """The place of each state of the models: of each place one state, or several with memory."""
    fresh: np.ndarray
    """The state of somebody who is at a place without a past."""
    every: int
    """How many of the models' moves are one step."""
    start: np.ndarray
    links: set[tuple[int, int]]
    plan: Plan
    stream: Stream
    answers: list[Answer] = field(default_factory=list)
    resumed: int = 0
    """How many answers came before the stream was last resumed."""
    adopted: bool = False
    """Whether those followed another law, which may have called other states possible."""
    skipped: int = 0
    silent: int = 0
    illegal: int = 0

    @property
    def n(self) -> int:
        return len(self.start)

    @property
    def steps(self) -> int:
        return self.answers[-1].time

    @property
    def repaired(self) -> set[tuple[int, int]]:
        """The links, and those that repair added for the first question of a step."""
        firsts = {one.time: one.step for one in reversed(self.stream.said)}
        added = (pair for step in firsts.values() for pair in step.added.tolist())
        return self.links | {(min(pair), max(pair)) for pair in added}

    def step(self, time: int, own: bool = False) -> np.ndarray:
        """The probabilities of the models' moves that together lead into a time."""
        whole = np.eye(len(self.current))
        for move in range((time - 1) * self.every + 1, time * self.every + 1):
            turn = move % len(self.matrices)
            share = 0.0 if own else self.anywhere[turn]
            landing = np.bincount(self.fresh, minlength=len(self.current)) / self.n
            whole = whole @ ((1 - share) * self.matrices[turn] + share * landing)
        return whole

    def moves(self, time: int, own: bool = False) -> np.ndarray:
        """Which moves between states lead into a time."""
        possible: np.ndarray = self.step(time, own) > 0
        return possible

    def entered(self) -> np.ndarray:
        """The states in which somebody may start."""
        return np.isin(np.arange(len(self.current)), self.fresh[self.start])

    @property
    def stated(self) -> bool:
        """Whether somebody stated that a move is impossible."""
        return not all(
            anywhere or len(set(self.current[row])) == self.n
            for matrix, anywhere in zip(self.matrices, self.anywhere, strict=True)
            for row in matrix > 0
        )

    def at(self, time: int) -> list[Answer]:
        return [answer for answer in self.answers if answer.time == time]

    def release(self, state: int, epsilon: Fraction | None = None) -> None:
        release = self.stream.release(state, epsilon)
        if release.silent:
            self.silent += 1
            assert release.epsilon == 0
            return
        self.answers.append(Answer.of(self.stream.said[-1], release))

    def release_also(self, state: int, query: Query, epsilon: Fraction | None = None) -> None:
        release = self.stream.release_also(state, query, epsilon)
        self.answers.append(Answer.of(self.stream.said[-1], release))

    def resume(self) -> None:
        """Go on from bytes, as a book does."""
        old = self.stream
        self.stream = Stream.resume(
            Standing.from_bytes(old.standing.to_bytes()),
            old.model,
            old.plan,
            epsilon=old.epsilon,
            start=old.start,
            ledger=old.ledger,
            randomness=old._randomness,
            schedule=old.schedule,
        )
        self.resumed = len(self.answers)

    def covered(self, number: int) -> set[int]:
        """The states that an answer's sentence is about, given the answers before it.

        Without its condition somebody may have come from anywhere, and only the answers at the
        same time say something about where they are.
        """
        answer = self.answers[number]
        condition = CONDITION in answer.text
        alive = self.entered() if condition else np.ones(len(self.current), dtype=bool)
        for time in range(1, answer.time + 1):
            if condition:
                alive = self.moves(time)[alive].any(axis=0)
            elif time < answer.time:
                continue
            for other in self.answers[:number]:
                if other.time == time:
                    alive &= np.array([other.gives(s) for s in range(self.n)])[self.current]
        places = set(self.current[alive].tolist())
        return {s for s in places if answer.possible[s]} if self.plan.delta else places

    def paths(self, legal: bool, own: bool = False, first: int = 0) -> np.ndarray:
        """Every path, or every one that the model allows; none that delta has left out.

        Of what a claim counts, that is: of the answers from `first` on.
        """
        claimed = self.answers[first:]
        found: list[tuple[tuple[int, ...], np.ndarray]] = [((), self.entered())]
        for time in range(1, self.steps + 1):
            moves = self.moves(time, own)
            inside = [
                state
                for state in range(self.n)
                if not self.plan.delta or all(a.possible[state] for a in claimed if a.time == time)
            ]
            longer = []
            for path, alive in found:
                reached = moves[alive].any(axis=0) if legal else np.ones_like(alive)
                for state in inside:
                    there = reached & (self.current == state)
                    if there.any():
                        longer.append(((*path, state), there))
            found = longer
        return np.array([path for path, _ in found], dtype=np.int64).reshape(-1, self.steps)


def random_world(seed: int) -> World:
    rng = np.random.default_rng(seed)
    n = int(rng.choice([2, 3, 3, 4, 4, 5]))
    kind = rng.choice(["stated", "learned", "mixed"], p=[0.4, 0.4, 0.2])
    current = fresh = np.arange(n)
    if rng.random() < 0.25:
        sizes = rng.integers(1, 3, size=n)
        current = np.repeat(np.arange(n), sizes)
        fresh = np.cumsum(sizes) - rng.integers(1, sizes + 1)
    matrices, anywhere = [], []
    for turn in range(2 if kind == "mixed" else int(rng.choice([1, 1, 2]))):
        size = len(current)
        moves = rng.random((size, size)) < rng.choice([0.3, 0.6, 1.0], p=[0.5, 0.4, 0.1])
        moves[np.arange(size), rng.integers(size, size=size)] = True
        if size > n and rng.random() < 0.7:
            # Every place follows every place, and yet not every state.
            for here in np.unique(current):
                for there in fresh:
                    moves[rng.choice(np.flatnonzero(current == here)), there] = True
        weights = moves * rng.random((size, size)).clip(0.1)
        matrices.append(weights / weights.sum(axis=1, keepdims=True))
        learned = kind == "learned" or (kind == "mixed" and turn)
        anywhere.append(float(rng.choice([0.01, 0.3])) if learned else 0.0)
    share = rng.choice([0.1, 0.5])
    links = {pair for pair in combinations(range(n), 2) if rng.random() < share}
    policy: PolicyGraph = PolicyGraph(n, sorted(links))
    if rng.random() < 0.2:
        labels = rng.integers(0, 2, n).tolist()
        policy = policy | PolicyGraph.by_category(labels)
        links |= {(a, b) for a, b in combinations(range(n), 2) if labels[a] == labels[b]}
    mechanism = str(rng.choice(["knorm", "knorm", "staircase", "laplace"]))
    plan = Plan(
        policy,
        random_query(rng, n, "place"),
        mechanism=mechanism,
        shape=str(rng.choice(["hull", "hull", "enlarged"])) if mechanism != "laplace" else "hull",
        repair=[None, "min_error", "nearest", "min_area", "optimal"][rng.integers(5)],  # type: ignore[arg-type]
        full_rank=bool(rng.random() < 0.3),
        delta=[0, 0, 0, "0.05", "0.3", "0.6"][rng.integers(6)],
    )
    start = rng.random(n) < rng.choice([0.0, 0.3, 1.0])
    start[rng.integers(n)] = True
    world = make_world(
        matrices, anywhere, start, links, plan, random_epsilon(rng), seed,
        current=current, fresh=fresh, every=int(rng.choice([1, 1, 1, 1, 2, 3])),
        schedule=random_schedule(rng),
    )  # fmt: skip
    walk(world, rng)
    return world


def make_world(
    matrices: list[np.ndarray],
    anywhere: list[float],
    start: np.ndarray,
    links: set[tuple[int, int]],
    plan: Plan,
    epsilon: Fraction = Fraction(1),
    seed: int = 0,
    *,
    current: np.ndarray | None = None,
    fresh: np.ndarray | None = None,
    every: int = 1,
    schedule: Schedule | None = None,
) -> World:
    current = np.arange(len(start)) if current is None else current
    fresh = np.arange(len(start)) if fresh is None else fresh
    models: list[MarkovModel] = [
        MarkovModel(matrix, anywhere=share)
        if len(current) == len(start)
        else MemoryModel(matrix, current, fresh, anywhere=share)
        for matrix, share in zip(matrices, anywhere, strict=True)
    ]
    chain: Chain = models[0] if len(models) == 1 else TimeVaryingModel(models)
    stream = Stream(
        chain if every == 1 else chain.every(every),
        plan,
        epsilon=epsilon,
        start=start / start.sum(),
        ledger=Ledger(),
        randomness=SeededRandomness(np.random.default_rng(seed)),  # a world can be made again
        schedule=schedule,
    )
    return World(matrices, anywhere, current, fresh, every, start, links, plan, stream)


def random_schedule(rng: np.random.Generator) -> Schedule | None:
    """When to speak: mostly always, else every second step or when too little is known."""
    if rng.random() < 0.7:
        return None
    if rng.random() < 0.5:
        return Schedule(every=2, phase=int(rng.integers(2)))
    return Schedule(error=float(rng.choice([0.001, 0.5, 3.0])), apart=int(rng.integers(1, 3)))


def random_query(rng: np.random.Generator, n: int, name: str) -> Query:
    values = rng.integers(-9, 10, size=(n, int(rng.choice([1, 2, 2]))))
    if rng.random() < 0.1:
        values[:, 0] = values[0, 0]  # on a line, or all in one place
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapsedAnswersWarning)
        return Query(values, step=[1, 1, 4, 1000, "1/3"][rng.integers(5)], name=name)


def random_epsilon(rng: np.random.Generator) -> Fraction:
    return Fraction(int(rng.integers(1, 8)), int(rng.choice([1, 2, 3, 7, 100])))


def walk(world: World, rng: np.random.Generator) -> None:
    """Release along a path that may be illegal: with skips, further questions, resumptions."""
    longest = {2: 6, 3: 5, 4: 4, 5: 3}[world.n]
    state = int(rng.integers(len(world.current)))
    world.illegal += not world.entered()[state]
    while world.stream.time < longest or len(world.answers) == world.resumed:
        time = world.stream.time + 1
        reached = np.flatnonzero(world.moves(time)[state])
        state = int(rng.choice(reached if rng.random() < 0.7 else len(world.current)))
        world.illegal += state not in reached
        place, said = int(world.current[state]), len(world.answers)
        if time > longest:
            world.stream.schedule = None  # in some worlds it would never speak
        elif world.answers and rng.random() < 0.15:
            world.resume()  # under its own law, which has a schedule
        if rng.random() < 0.15 and time < longest:
            world.stream.skip()
            world.skipped += 1
        else:
            world.release(place, random_epsilon(rng))
        also = int(rng.choice([0, 0, 1, 2]))
        for number in range(also if len(world.answers) > said else 0):
            query = random_query(rng, world.n, f"other {number}")
            world.release_also(place, query, random_epsilon(rng))


# What is special about one


def kinds(world: World) -> set[str]:
    """What is special about a world."""
    answers = world.answers
    times = Counter(answer.time for answer in answers)
    found = {
        "facts": any(CONDITION in answer.text for answer in answers),
        "learned": any(world.anywhere),
        "mixed": any(world.anywhere) and not all(world.anywhere) and world.stated,
        "delta": bool(world.plan.delta),
        "several": max(times.values()) > 1,
        "skips": world.skipped > 0,
        "silent": world.silent > 0,
        "memory": len(world.current) > world.n,
        "remembers": world.stated and not missing_between_places(world),
        "every": world.every > 1,
        "resumed": world.resumed > 0,
        "staircase": any(answer.gamma is not None for answer in answers),
        "lone": any(not sum(answer.possible) > 1 for answer in answers),
        "flat": any("told apart" in answer.text for answer in answers),
        "illegal": world.illegal > 0,
        "time": len(world.matrices) > 1,
        "prices": len({answer.epsilon for answer in answers}) > 1,
        "planar": any(len(answer.lattice) == 2 for answer in answers),
    }
    return {kind for kind, present in found.items() if present}


def missing_between_places(world: World) -> bool:
    """Whether some place never follows another at once, whatever is remembered."""
    merge = np.eye(world.n)[world.current]
    return not all(
        anywhere or (merge.T @ matrix @ merge > 0).all()
        for matrix, anywhere in zip(world.matrices, world.anywhere, strict=True)
    )
