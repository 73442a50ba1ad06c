"""The page of `dphmm reproduce paper`: the running example's figures and numbers. Public."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np

from dphmm._types import IntArray, Mask
from dphmm.evaluate.worked import EXPOSING, HIDING, LEFT, Worked, patients, work_out
from dphmm.geometry.exact import as_text
from dphmm.geometry.hull import SensitivityHull
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.sensitivity import sensitivity_hull
from dphmm.report.figures import outline
from dphmm.report.rendering import render
from dphmm.report.svg import Frame, drawing, tag
from dphmm.tables.datasets.running_example import REACH, RunningExample, running_example

__all__ = ["page", "table"]

KINDS = {"cafeteria": "c2", "school": "c1", "grocery": "c3"}
NAMES = {
    "complete": "Complete",
    "category": "By category",
    "distance": f"Within a distance of {REACH} (ours)",
    "one_step": "One step",
}


@dataclass(frozen=True)
class Panel:
    """One picture: states in measurement space, and what is drawn around them."""

    caption: str
    edges: IntArray
    possible: Mask
    body: SensitivityHull | None = None
    around: int | None = None
    """The state whose body is drawn; the origin if None."""
    also: Sequence[SensitivityHull] = field(default=())
    added: IntArray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    written: Sequence[float] = ()
    """What is written on each edge, near its first state."""


@dataclass(frozen=True)
class Figure:
    """Some panels under one number of the paper."""

    title: str
    panels: Sequence[tuple[str, str]]
    """A drawing and its caption."""
    note: str = ""


def page() -> str:
    """The page, one file that loads nothing."""
    example = running_example()
    rows = [(one, _show(one.printed), _show(one.ours)) for one in work_out(example)]
    return render("worked.html", rows=rows, figures=tuple(_figures(example)))


def table() -> list[list[str]]:
    """Every worked example as rows of text: where, what, the paper's, ours, verdict, note."""
    head = ["where", "what", "paper", "ours", "verdict", "note"]
    return [head, *([*_cells(one)] for one in work_out())]


def _cells(one: Worked) -> Iterable[str]:
    verdict = {None: "drawn only", True: "held", False: "did not hold"}[one.holds]
    return one.where, one.what, _show(one.printed), _show(one.ours), verdict, one.note


def _figures(example: RunningExample) -> Iterable[Figure]:
    whole, left = example.possible(example.labels), example.possible(LEFT)
    none = np.zeros((0, 2), dtype=np.int64)
    edges = example.policy.edges
    reduced = example.policy.restricted_to(left)
    yield _figure(
        example, "Figure 3. The running example",
        Panel("(a) Six states in three categories.", none, whole),
        Panel("(b) Each looks like the others of its category.", edges, whole),
        Panel("(c) Only s2, s3 and s5 are possible.", none, left),
        Panel("(d) What is left of the graph: s5 stands alone.", reduced.edges, left),
        note="Drawn in measurement space, where the paper has a street map.",
    )  # fmt: skip
    matrix = example.model.transition.toarray() * (1 - np.eye(len(whole)))
    moves = np.argwhere(matrix > 0)
    chances = matrix[matrix > 0].tolist()
    yield _figure(
        example, "Figure 4. The Markov model and its query",
        Panel("Moves, their probabilities near where they begin.", moves, whole, written=chances),
        Panel("Temperature across, noise level upwards.", none, whole),
        note="The paper draws its probabilities; these are ours, and staying is not drawn.",
    )  # fmt: skip
    policies = example.policies
    yield _figure(
        example, "Figure 5. Four kinds of policy",
        *(Panel(f"{NAMES[name]}: {len(graph.edges)} edges.", graph.edges, whole)
          for name, graph in policies.items()),
    )  # fmt: skip
    later = example.possible(EXPOSING)
    limited = {name: later if name == "one_step" else left for name in policies}
    yield _figure(
        example, "Figure 6. The same policies under constraints",
        *(_constrained(example, NAMES[name], policies[name], limited[name]) for name in policies),
        note="The constraint sets are ours: one and two steps after s1.",
    )  # fmt: skip
    hull = sensitivity_hull(example.query, example.policy)
    yield Figure(
        "Figure 7. The sensitivity hull",
        [
            _panel(example, Panel("(a) The policy in measurement space.", edges, whole)),
            _hulls(hull, f"(b) K, area {as_text(hull.volume)}, within the l1 ball (dashed)."),
        ],
    )
    flat = sensitivity_hull(example.query, reduced)
    yield _figure(
        example, "Figure 8. Exposure in Example 5.2",
        Panel("K is a line: around s2 it holds s3.", reduced.edges, left, flat, 1),
        Panel("Around s5 it holds nobody: s5 is exposed.", reduced.edges, left, flat, 4),
    )  # fmt: skip
    yield _figure(
        example, "Figure 9. Degree of protection, and three repairs of Example 6.1",
        *_repairs(example),
    )  # fmt: skip
    yield Figure(
        "Example 5.3. The hull of a table of patients",
        [_hulls(patients().hull(), "K within the l1 ball (dashed).")],
        note="The counts of cancer across, of diabetes upwards.",
    )


