"""Chains of other libraries, in and out: hmmlearn, dynamax and networkx.

Only moves travel. What is observed is theirs to say: here an observation is a row of
log-likelihoods, whatever it came from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dphmm._types import FloatArray
from dphmm.chain.anywhere import Zeros, chosen_anywhere
from dphmm.chain.stochastic import check_matrix, row_sums
from dphmm.errors import ArgumentError, require

if TYPE_CHECKING:
    from dphmm.chain.belief import Start

__all__ = ["Exchanged"]

SINGLE_PRECISION = 1e-4
"""Rows may miss one by this much: jax computes with 32 bits."""


class Exchanged:
    """What a `MarkovModel` gives to other libraries and takes from them."""

    @classmethod
    def from_hmmlearn(cls, model: Any, *, zeros: Zeros = "guesses") -> Self:
        """The moves of an hmmlearn model, whatever it observes.

        Its `startprob_` is where the chain is at the first observation. Ours begins one
        transition earlier, so condition on the first row and filter the others:
        `start = Belief.from_probabilities(theirs.startprob_).condition(rows[0])`.

        Args:
            model: An hmmlearn model that has `transmat_`: fitted, or set by hand.
            zeros: "guesses" if it was learned, "facts" if somebody states that nobody makes a
                move of probability zero; see `MarkovModel.fit`.
        """
        matrix = getattr(model, "transmat_", None)
        if matrix is None:
            raise ArgumentError(
                f"model must be an hmmlearn model with transmat_, got {type(model).__name__}"
            )
        return cls._taken(matrix, zeros, "model.transmat_")

    def to_hmmlearn(self, start: Start, *, kind: str = "CategoricalHMM", **settings: Any) -> Any:
        """An hmmlearn model with these moves, going anywhere included; observations are not set.

        Args:
            start: What is known before the first step; `startprob_` is one transition later.
            kind: The name of a class in `hmmlearn.hmm`.
            settings: What the class takes beside `n_components`.
        """
        hmm = require("hmmlearn.hmm", "hmmlearn")
        made = getattr(hmm, kind, None) if isinstance(kind, str) else None
        if made is None:
            raise ArgumentError(f"kind must be a class of hmmlearn.hmm, got {kind!r}")
        first, moves = self._given(start)
        model = made(n_components=len(moves), **settings)
        model.startprob_, model.transmat_ = first, moves
        return model

    @classmethod
    def from_dynamax(cls, parameters: Any, *, zeros: Zeros = "guesses") -> Self:
        """The moves in the parameters of a dynamax HMM.

        Args:
            parameters: What `initialize` or `fit_em` of a dynamax HMM gives.
            zeros: As for `from_hmmlearn`.
        """
        matrix = getattr(getattr(parameters, "transitions", None), "transition_matrix", None)
        if matrix is None:
            raise ArgumentError(
                f"parameters must be those of a dynamax HMM, with transitions.transition_matrix, "
                f"got {type(parameters).__name__}"
            )
        return cls._taken(matrix, zeros, "parameters.transitions.transition_matrix")

    def to_dynamax(self, start: Start) -> dict[str, FloatArray]:
        """What `initialize` of a dynamax HMM takes: `initial_probs` and `transition_matrix`.

        Args:
            start: What is known before the first step; `initial_probs` is one transition later.
        """
        first, moves = self._given(start)
        return {"initial_probs": first, "transition_matrix": moves}

    @classmethod
    def from_networkx(cls, graph: Any) -> Self:
        """The chain of a networkx graph with the nodes 0..n-1: weights, divided by their sums.

        An edge without a weight counts 1, and an undirected one is a move both ways. A move
        without an edge is impossible, unless the graph says how often the chain goes anywhere,
        as `to_networkx` writes it.

        Args:
            graph: A networkx graph in which an edge leads out of every node.
        """
        if not hasattr(graph, "nodes") or not hasattr(graph, "edges"):
            raise ArgumentError(f"graph must be a networkx graph, got {type(graph).__name__}")
        nodes = range(len(graph.nodes))
        if set(graph.nodes) != set(nodes) or not nodes:
            raise ArgumentError(
                f"graph must have the nodes 0..{max(len(nodes) - 1, 0)}, got other names; "
                f"relabel it with networkx.convert_node_labels_to_integers"
            )
        networkx = require("networkx", "graphs")
        weights = networkx.to_scipy_sparse_array(graph, nodelist=nodes, dtype=float)
        matrix = check_matrix(weights, "graph")
        sums = row_sums(matrix)
        if (sums == 0).any():
            raise ArgumentError(
                f"graph must have a weight above 0 out of every node, "
                f"got none at node {int(np.argmin(sums))}"
            )
        matrix.data /= np.repeat(sums, np.diff(matrix.indptr))
        share = graph.graph.get("anywhere", 0.0)
        density = graph.graph.get("density") if share else None
        return cls(matrix, anywhere=share, density=density)  # type: ignore[call-arg]

    def to_networkx(self) -> Any:
        """A directed networkx graph: the own moves with their probabilities as weights.

        Where the model can go anywhere, `graph.graph` holds `anywhere` and `density`.
        """
        model: Any = self
        graph = require("networkx", "graphs").DiGraph()
        if model.anywhere:
            graph.graph.update(anywhere=model.anywhere, density=model.density.tolist())
        graph.add_nodes_from(range(model.n_states))
        moves = model.transition.tocoo()
        found = (part.tolist() for part in (moves.row, moves.col, moves.data))
        graph.add_weighted_edges_from(zip(*found, strict=True))
        return graph

    @classmethod
    def _taken(cls, given: Any, zeros: Zeros, argument: str) -> Self:
        """The model of a matrix of floats, perhaps of 32 bits."""
        matrix = check_matrix(given, argument)
        sums = row_sums(matrix)
        worst = int(np.argmax(np.abs(sums - 1))) if len(sums) else 0
        if len(sums) and not abs(sums[worst] - 1) <= SINGLE_PRECISION:
            raise ArgumentError(
                f"{argument} must have rows that sum to one, "
                f"got {float(sums[worst])!r} in row {worst}"
            )
        matrix.data /= np.repeat(sums, np.diff(matrix.indptr))
        return cls(matrix, anywhere=chosen_anywhere(zeros, None))  # type: ignore[call-arg]

    def _given(self, start: Start) -> tuple[FloatArray, FloatArray]:
        """Where the chain is after one step, and its whole matrix."""
        model: Any = self
        moves = model.outgoing.toarray() + model.jumps
        first = model.known(start).predict(model).probabilities
        return np.array(first), moves / moves.sum(axis=1, keepdims=True)
