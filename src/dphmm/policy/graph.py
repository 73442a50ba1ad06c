"""Policy graphs: which states must look alike (paper, section 4.2).

An edge says that the two states' answers may differ in probability by at most e^epsilon.
Groups in which everybody must look like everybody are kept as cliques, never as their
quadratic number of edges: a clique's differences span the difference body of its own hull,
so a complete policy over 100,000 states is one list of 100,000 members.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import floor, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from dphmm._types import IntArray, Mask
from dphmm.chain.markov import MarkovModel
from dphmm.errors import ArgumentError, expect, require
from dphmm.geometry.exact import Exact, exact, whole
from dphmm.geometry.query import Query
from dphmm.geometry.states import possible_mask, state_number, state_numbers
from dphmm.noise.randomness import encoded

__all__ = ["MOST_EDGES", "PolicyGraph"]

MOST_EDGES = 2**22
"""Of a policy that may have more, a fingerprint is not made from a list of its edges."""


@dataclass(frozen=True, eq=False, repr=False, init=False)
class PolicyGraph:
    """An undirected graph over the states 0..n_states-1 (Definition 4.2).

    Args:
        n_states: How many states there are.
        edges: Pairs of states that must look alike, each pair once.
        cliques: Groups of states in which everybody must look like everybody; a clique costs its
            members, not its pairs.

    >>> policy = PolicyGraph.by_category(["cafe", "school", "school", "shop", "shop", "shop"])
    >>> policy.edges.tolist()
    [[1, 2], [3, 4], [3, 5], [4, 5]]
    >>> policy.neighbors(1).tolist()
    [1, 2]
    >>> policy.restricted_to([False, True, True, False, True, False]).edges.tolist()
    [[1, 2]]
    >>> PolicyGraph(3)
    PolicyGraph(n_states=3, links=0, cliques=0)
    """

    n_states: int
    links: IntArray
    """Edges that stand alone, as sorted rows (low, high)."""
    members: IntArray
    """The cliques' members, one clique after the other."""
    offsets: IntArray
    """Where each clique starts in `members`, and where the last one ends."""

    def __init__(
        self, n_states: int, edges: ArrayLike = (), *, cliques: Iterable[ArrayLike] = ()
    ) -> None:
        whole(n_states, "n_states", 1)
        expect(cliques, Iterable, "cliques")
        groups = [state_numbers(group, n_states, "cliques") for group in cliques]
        for group in groups:
            if group.ndim != 1:
                raise ArgumentError(f"cliques must be lists of states, got shape {group.shape}")
            if len(np.unique(group)) != len(group):
                raise ArgumentError("cliques must name each state once, got a repeated state")
        members, offsets = _concatenated(groups)
        self._assign(n_states, _checked_edges(edges, n_states), members, offsets)

    @classmethod
    def complete(cls, n_states: int) -> PolicyGraph:
        """Everybody must look like everybody: G_cplt, one clique.

        Args:
            n_states: How many states there are.
        """
        return cls(n_states, cliques=[np.arange(whole(n_states, "n_states", 1))])

    @classmethod
    def by_category(cls, labels: Iterable[Hashable]) -> PolicyGraph:
        """States with the same label must look alike: G_categ, disjoint cliques.

        Args:
            labels: One label a state, of any hashable kind.
        """
        categories: dict[Hashable, list[int]] = {}
        expect(labels, Iterable, "labels")
        names = list(labels)
        for state, label in enumerate(names):
            expect(label, Hashable, "labels")
            categories.setdefault(label, []).append(state)
        if not names:
            raise ArgumentError("labels must have one for each state, got none")
        return cls(len(names), cliques=categories.values())

    @classmethod
    def within_distance(cls, query: Query, radius: Exact) -> PolicyGraph:
        """States whose answers are at most `radius` apart must look alike: G_util.

        The Euclidean distance is compared exactly, between lattice points.

        Args:
            query: What is asked: the answer of every state.
            radius: The largest distance that is linked, in the units of the query.
        """
        expect(query, Query, "query")
        reach = exact(radius, "radius") / query.step
        if reach < 0:
            raise ArgumentError(f"radius must not be negative, got {radius!r}")
        # No squared distance on the lattice passes this, and floats still hold its root.
        limit = min(floor(reach**2), 2**130)
        shifted = (query.points - query.points.min(axis=0)).astype(np.float64)
        # The tree only proposes; its slack covers every rounding of a 63-bit coordinate.
        slack = 1.0 + 1e-9 * sqrt(limit) + 2.0**-50 * float(shifted.max())
        pairs = cKDTree(shifted).query_pairs(sqrt(limit) + slack, output_type="ndarray")
        apart = query.points[pairs[:, 0]] - query.points[pairs[:, 1]]
        if limit >= 2**56:
            apart = apart.astype(object)
        else:
            apart = np.clip(apart, -(2**29), 2**29)
        near = np.asarray((apart**2).sum(axis=1) <= limit, dtype=bool)
        return cls._from_parts(query.n_states, _sorted_edges(pairs[near]))

    @classmethod
    def one_step(cls, model: MarkovModel) -> PolicyGraph:
        """States that one state can reach in one step must look alike: G_trs, a clique a row.

        The model's own moves count; the probability of going anywhere would link all states.

        Args:
            model: The chain's moves.
        """
        expect(model, MarkovModel, "model")
        model = model.on_places.at(0)
        pattern = model.transition
        members = np.asarray(pattern.indices, dtype=np.int64)
        offsets = np.asarray(pattern.indptr, dtype=np.int64)
        return cls._from_parts(model.n_states, _NO_EDGES, *_worthwhile(members, offsets))

    @classmethod
    def from_networkx(cls, graph: Any) -> PolicyGraph:
        """The policy of an undirected networkx graph whose nodes are 0..n-1; loops are dropped.

        Args:
            graph: An undirected networkx graph.
        """
        if not hasattr(graph, "nodes") or not hasattr(graph, "edges"):
            raise ArgumentError(f"graph must be a networkx graph, got {type(graph).__name__}")
        nodes = set(graph.nodes)
        if nodes != set(range(len(nodes))):
            raise ArgumentError(
                f"graph must have the nodes 0..{len(nodes) - 1}, got other names; "
                f"relabel it with networkx.convert_node_labels_to_integers"
            )
        edges = {(min(a, b), max(a, b)) for a, b in graph.edges() if a != b}
        return cls(len(nodes), sorted(edges))

    def to_networkx(self) -> Any:
        """The same graph for networkx, with every edge of every clique."""
        graph = require("networkx", "graphs").Graph()
        graph.add_nodes_from(range(self.n_states))
        graph.add_edges_from(self.edges.tolist())
        return graph

    @property
    def cliques(self) -> Iterator[IntArray]:
        """The groups in which everybody is linked with everybody."""
        for start, end in zip(self.offsets[:-1], self.offsets[1:], strict=True):
            yield self.members[start:end]

    @cached_property
    def edges(self) -> IntArray:
        """Every edge once, as sorted rows (low, high); quadratic in the size of a clique."""
        return self._list_edges()

    def _list_edges(self) -> IntArray:
        rows = [self.links]
        for clique in self.cliques:
            low, high = np.triu_indices(len(clique), k=1)
            rows.append(np.stack([clique[low], clique[high]], axis=1))
        return _sorted_edges(np.concatenate(rows))

    @property
    def most_edges(self) -> int:
        """How many edges there are at most: one that several cliques share counts in each."""
        sizes = np.diff(self.offsets)
        return len(self.links) + int((sizes * (sizes - 1) // 2).sum())

    @cached_property
    def digest(self) -> bytes:
        """A fingerprint of the edges, the same on every machine and however they are kept.

        Only of overlapping cliques with more than `MOST_EDGES` edges it is one of the cliques.
        """
        parts = [str(self.n_states).encode(), *(a.astype("<i8").tobytes() for a in self._plain())]
        return hashlib.sha256(encoded(tuple(parts))).digest()

    def _plain(self) -> tuple[IntArray, IntArray, IntArray]:
        """Links, members and offsets in one form: separate groups as cliques, others as links."""
        if not len(self.links) and len(np.unique(self.members)) == len(self.members):
            return _NO_EDGES, *_concatenated(sorted(self.cliques, key=lambda one: int(one.min())))
        if self.most_edges > MOST_EDGES:
            return self.links, self.members, self.offsets
        edges, low = self._list_edges(), np.arange(self.n_states)
        np.minimum.at(low, edges[:, 1], edges[:, 0])
        sizes = np.bincount(low, minlength=self.n_states)
        # Groups are separate when no edge leaves that of a smallest neighbour, and all are in it.
        leaves = (low[edges[:, 0]] != low[edges[:, 1]]).any()
        if leaves or len(edges) < (sizes * (sizes - 1) // 2).sum():
            return edges, *_concatenated([])
        ends = np.concatenate([[0], np.cumsum(sizes)])
        return _NO_EDGES, *_worthwhile(np.argsort(low, kind="stable"), ends)

    @cached_property
    def connected(self) -> Mask:
        """Which states have at least one neighbour besides themselves."""
        mask = np.zeros(self.n_states, dtype=bool)
        mask[self.links.ravel()] = True
        mask[self.members] = True
        return mask

    def neighbors(self, state: int) -> IntArray:
        """The states that must look like `state`, itself included (Definition 4.3).

        Args:
            state: The state's number.
        """
        state = state_number(state, self.n_states)
        found = [self.links[(self.links == state).any(axis=1)].ravel(), np.array([state])]
        clique_of = np.searchsorted(self.offsets, np.flatnonzero(self.members == state), "right")
        found += [self.members[self.offsets[c - 1] : self.offsets[c]] for c in clique_of]
        return np.unique(np.concatenate(found))

    def has_edge(self, a: int, b: int) -> bool:
        """Whether the policy links two different states.

        Args:
            a: One state's number.
            b: The other's.
        """
        a, b = state_number(a, self.n_states, "a"), state_number(b, self.n_states, "b")
        return a != b and bool(np.isin(b, self.neighbors(a)))

    def restricted_to(self, possible: ArrayLike) -> PolicyGraph:
        """The edges with both ends possible: the constrained graph of the paper.

        Args:
            possible: A mask over the states, or the numbers of the possible ones.
        """
        mask = possible_mask(possible, self.n_states)
        if mask.all():
            return self
        links = self.links[mask[self.links].all(axis=1)]
        alive = mask[self.members]
        sizes = np.concatenate([[0], np.cumsum(alive)])[self.offsets]
        return self._from_parts(
            self.n_states, links, *_worthwhile(self.members[alive], sizes.astype(np.int64))
        )

    def with_edges(self, edges: ArrayLike) -> PolicyGraph:
        """The graph with more edges; one that is there already changes nothing.

        Args:
            edges: Pairs of states.
        """
        extra = _checked_edges(edges, self.n_states)
        links = _sorted_edges(np.concatenate([self.links, extra]))
        return self._from_parts(self.n_states, links, self.members, self.offsets)

    def without_edges(self, edges: ArrayLike) -> PolicyGraph:
        """The graph with fewer edges; cliques that lose one are kept as their other edges.

        Args:
            edges: Pairs of states; one that is not there changes nothing.
        """
        unwanted = _checked_edges(edges, self.n_states)
        keep = ~np.isin(_keys(self.edges), _keys(unwanted))
        return self._from_parts(self.n_states, self.edges[keep])

    def __or__(self, other: PolicyGraph) -> PolicyGraph:
        if not isinstance(other, PolicyGraph):
            return NotImplemented
        if other.n_states != self.n_states:
            raise ArgumentError(
                f"policies must have the same states, got {self.n_states} and {other.n_states}"
            )
        return self._from_parts(
            self.n_states,
            _sorted_edges(np.concatenate([self.links, other.links])),
            np.concatenate([self.members, other.members]),
            np.concatenate([self.offsets, other.offsets[1:] + self.offsets[-1]]),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PolicyGraph):
            return NotImplemented
        return self.n_states == other.n_states and np.array_equal(self.edges, other.edges)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"PolicyGraph(n_states={self.n_states}, links={len(self.links)}, "
            f"cliques={len(self.offsets) - 1})"
        )

    def _assign(self, n_states: int, links: IntArray, members: IntArray, offsets: IntArray) -> None:
        object.__setattr__(self, "n_states", int(n_states))
        for name, array in (("links", links), ("members", members), ("offsets", offsets)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @classmethod
    def _from_parts(
        cls,
        n_states: int,
        links: IntArray,
        members: IntArray | None = None,
        offsets: IntArray | None = None,
    ) -> PolicyGraph:
        policy = cls.__new__(cls)
        if members is None or offsets is None:
            members, offsets = _concatenated([])
        policy._assign(n_states, links, members, offsets)
        return policy


def check_policy(policy: PolicyGraph, query: Query) -> None:
    """Refuse a policy that is not over a query's states, or a policy or query that is none.

    Args:
        policy: The graph.
        query: The query whose states it must have.
    """
    expect(query, Query, "query")
    expect(policy, PolicyGraph, "policy")
    if policy.n_states != query.n_states:
        raise ArgumentError(
            f"policy must have the {query.n_states} states of the query, got {policy.n_states}"
        )


_NO_EDGES: IntArray = np.empty((0, 2), dtype=np.int64)


def _checked_edges(edges: ArrayLike, n_states: int) -> IntArray:
    rows = state_numbers(edges, n_states, "edges")
    if rows.size == 0:
        return _NO_EDGES.copy()
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise ArgumentError(f"edges must be pairs of states, got shape {rows.shape}")
    loops = rows[rows[:, 0] == rows[:, 1]]
    if len(loops):
        raise ArgumentError(
            f"edges must join two different states, got ({loops[0, 0]}, {loops[0, 0]})"
        )
    unique = _sorted_edges(rows)
    if len(unique) != len(rows):
        _, counts = np.unique(_keys(np.sort(rows, axis=1)), return_counts=True)
        low, high = unique[np.argmax(counts > 1)]
        raise ArgumentError(f"edges must be given once, got ({low}, {high}) more than once")
    return unique


def _sorted_edges(rows: IntArray) -> IntArray:
    rows = np.sort(rows.astype(np.int64), axis=1)
    _, first = np.unique(_keys(rows), return_index=True)
    return rows[first]


def _keys(rows: IntArray) -> IntArray:
    return (rows[:, 0] << 32) | rows[:, 1]


def _concatenated(groups: list[IntArray]) -> tuple[IntArray, IntArray]:
    groups = [np.sort(group) for group in groups if len(group) > 1]
    members = np.concatenate([*groups, np.empty(0, dtype=np.int64)])
    offsets = np.cumsum([0, *(len(group) for group in groups)], dtype=np.int64)
    return members, offsets


def _worthwhile(members: IntArray, offsets: IntArray) -> tuple[IntArray, IntArray]:
    """Drop the cliques that have fewer than two members, which link nobody."""
    sizes = np.diff(offsets)
    keep = sizes > 1
    kept = members[np.repeat(keep, sizes)]
    return kept, np.concatenate([[0], np.cumsum(sizes[keep])]).astype(np.int64)