def _figure(example: RunningExample, title: str, *panels: Panel, note: str = "") -> Figure:
    return Figure(title, [_panel(example, panel) for panel in panels], note)


def _constrained(example: RunningExample, name: str, policy: PolicyGraph, possible: Mask) -> Panel:
    graph = policy.restricted_to(possible)
    caption = f"{name}, possible {', '.join(example.named(possible))}: {len(graph.edges)} edges."
    return Panel(caption, graph.edges, possible)


def _repairs(example: RunningExample) -> Iterable[Panel]:
    hiding, exposing = example.possible(HIDING), example.possible(EXPOSING)
    graph = example.policy.restricted_to(hiding)
    hull = sensitivity_hull(example.query, graph)
    yield Panel(
        "(a) s2 has no edge, and K around it holds s4 and s5.", graph.edges, hiding, hull, 1
    )
    graph = example.policy.restricted_to(exposing)
    hull = sensitivity_hull(example.query, graph)
    yield Panel("(b) K around s3 holds nobody.", graph.edges, exposing, hull, 2)
    for letter, other in zip("cde", ("s4", "s6", "s5"), strict=True):
        added = np.array([[2, example.number(other)]])
        larger = sensitivity_hull(example.query, graph.with_edges(added))
        error = as_text(larger.mean_squared_error(1))
        caption = f"({letter}) s3 joined to {other}: area {as_text(larger.volume)}, error {error}."
        yield Panel(caption, graph.edges, exposing, larger, 2, (hull,), added)


def _panel(example: RunningExample, panel: Panel) -> tuple[str, str]:
    points = example.query.values
    shown = [points - 0.4, points + 0.4]
    centre = np.zeros(2) if panel.around is None else points[panel.around]
    bodies = (
        [] if panel.body is None else [(panel.body, "body"), *((b, "inner") for b in panel.also)]
    )
    rings = [(outline(body) + centre, kind) for body, kind in bodies]
    frame = Frame.around(np.concatenate([*shown, *(ring for ring, _ in rings)]), margin=30)
    parts = [frame.polygon(ring, kind) for ring, kind in rings]
    parts.append(frame.segments(points[panel.edges[:, 0]], points[panel.edges[:, 1]], "edge"))
    parts.append(frame.segments(points[panel.added[:, 0]], points[panel.added[:, 1]], "edge new"))
    for (here, there), share in zip(panel.edges.tolist(), panel.written, strict=False):
        ((x, y),) = frame.place(0.7 * points[here] + 0.3 * points[there]).tolist()
        parts.append(tag("text", f"{share:g}", x=x, y=y + 5, kind="share middle halo"))
    for state, (x, y) in enumerate(frame.place(points).tolist()):
        kind = KINDS[example.kinds[state]] if panel.possible[state] else "land"
        parts.append(_mark(example.kinds[state], x, y, kind))
        parts.append(tag("text", example.labels[state], x=x, y=y + 9, kind="name middle"))
    return drawing(parts, frame.height, panel.caption), panel.caption


def _mark(category: str, x: float, y: float, kind: str) -> str:
    """An octagon, a circle or a square, as in the paper: colour alone tells too little."""
    size = 20.0
    if category == "school":
        return tag("circle", cx=x, cy=y, r=size, kind=f"mark {kind}")
    if category == "grocery":
        return tag(
            "rect", x=x - size, y=y - size, width=2 * size, height=2 * size, kind=f"mark {kind}"
        )
    turn = np.pi / 8 + np.arange(8) * np.pi / 4
    corners = np.column_stack([x + 1.1 * size * np.cos(turn), y + 1.1 * size * np.sin(turn)])
    listed = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners.tolist())
    return tag("polygon", points=listed, kind=f"mark {kind}")


def _hulls(hull: SensitivityHull, caption: str) -> tuple[str, str]:
    ring, ball = outline(hull), outline(hull.l1_ball())
    frame = Frame.around(np.concatenate([ring, ball]), margin=30)
    parts = [frame.polygon(ring, "body"), frame.polygon(ball, "ball")]
    parts.append(frame.dots([[0.0, 0.0]], 3.0, "origin"))
    for (x, y), corner in zip(frame.place(ring).tolist(), ring.astype(int).tolist(), strict=True):
        label = f"({corner[0]}, {corner[1]})"
        parts.append(tag("text", label, x=x, y=y - 8, kind="name middle halo"))
    return drawing(parts, frame.height, caption), caption


def _show(value: Any) -> str:
    """A number, a name or a row of either, as a reader writes it."""
    if value is None:
        return "–"
    if isinstance(value, tuple):
        inside = ", ".join(_show(one) for one in value)
        pair = len(value) == 2 and not isinstance(value[0], tuple)
        return f"({inside})" if pair else inside
    if value == inf:
        return "∞"
    return as_text(value) if isinstance(value, Fraction) else str(value)
