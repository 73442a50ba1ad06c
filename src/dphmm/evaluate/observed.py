"""What was measured on one workload, by people, and what it says of the paper's claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dphmm._types import FloatArray
from dphmm.evaluate.course import Course, Drawn, Timed
from dphmm.evaluate.experiments import POLICIES
from dphmm.evaluate.intervals import People, Statistic, by_person
from dphmm.evaluate.parts import Measurable
from dphmm.evaluate.protocol import protocol, seeds
from dphmm.evaluate.results import Value
from dphmm.evaluate.workloads import Workload

__all__ = ["WORDS", "Observed", "Statement", "city_settings"]

WORDS = {
    "distance": "distance policy",
    "one_step": "one-step policy",
    "location_set": "δ-location set",
}


@dataclass(frozen=True)
class Statement:
    """A sentence of the paper, and the margin by which it is true."""

    key: str
    text: str
    people: People
    margin: Statistic
    rule: str
    """What the margin is."""
    found: str
    """The figures, in words."""


class Observed:
    """What was measured on one workload, by people."""

    def __init__(
        self, workload: Workload, found: Mapping[Measurable, dict[str, FloatArray]], quick: bool
    ) -> None:
        self.workload, self.quick = workload, quick
        self._found = found
        self._people = [trip.person for trip in workload.sequences]
        self._courses = {
            (task.policy, task.radius): result
            for task, result in found.items()
            if isinstance(task, Course)
        }

    @property
    def main(self) -> People:
        """Degrees of protection and errors of the three policies at epsilon 1."""
        columns = {}
        for policy in ("distance", "one_step"):
            course = self._course(policy)
            for name in ("hidden", "possible", "stand_in", "error_1"):
                columns[f"{name.removesuffix('_1')}.{policy}"] = self._by_person(course[name])
            for epsilon in self._epsilons(policy):
                columns[f"error.{policy}@{epsilon}"] = self._by_person(course[f"error_{epsilon}"])
        drawn = self._drawn("1", None)
        for name, rows in drawn.items():
            columns[f"{name}.location_set"] = self._by_person(rows)
        for radius in self._radii():
            course = self._courses["distance", radius]
            columns[f"hidden@{radius}"] = self._by_person(course["hidden"])
            columns[f"error@{radius}"] = self._by_person(course["error_1"])
        return People(columns, seeds=len(seeds(self.quick)))

    @property
    def times(self) -> People:
        """Processor time of a step in milliseconds, by people: the median of their steps."""
        columns = {}
        for task, result in self._found.items():
            if isinstance(task, Timed):
                people = self._people[: len(result["anew"])]
                for name, rows in result.items():
                    columns[f"{name}.{task.policy}"] = by_person(
                        1000 * np.median(rows, axis=1), people
                    )[0]
                quarter = rows.shape[1] // 4
                for part, chosen in (
                    ("third", result["anew"][:, -2 * quarter : -quarter]),
                    ("fourth", result["anew"][:, -quarter:]),
                ):
                    columns[f"{part}.{task.policy}"] = by_person(
                        1000 * np.median(chosen, axis=1), people
                    )[0]
        return People(columns)

    @property
    def swept(self) -> People:
        """The δ-location set at several epsilons, of the people that all of them have."""
        columns = {}
        prices = sorted(
            {task.epsilon for task in self._found if isinstance(task, Drawn)}, key=float
        )
        for epsilon in prices:
            limit = (
                None
                if epsilon == "1"
                else city_settings(self.workload.name)["location_set_sequences"]
            )
            for name, rows in self._drawn(epsilon, limit).items():
                few = rows[: city_settings(self.workload.name)["location_set_sequences"]]
                people = self._people[: len(few)]
                columns[f"{name}@{epsilon}"] = by_person(few.mean(axis=1), people)[0]
        return People(columns, seeds=len(seeds(self.quick)))

    def values(self) -> Iterator[tuple[str, Value]]:
        """Every figure with its interval, and that of the person who fares worst."""
        main, times = self.main, self.times
        forms = {"hidden": ".1f", "possible": ".0f", "stand_in": ".1%", "error": ".2f"}
        for name in main.columns:
            kind = name.partition(".")[0].partition("@")[0]
            exact = "location_set" not in name
            unit = "km" if kind == "error" else ""
            value = main.mean(name, forms[kind], unit=unit, share=kind == "stand_in")
            yield name, Value(**{**vars(value), "seeds": None if exact else value.seeds})
        for policy in POLICIES:
            yield f"worst.hidden.{policy}", Value(main.columns[f"hidden.{policy}"].min(), ".1f")
            most = main.columns[f"error.{policy}"].max()
            yield f"worst.error.{policy}", Value(most, ".2f", unit="km")
            for kind in ("anew", "shipped"):
                yield f"{kind}.{policy}", times.mean(f"{kind}.{policy}", ".1f", unit="ms")

    def claims(self) -> list[Statement]:
        """Every claim of section 8."""
        return [*self.over_time(), *self._by_epsilon(), *self._by_radius(), *self._runtime()]

    def over_time(self) -> Iterator[Statement]:
        """What the paper says of its figures over time."""
        people, limits = self.main, protocol()["verdicts"]
        wanted = self.workload.paper_hidden
        hidden, errors = (
            f"{words} "
            + ", ".join(
                f"{WORDS[policy]} {people.columns[f'{kind}.{policy}'].mean():{form}}"
                for policy in POLICIES
            )
            for kind, words, form in (("hidden", "DoP:", ".1f"), ("error", "km:", ".2f"))
        )
        yield Statement(
            "largest", "The one-step policy gives the true state the largest DoP.", people,
            lambda m: m["hidden.one_step"]
            - np.maximum(m["hidden.distance"], m["hidden.location_set"]),
            "DoP above the larger of the other two", hidden,
        )  # fmt: skip
        yield Statement(
            "about", f"With it the true state hides among about {wanted} states.", people,
            lambda m: np.minimum(
                limits["about"] * m["hidden.one_step"] / wanted - 1,
                limits["about"] - m["hidden.one_step"] / wanted,
            ),
            f"within a factor {limits['about']:g} of {wanted}", hidden,
        )  # fmt: skip
        yield Statement(
            "higher", "Its error is higher than the distance policy's.", people,
            lambda m: m["error.one_step"] - m["error.distance"], "km above", errors,
        )  # fmt: skip
        yield Statement(
            "lower", "The distance policy's error is below the δ-location set's.", people,
            lambda m: m["error.location_set"] - m["error.distance"], "km below", errors,
        )  # fmt: skip
        yield Statement(
            "above", "The distance policy's DoP is above the δ-location set's.", people,
            lambda m: m["hidden.distance"] - m["hidden.location_set"], "DoP above", hidden,
        )  # fmt: skip
        yield Statement(
            "little", "The one-step policy sacrifices little utility against the δ-location set.",
            people,
            lambda m: limits["little"] * m["error.location_set"] - m["error.one_step"],
            f"km below {limits['little']:g} times the error", errors,
        )  # fmt: skip

    def _by_epsilon(self) -> Iterator[Statement]:
        main, swept, same = self.main, self.swept, protocol()["verdicts"]["same"]
        for policy in ("distance", "one_step"):
            yield Statement(
                f"epsilon.hidden.{policy}", f"DoP does not depend on ε: {WORDS[policy]}.",
                People({"same": np.full(main.number, 1.0)}),
                lambda m: m["same"],
                "exact: the possible set does not depend on answers, so neither does DoP",
                f"DoP {main.columns[f'hidden.{policy}'].mean():.1f} at every ε",
            )  # fmt: skip
        prices = [name.partition("@")[2] for name in swept.columns if name.startswith("hidden")]
        yield Statement(
            "epsilon.hidden.location_set", "DoP does not depend on ε: δ-location set.", swept,
            lambda m: _closeness([m[f"hidden@{price}"] for price in prices], same),
            f"largest minus smallest below {same:.0%} of the mean",
            _listed("DoP", "ε", prices, [swept.columns[f"hidden@{p}"] for p in prices], ".1f"),
        )  # fmt: skip
        for policy in ("distance", "one_step"):
            exact = self._epsilons(policy)
            yield Statement(
                f"epsilon.error.{policy}", f"Error falls as ε grows: {WORDS[policy]}.", main,
                lambda m, p=policy, e=exact: _least_rise(  # type: ignore[misc]
                    [-m[f"error.{p}@{price}"] for price in e]
                ),
                "km of the smallest fall",
                _listed(
                    "km", "ε", exact, [main.columns[f"error.{policy}@{p}"] for p in exact], ".2f"
                ),
            )  # fmt: skip
        yield Statement(
            "epsilon.error.location_set", "Error falls as ε grows: δ-location set.", swept,
            lambda m: _least_rise([-m[f"error@{price}"] for price in prices]),
            "km of the smallest fall",
            _listed("km", "ε", prices, [swept.columns[f"error@{p}"] for p in prices], ".2f"),
        )  # fmt: skip

    def _by_radius(self) -> Iterator[Statement]:
        people, radii = self.main, self._radii()
        for kind, words, unit, form in (
            ("hidden", "DoP", "DoP", ".1f"),
            ("error", "Error", "km", ".2f"),
        ):
            yield Statement(
                f"radius.{kind}", f"{words} grows with r.", people,
                lambda m, k=kind: _least_rise([m[f"{k}@{r}"] for r in radii]),  # type: ignore[misc]
                f"{unit} of the smallest rise",
                _listed(unit, "r", radii, [people.columns[f"{kind}@{r}"] for r in radii], form),
            )  # fmt: skip
        yield Statement(
            "radius.below", "Error stays below the δ-location set's for most r.", people,
            lambda m: np.median(
                [m["error.location_set"] - m[f"error@{r}"] for r in radii], axis=0
            ),
            "km below, the median over r",
            _listed("km", "r", radii, [people.columns[f"error@{r}"] for r in radii], ".2f")
            + f"; δ-location set {people.columns['error.location_set'].mean():.2f}",
        )  # fmt: skip

    def _runtime(self) -> Iterator[Statement]:
        times, limits = self.times, protocol()["verdicts"]
        told = ", ".join(
            f"{WORDS[policy]} {times.columns[f'anew.{policy}'].mean():.1f}" for policy in POLICIES
        )
        shipped = ", ".join(
            f"{times.columns[f'shipped.{policy}'].mean():.1f}" for policy in POLICIES
        )
        for policy in ("distance", "one_step"):
            yield Statement(
                f"time.{policy}", f"A step takes a little longer than DPLS: {WORDS[policy]}.",
                times,
                lambda m, p=policy: np.minimum(  # type: ignore[misc]
                    m[f"anew.{p}"] - m["anew.location_set"],
                    limits["little"] * m["anew.location_set"] - m[f"anew.{p}"],
                ),
                f"ms longer, and below {limits['little']:g} times as long",
                f"ms anew: {told}; a release as shipped: {shipped}",
            )  # fmt: skip
        for policy in ("distance", "one_step"):
            yield Statement(
                f"settles.{policy}", f"Runtime settles as the chain does: {WORDS[policy]}.", times,
                lambda m, p=policy: limits["settled"] * m[f"third.{p}"]  # type: ignore[misc]
                - np.abs(m[f"fourth.{p}"] - m[f"third.{p}"]),
                f"last two quarters of the steps differ by less than {limits['settled']:.0%}",
                f"ms: {times.columns[f'third.{policy}'].mean():.1f}, then "
                f"{times.columns[f'fourth.{policy}'].mean():.1f}",
            )  # fmt: skip

    def _course(self, policy: str) -> dict[str, FloatArray]:
        radius = city_settings(self.workload.name)["radius"] if policy == "distance" else ""
        return self._courses[policy, radius]

    def _epsilons(self, policy: str) -> list[str]:
        names = [name for name in self._course(policy) if name.startswith("error_")]
        return sorted((name.removeprefix("error_") for name in names), key=float)

    def _radii(self) -> list[str]:
        radii = [radius for policy, radius in self._courses if policy == "distance"]
        return sorted(radii, key=float) if len(radii) > 1 else []

    def _drawn(self, epsilon: str, limit: int | None) -> dict[str, FloatArray]:
        """The means over all seeds, one row a sequence."""
        parts = [
            result
            for task, result in self._found.items()
            if isinstance(task, Drawn) and (task.epsilon, task.limit) == (epsilon, limit)
        ]
        return {
            name: np.concatenate([part[name] for part in parts]).mean(axis=0) for name in parts[0]
        }

    def _by_person(self, rows: FloatArray) -> FloatArray:
        return by_person(rows.mean(axis=1), self._people)[0]


def _least_rise(curve: Sequence[FloatArray]) -> FloatArray:
    return np.asarray(np.diff(np.array(curve), axis=0).min(axis=0))


def _closeness(curve: Sequence[FloatArray], share: float) -> FloatArray:
    """By how much largest and smallest differ less than by a share of the mean."""
    rows = np.array(curve)
    return np.asarray(share * rows.mean(axis=0) - rows.max(axis=0) + rows.min(axis=0))


def _listed(
    what: str, of: str, points: Sequence[str], columns: Sequence[FloatArray], form: str
) -> str:
    figures = ", ".join(format(float(column.mean()), form) for column in columns)
    return f"{what} at {of} = {', '.join(points)}: {figures}"


def city_settings(name: str) -> dict[str, Any]:
    """What the protocol fixes for the city of a workload."""
    return dict(protocol()["gowalla" if name.startswith("gowalla") else "geolife"])
