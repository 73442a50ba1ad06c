"""What was released, or will be, step by step: all that accounting needs to know, all public."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import IntArray, Mask
from dphmm.chain.markov import Belief, Chain, MarkovModel, Start
from dphmm.cost.charges import Charge
from dphmm.errors import ArgumentError, expect
from dphmm.geometry.exact import Exact, as_epsilon, whole
from dphmm.geometry.hull import SensitivityHull, check_body
from dphmm.geometry.query import Query
from dphmm.geometry.states import as_array, possible_mask

__all__ = ["History"]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class History:
    """The charges of every step, and the states that were possible before each.

    A path is a sequence of states that the chain can take through the possible sets, from the
    first step on; what was known before the first step (`start`) only decides which are
    possible. A path that a later possible set cuts off counts up to there. A step without
    charges is one without a release.

    Args:
        model: The chain.
        charges: For every step its answers, none where nothing was released.
        start: What was known before the first step: a state, a distribution, a belief, or a mask of
            what was possible. By default nothing.
        possible: For every step the states possible before its release, as a mask or numbers; None
            where all that the moves lead to is possible.
        time: The time of `start`; the first step leads into the next.
    """

    charges: tuple[tuple[Charge, ...], ...]
    """For every step its answers, each a `Charge`."""
    models: tuple[MarkovModel, ...]
    """The model that governs the step into each time."""
    possible: tuple[Mask, ...]
    """The possible states before each release: as given, else what the moves lead to."""
    reached: tuple[Mask, ...]
    """Those of the possible states that a path through the earlier possible sets leads to."""
    stated_zeros: bool
    """Whether some path of places is impossible, with all that a chain remembers, because
    somebody said so."""
    _begins: tuple[Mask, tuple[ArrayLike | None, ...]]

    def __init__(
        self,
        model: Chain,
        charges: Sequence[Sequence[Charge]],
        *,
        start: Start | Mask | None = None,
        possible: Sequence[ArrayLike | None] | None = None,
        time: int = 0,
    ) -> None:
        expect(model, Chain, "model")
        whole(time, "time", None)
        expect(charges, Iterable, "charges")
        steps = tuple(_step(answers) for answers in charges)
        if not steps:
            raise ArgumentError("charges must cover at least one step, got none")
        if possible is not None:
            expect(possible, Sized, "possible")
        if possible is not None and len(possible) != len(steps):
            raise ArgumentError(
                f"possible must have one mask for each of {len(steps)} steps, got {len(possible)}"
            )
        # Two paths are paths of places; a chain with memory may allow fewer than are counted.
        began, chain = None if start is None else _known(start, model), model
        model, times = model.on_places, range(time + 1, time + 1 + len(steps))
        models = tuple(model.at(one) for one in times)
        zeros = chain.has_zeros_into if chain.memory else lambda one: model.at(one).has_stated_zeros
        object.__setattr__(self, "stated_zeros", any(map(zeros, times)))
        for charge in {id(charge): charge for answers in steps for charge in answers}.values():
            if charge.query.n_states != model.n_states:
                raise ArgumentError(
                    f"query must have the {model.n_states} states of the model, "
                    f"got {charge.query.n_states}"
                )
        given = possible if possible is not None else [None] * len(steps)
        object.__setattr__(self, "charges", steps)
        object.__setattr__(self, "models", models)
        known = np.ones(model.n_states, dtype=bool) if began is None else began
        object.__setattr__(self, "_begins", (known, tuple(given)))
        masks = _masks(models, self._begins[0], given)
        object.__setattr__(self, "possible", masks[0])
        object.__setattr__(self, "reached", masks[1])

    @classmethod
    def of(
        cls,
        query: Query,
        model: Chain,
        hulls: Sequence[SensitivityHull | None],
        epsilon: Exact | Sequence[Exact],
        *,
        start: Start | Mask | None = None,
        possible: Sequence[ArrayLike | None] | None = None,
        time: int = 0,
        gamma: Exact | None = None,
    ) -> History:
        """The history of one query: a hull for each step, None where nothing was released.

        Args:
            query: What is asked at every step.
            model: The chain.
            hulls: For every step the body of its noise, None where nothing was released.
            epsilon: One for all, or one for each step.
            start: As for the class.
            possible: As for the class.
            time: As for the class.
            gamma: That of staircase noise; None for K-norm noise.

        >>> body = SensitivityHull.from_vertices([[1]])
        >>> model = MarkovModel([[0.5, 0.5, 0], [0, 0.5, 0.5], [0.5, 0, 0.5]])
        >>> History.of(Query([0, 1, 2]), model, [body, None, body], 1, start=0)
        History(steps=3, releases=2, states=3)
        """
        expect(hulls, Sequence, "hulls")
        if not hulls:
            raise ArgumentError("hulls must cover at least one step, got none")
        if isinstance(epsilon, Sequence) and not isinstance(epsilon, str):
            shares = list(epsilon)
        else:
            shares = [epsilon] * len(hulls)
        if len(shares) != len(hulls):
            raise ArgumentError(
                f"epsilon must be one number or one for each of {len(hulls)} steps, "
                f"got {len(shares)}"
            )
        # Equal steps share one charge, so that what depends on it is computed once.
        made: dict[tuple[SensitivityHull, Fraction], Charge] = {}
        charges: list[tuple[Charge, ...]] = []
        for hull, share in zip(hulls, shares, strict=True):
            if hull is None:
                charges.append(())
                continue
            check_body(hull, query, "hulls")
            key = hull, as_epsilon(share)
            if key not in made:
                made[key] = Charge(query, *key, gamma)
            charges.append((made[key],))
        return cls(model, charges, start=start, possible=possible, time=time)

    def __len__(self) -> int:
        return len(self.charges)

    def __repr__(self) -> str:
        releases = sum(bool(answers) for answers in self.charges)
        return f"History(steps={len(self)}, releases={releases}, states={self.models[0].n_states})"

    def states(self, step: int) -> IntArray:
        """The numbers of the states possible before a step's release; steps count from 0.

        Args:
            step: A step's number, from 0.
        """
        if not 0 <= whole(step, "step") < len(self):
            raise ArgumentError(f"step must be one of 0..{len(self) - 1}, got {step!r}")
        return np.flatnonzero(self.possible[step])

    def moves(self, step: int) -> tuple[IntArray, IntArray, Mask]:
        """The predecessors of each possible state, as (indptr, indices) among the possible.

        Both sides are numbered as in `states`, of this step and of the one before it. The mask
        says which states every state leads to: their predecessors are not listed.

        Args:
            step: A step's number, from 1.
        """
        here, before = self.states(step), self.states(step - 1)
        anywhere = self.models[step].landing[here]
        if anywhere.all():
            none = np.zeros(0, dtype=np.int64)
            return np.zeros(len(here) + 1, dtype=np.int64), none, anywhere
        incoming = self.models[step].transition[before][:, here].T.tocsr()
        return incoming.indptr.astype(np.int64), incoming.indices.astype(np.int64), anywhere

    @cached_property
    def is_free(self) -> bool:
        """Whether every possible state of a step leads to every one of the next.

        As with models that can go anywhere: then two paths can be anywhere at any time, and
        what they lose is the sum of each step's worst pair.
        """
        following = zip(self.models[1:], self.possible[1:], strict=True)
        return all(bool(model.landing[mask].all()) for model, mask in following)

    @cached_property
    def own(self) -> History | None:
        """The same releases about people who take the models' own moves only.

        The history itself if no model can go anywhere; None if what was said leaves no such
        path.
        """
        if not any(model.anywhere for model in self.models):
            return self
        models = tuple(model.own for model in self.models)
        known, given = self._begins
        allowed: list[Mask | None] = []
        before = known
        for model, mask in zip(models, given, strict=True):
            reached = model.successors(before)
            before = reached if mask is None else reached & possible_mask(mask, len(known))
            if not before.any():
                return None
            allowed.append(before)
        history = object.__new__(History)
        masks = _masks(models, known, allowed)
        for name, value in (
            ("charges", self.charges),
            ("models", models),
            ("stated_zeros", True),
            ("_begins", (known, tuple(allowed))),
            ("possible", masks[0]),
            ("reached", masks[1]),
        ):
            object.__setattr__(history, name, value)
        return history

    def answers(self) -> Iterator[tuple[Charge, IntArray]]:
        """Every charge with the states that were possible for it."""
        for step, charges in enumerate(self.charges):
            states = self.states(step)
            for charge in charges:
                yield charge, states

    @cached_property
    def has_dead_ends(self) -> bool:
        """Whether some possible state has no move into the next step's possible states."""
        first = {kind: step for step, kind in reversed([*enumerate(self.kinds())][1:])}
        return any(self._cuts_off(step) for step in first.values())

    def _cuts_off(self, step: int) -> bool:
        model, before, here = self.models[step], self.possible[step - 1], self.possible[step]
        if model.landing[here].any():
            return False
        return not np.diff(model.transition[before][:, here].indptr).all()

    def kinds(self) -> list[int]:
        """A number for each step, the same for steps with the same moves, masks and charges."""
        seen: dict[object, int] = {}
        kinds = []
        before = b""
        for model, mask, charges in zip(self.models, self.possible, self.charges, strict=True):
            key = (id(model), before, mask.tobytes(), tuple(map(id, charges)))
            kinds.append(seen.setdefault(key, len(seen)))
            before = mask.tobytes()
        return kinds


