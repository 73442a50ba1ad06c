"""What is public about a step: graph, hull and noise, as a function of the possible set.

Nothing here depends on a true state or on an answer, except through the possible set, so
one plan serves every person of a scenario and remembers the sets it has met.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, get_args

import numpy as np
from cachetools import LRUCache
from numpy.typing import ArrayLike

from dphmm import kernels
from dphmm._types import FloatArray, IntArray, Mask, ObjectArray
from dphmm.chain.belief import Belief
from dphmm.chain.memory import Memory
from dphmm.errors import ArgumentError, expect, expect_one_of
from dphmm.geometry.exact import Exact, as_delta, as_epsilon
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from dphmm.geometry.states import possible_mask
from dphmm.noise.mechanism import Mechanism, body_for, lattice_vector
from dphmm.noise.randomness import encoded
from dphmm.noise.staircase import as_gamma, best_gamma, largest_loss
from dphmm.policy.friends import to_opendp
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.repair import RepairMethod, added_edges
from dphmm.policy.sensitivity import sensitivity_hull

__all__ = ["Plan", "Protected"]

REMEMBERED = 1024
"""How many possible sets a plan keeps: those that it met last."""


@dataclass(frozen=True, eq=False)
class Noise:
    """A hull, the body that its noise uses, and that noise at every epsilon asked for."""

    query: Query
    hull: SensitivityHull
    """The sensitivity hull of a repaired policy."""
    body: SensitivityHull
    """The hull, or a body that contains it."""
    staircase: bool = False
    gamma: Fraction | None = None
    """Of the staircase; None for the best at each epsilon."""
    _made: dict[tuple[int, int], Mechanism] = field(init=False, repr=False, default_factory=dict)

    def mechanism(self, epsilon: Exact) -> Mechanism:
        """The noise at one epsilon, made once."""
        price = _price(epsilon)
        # Not by the fraction itself, whose hash costs as much as the rest of this.
        made = self._made.get(ratio := price.as_integer_ratio())
        if made is None:
            best = self.staircase and self.gamma is None
            gamma = best_gamma(self.body.rank, price) if best else self.gamma
            made = self._made[ratio] = Mechanism(self.query, self.body, price, gamma)
        return made


@dataclass(frozen=True, eq=False)
class Protected:
    """One possible set with the edges that protect it and the noise that follows."""

    possible: Mask
    unrestricted: PolicyGraph
    added: IntArray
    """The edges that repair added to the policy on this set."""
    noise: Noise
    sentences: dict[Any, str] = field(init=False, repr=False, default_factory=dict)
    """What was said of releases at this step; a stream says it again and again."""
    _costs: dict[Any, Fraction | float] = field(init=False, repr=False, default_factory=dict)

    @cached_property
    def policy(self) -> PolicyGraph:
        """The policy, restricted and repaired."""
        return self.unrestricted.restricted_to(self.possible).with_edges(self.added)

    @property
    def query(self) -> Query:
        """The query that is answered."""
        return self.noise.query

    @property
    def hull(self) -> SensitivityHull:
        """The sensitivity hull of the repaired policy."""
        return self.noise.hull

    @property
    def body(self) -> SensitivityHull:
        """The body of the noise."""
        return self.noise.body

    def mechanism(self, epsilon: Exact) -> Mechanism:
        """The noise at this step."""
        return self.noise.mechanism(epsilon)

    @cached_property
    def worst_norm(self) -> Fraction | float:
        """The largest norm of a difference between possible states (Theorem 6.3)."""
        return self.body.largest_lattice_norm(self.query.points[self.possible])

    def constrained(self, epsilon: Exact) -> Fraction | float:
        """What a release costs the worst pair of possible states (Theorem 6.3)."""
        price = _price(epsilon)
        cost = self._costs.get(ratio := price.as_integer_ratio())
        if cost is None:
            cost = largest_loss(self.worst_norm, price, self.noise.staircase)
            self._costs[ratio] = cost
        return cost

    @cached_property
    def is_lone(self) -> bool:
        """Whether only one state is possible, which nothing can hide."""
        return int(self.possible.sum()) == 1

    def price(self, epsilon: Exact) -> Fraction:
        """What a release costs: nothing where the answer is known beforehand."""
        return Fraction(0) if self.is_lone else _price(epsilon)

    @cached_property
    def known_answer(self) -> ObjectArray:
        """The answer where only one state is possible, whoever asks and wherever they are."""
        return lattice_vector(self.query.points[int(np.argmax(self.possible))])

    @property
    def known_value(self) -> FloatArray:
        """The same as the query has it, without the rounding to the lattice."""
        return self.query.values[int(np.argmax(self.possible))]

    @cached_property
    def binding(self) -> PolicyGraph:
        """The edges that later queries of the same step must keep (see `Stream.release_also`).

        A state without an edge is hidden by states that its hull holds; the nearest of them,
        the lowest of equals, becomes its neighbour, so that the same one hides it every time.
        """
        policy, points = self.policy, self.query.points.astype(object)
        found = []
        for state in np.flatnonzero(self.possible & ~policy.connected).tolist():
            others = np.flatnonzero(self.possible)
            others = others[others != state]
            apart = points[others] - points[state]
            near = self.body.lattice_contains(apart)
            if near.any():
                distances = (apart[near] ** 2).sum(axis=1)
                found.append(sorted((state, int(others[near][np.argmin(distances)]))))
        return policy.with_edges(np.unique(found, axis=0)) if found else policy


class _Cache:
    """What a plan has met; it travels with a pickled plan, so that workers need not meet it."""

    def __init__(
        self,
        met: Mapping[bytes, Protected] | None = None,
        noises: Mapping[bytes, Noise] | None = None,
    ) -> None:
        self.met: LRUCache[bytes, Protected] = LRUCache(REMEMBERED)
        self.noises: LRUCache[bytes, Noise] = LRUCache(REMEMBERED)
        self.latest: Protected | None = None
        self.guard = threading.Lock()
        self.met.update(met or {})
        self.noises.update(noises or {})

    def __reduce__(self) -> tuple[Any, ...]:
        return _Cache, (dict(self.met), dict(self.noises))


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """The public side of a release: who must look like whom, what is asked, which noise answers.

    A plan never changes; `replace` makes another. It is shared by everybody it is for, and
    remembers the possible sets it has met.

    Args:
        policy: The graph of states that must look alike.
        query: What is asked about the state.
        mechanism: "knorm" (the paper's), "staircase" (nearer answers at the same epsilon; states
            closer than linked ones may lose as much as those), "laplace" or "isotropic".
        shape: "hull", "enlarged" for a larger body with a smaller error, or "l1" for Laplace's.
        gamma: Where the first step of a staircase ends, between 0 and 1; by default
            `best_gamma` of the body's rank and the price, whatever that is at each release.
        repair: How an exposed state gets its partner: "min_error", "nearest", "min_area",
            "optimal", "optimal_volume", or None for no repair.
        full_rank: Whether repair also adds edges until no answer tells states apart for certain.
        partners: The states that repair should use: a state for each, or a graph to choose from.
        delta: Above zero, only the likeliest states are protected, as many as hold 1 - delta of
            the probability: the delta-location set of the earlier work (Theorem 4.1).

    >>> plan = Plan(PolicyGraph.complete(3), Query([0, 1, 3]))
    >>> plan
    Plan(3 states, knorm, repair min_error)
    >>> plan.replace(repair=None)
    Plan(3 states, knorm, no repair)
    """

    policy: PolicyGraph
    query: Query
    _: KW_ONLY
    mechanism: str = "knorm"
    shape: str = "hull"
    gamma: Exact | None = None
    repair: RepairMethod | None = "min_error"
    full_rank: bool = True
    partners: Mapping[int, int] | PolicyGraph | None = None
    delta: Exact = 0
    _body: Any = field(init=False, default=None)
    _cache: _Cache = field(init=False, default_factory=_Cache)

    def __post_init__(self) -> None:
        expect(self.policy, PolicyGraph, "policy")
        expect(self.query, Query, "query")
        if self.policy.n_states != self.query.n_states:
            raise ArgumentError(
                f"policy must have the {self.query.n_states} states of the query, "
                f"got {self.policy.n_states}"
            )
        if self.repair is not None:
            expect_one_of(self.repair, get_args(RepairMethod), "repair")
        expect(self.full_rank, bool, "full_rank")
        if self.partners is not None and not isinstance(self.partners, (Mapping, PolicyGraph)):
            expect(self.partners, Mapping, "partners")
        object.__setattr__(self, "delta", as_delta(self.delta))
        object.__setattr__(self, "_body", body_for(self.mechanism, self.shape))
        object.__setattr__(self, "gamma", as_gamma(self.gamma, self.mechanism))

    def replace(self, **changes: Any) -> Plan:
        """The same plan with some fields changed.

        Args:
            changes: The fields and their new values.
        """
        return replace(self, **changes)

    def __repr__(self) -> str:
        repair = "no repair" if self.repair is None else f"repair {self.repair}"
        return f"Plan({self.query.n_states} states, {self.mechanism}, {repair})"

    to_opendp = to_opendp

    @cached_property
    def digest(self) -> bytes:
        """A fingerprint of everything here that can shape an answer, for keyed noise."""
        chosen = str(self.partners)
        if isinstance(self.partners, PolicyGraph):
            chosen = self.partners.digest.hex()
        elif self.partners is not None:
            chosen = str(sorted((int(a), int(b)) for a, b in self.partners.items()))
        facts = [self.mechanism, self.shape, self.repair, self.full_rank, chosen, self.delta]
        facts += [] if self.gamma is None else [self.gamma]
        parts = [self.policy.digest, self.query.digest, *(str(fact).encode() for fact in facts)]
        return hashlib.sha256(encoded(tuple(parts))).digest()

    def to_protect(self, prior: Belief, memory: Memory | None = None) -> Mask:
        """The states to protect: all that are possible, or with delta the likeliest of them.

        Args:
            prior: What is believed before the release.
            memory: That of the chain, if it has one: then its places are protected.
        """
        expect(prior, Belief, "prior")
        if memory is not None:
            expect(memory, Memory, "memory")
        if not self.delta:
            return prior.possible if memory is None else memory.reached(prior.possible)
        # The small probability of going anywhere would fill the set with far states.
        likely = prior.by_own_moves()
        return location_set(likely if memory is None else memory.sum(likely), float(self.delta))

    def at(self, possible: ArrayLike) -> Protected:
        """What protects the states of a possible set.

        Args:
            possible: A mask over the states, or the numbers of the possible ones.
        """
        latest = self._cache.latest
        if latest is not None and latest.possible is possible:
            return latest
        mask = possible_mask(possible, self.query.n_states)
        name = mask.tobytes()
        # Threads share a plan, and reading a cache changes it; what two make at once is the same.
        with self._cache.guard:
            step = self._cache.met.get(name)
        if step is None:
            step = self._protected(mask)
            with self._cache.guard:
                self._cache.met[name] = step
        self._cache.latest = step
        return step

    def _protected(self, possible: Mask) -> Protected:
        alive, connected = self._differences.alive(possible)
        noise = self._noise(alive, possible)
        added = _NO_EDGES
        # A state with a living edge is hidden by its neighbour; only the others can be exposed.
        whole = noise.hull.rank == self.query.dimension or not self.full_rank
        sound = whole and (connected | ~possible).all()
        if self.repair is not None and (not sound or isinstance(self.partners, PolicyGraph)):
            # An enlarged body contains the hull, so what protects in one protects in both.
            added = added_edges(
                self.query,
                self.policy,
                possible,
                method=self.repair,
                full_rank=self.full_rank,
                body=None if self.shape == "enlarged" else self._body,
                partners=self.partners,
            )
            if len(added):
                extra = self.query.points[added[:, 0]] - self.query.points[added[:, 1]]
                corners = np.concatenate([noise.hull.lattice_vertices, extra])
                noise = self._with_body(SensitivityHull.from_lattice(corners, self.query.step))
        return Protected(possible, self.policy, added, noise)

    def _noise(self, alive: Mask, possible: Mask) -> Noise:
        """The noise of the restricted policy; the same differences give the same noise."""
        if len(self.policy.members):
            return self._with_body(sensitivity_hull(self.query, self.policy, possible))
        name = alive.tobytes()
        with self._cache.guard:
            noise = self._cache.noises.get(name)
        if noise is None:
            vectors = self._differences.classes[alive]
            noise = self._with_body(SensitivityHull.from_lattice(vectors, self.query.step))
            with self._cache.guard:
                self._cache.noises[name] = noise
        return noise

    def _with_body(self, hull: SensitivityHull) -> Noise:
        body = hull if self._body is None else self._body(hull)
        return Noise(self.query, hull, body, self.mechanism == "staircase", as_gamma(self.gamma))

    @cached_property
    def _differences(self) -> Differences:
        return Differences.of(self.query, self.policy)


@dataclass(frozen=True, eq=False)
class Differences:
    """The policy's edges grouped by their difference, of which a grid has only a few."""

    policy: PolicyGraph
    classes: IntArray
    """(C, d) the distinct differences."""
    class_of: IntArray
    """For every link the number of its difference."""

    @classmethod
    def of(cls, query: Query, policy: PolicyGraph) -> Differences:
        """Group the edges of a policy that stand alone."""
        vectors = query.points[policy.links[:, 0]] - query.points[policy.links[:, 1]]
        ordered = vectors[order := np.lexsort(vectors.T)]
        fresh = np.ones(len(ordered), dtype=bool)
        fresh[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
        class_of = np.empty(len(ordered), dtype=np.int64)
        class_of[order] = np.cumsum(fresh) - 1
        return cls(policy, ordered[fresh], class_of)

    def alive(self, possible: Mask) -> tuple[Mask, Mask]:
        """Which differences have an edge left, and which possible states have a neighbour."""
        present, connected = kernels.edges.living(
            self.policy.links, self.class_of, len(self.classes), possible
        )
        members = self.policy.restricted_to(possible).members if len(self.policy.members) else ()
        if len(members):
            connected[members] = True
        return present, connected


def _price(epsilon: Exact) -> Fraction:
    """An epsilon as a fraction: as it is where somebody has read it, which releases rely on."""
    return epsilon if type(epsilon) is Fraction else as_epsilon(epsilon)


_NO_EDGES: IntArray = np.empty((0, 2), dtype=np.int64)


def location_set(probabilities: FloatArray, delta: float) -> Mask:
    """The fewest states whose probabilities reach 1 - delta, likeliest first (Theorem 4.1).

    Ties go to the lowest state, so the set is the same for everyone.
    """
    order = np.argsort(-probabilities, kind="stable")
    count = int(np.searchsorted(np.cumsum(probabilities[order]), 1 - delta)) + 1
    chosen = np.zeros(len(probabilities), dtype=bool)
    chosen[order[:count]] = True
    return chosen & (probabilities > 0)
