"""The map of what was said about one person: answers, estimates, beliefs, places given away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dphmm._types import FloatArray, Mask
from dphmm.report.beliefs import BOUNDS, classify, name_classes
from dphmm.report.facts import TrackFacts
from dphmm.report.ground import Ground, fill
from dphmm.report.svg import Frame, drawing, points_list, tag

__all__ = ["KINDS", "TrackMap"]

KINDS = ("estimate", "late", "smooth")
"""The estimates at the time, late and in hindsight, as the page's classes call them."""

Key = list[tuple[str, str]]


@dataclass(frozen=True, eq=False)
class TrackMap:
    """A map for tracks: one frame for everybody, so that people can be compared."""

    ground: Ground

    @property
    def frame(self) -> Frame:
        """The frame of all maps."""
        return self.ground.frame

    @cached_property
    def shapes(self) -> list[str]:
        """The outline of each state."""
        return self.ground.shapes(self.frame)

    @property
    def shared(self) -> str:
        """What all maps show, once; each state is a line of the path's data."""
        base = f'<g id="base">{self.ground.draw_base()}</g>'
        kind = "land" if self.ground.base is None else "land over"
        return base + tag("path", d="\n".join(self.shapes), kind=kind, id="cells")

    def centres(self) -> list[float]:
        """Where each state is on the drawing, x and y in turn."""
        flat: list[float] = self.frame.place(self.ground.places).round(1).ravel().tolist()
        return flat

    def draw(self, facts: TrackFacts, marked: Sequence[int], label: str) -> str:
        """A person's day: where they are believed to have been, what was said, what was given away.

        Args:
            facts: What was said about the person.
            marked: The states that were given away, numbered on the map from 1.
            label: What the picture shows, for those who do not see it.
        """
        classes = classify(facts.share)
        heat = [
            fill(self.shapes, np.flatnonzero(classes == number + 1).tolist(), f"h{number}")
            for number in range(len(BOUNDS))
        ]
        answers = facts.answers
        parts = [
            '<use href="#ground"/>',
            f'<g class="day">{"".join(heat)}</g><g class="heat"></g>',
            *(
                tag("polyline", points=points_list(self.frame.place(points)), kind=f"path {kind}")
                for kind, points in zip(
                    KINDS, (facts.estimates, facts.lagged, facts.smoothed), strict=True
                )
            ),
            *(self._answer(step, point) for step, point in enumerate(answers)),
            *(self._mark(state, number) for number, state in enumerate(marked, start=1)),
            '<g class="moment"></g>',
            self.frame.ruler(self.ground.unit),
        ]
        return drawing(parts, self.frame.height, label)

    def draw_truth(self, facts: TrackFacts, real: FloatArray, label: str) -> str:
        """The true track over what was released: for its owner."""
        parts = [
            '<use href="#ground"/>',
            self.frame.track(facts.smoothed, "curve smooth"),
            *(self._answer(step, point) for step, point in enumerate(facts.answers)),
            self.frame.track(real, "curve truth"),
            self.frame.ruler(self.ground.unit),
        ]
        return drawing(parts, self.frame.height, label)

    def outside(self, facts: TrackFacts) -> int:
        """How many answers lie outside the map, which arrows at its edge point to."""
        said = facts.answers[~np.isnan(facts.answers).any(axis=1)]
        return int((~self._inside(self.frame.place(said))).sum())

    def heat_key(self) -> Key:
        """What the shades of a belief mean."""
        return [(f"h{number}", name) for number, name in enumerate(name_classes())]

    def _inside(self, placed: FloatArray) -> Mask:
        edge = 3.0
        high = np.array([self.frame.width, self.frame.height]) - edge
        return np.asarray(((placed >= edge) & (placed <= high)).all(axis=1))

    def _answer(self, step: int, point: FloatArray) -> str:
        """A dot, or an arrow at the edge that points to an answer outside."""
        if np.isnan(point).any():
            return ""
        placed = self.frame.place(point)
        x, y = placed[0].tolist()
        if self._inside(placed)[0]:
            return tag("circle", cx=x, cy=y, r=3.4, kind="dot answer", data_step=step)
        width, height, room = self.frame.width, self.frame.height, 12.0
        at_x, at_y = min(max(x, room), width - room), min(max(y, room), height - room)
        turn = np.degrees(np.arctan2(y - at_y, x - at_x))
        return tag(
            "path",
            d="M-7 -6L7 0L-7 6L-4 0z",
            transform=f"translate({at_x:.1f} {at_y:.1f}) rotate({turn:.0f})",
            kind="arrow answer",
            data_step=step,
        )

    def _mark(self, state: int, number: int) -> str:
        """A ring around a place that was given away, with its number in the list."""
        ((x, y),) = self.frame.place(self.ground.places[state]).tolist()
        radius = max(0.8 * self.ground.size(self.frame), 8.0)
        left = x + radius + 3 if x < self.frame.width - 40 else x - radius - 15
        ring = tag("circle", cx=x, cy=y, r=radius, kind="given")
        return ring + tag("text", str(number), x=left, y=y + 4, kind="number halo")