def _step(answers: Iterable[Charge]) -> tuple[Charge, ...]:
    expect(answers, Iterable, "charges")
    step = tuple(answers)
    for charge in step:
        expect(charge, Charge, "charges")
    return step


def _known(start: Start | Mask, model: Chain) -> Mask:
    # Booleans would pass for probabilities, and a mask of one state for certainty.
    if not isinstance(start, Belief) and as_array(start, "start").dtype == np.bool_:
        return possible_mask(start, model.n_places)
    return model.place_mask(model.known(start).possible)


def _masks(
    models: tuple[MarkovModel, ...], known: Mask, given: Sequence[ArrayLike | None]
) -> tuple[tuple[Mask, ...], tuple[Mask, ...]]:
    """The possible states of every step, and those of them that a path leads to."""
    possible, reached = [], []
    before = path_ends = known
    for step, (model, allowed) in enumerate(zip(models, given, strict=True)):
        # A mask that was given is kept: with delta above zero a state can come back that no
        # state of the mask before leads to, and what its release tells still counts.
        mask = model.successors(before) if allowed is None else possible_mask(allowed, len(known))
        before = _frozen(mask)
        path_ends = _frozen(model.successors(path_ends) & mask)
        if not path_ends.any():
            if step == 0 or not mask.any():
                raise ArgumentError(
                    f"possible must leave a reachable state at every step, got none at step {step}"
                )
            path_ends = before  # delta has left out everybody who came this far
        if step == 0:
            path_ends = before
        possible.append(before)
        reached.append(path_ends)
    return tuple(possible), tuple(reached)


def _frozen(mask: Mask) -> Mask:
    mask = np.array(mask)
    mask.setflags(write=False)
    return mask
