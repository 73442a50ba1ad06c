"""Small scenarios on disk, for the tests of files and commands.

Labels and coordinates of true states carry a mark, so that a test can see one that leaks.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner, Result
from hypothesis import settings as profile
from hypothesis import strategies as st

from dphmm import MarkovModel
from dphmm.cli.program import program
from dphmm.scenario import Clock, Policy, Scenario, Settings, States
from tests import paper

MARK = "zq"
"""The beginning of every label here; it is in no message, header or file name."""

FEWER = profile(max_examples=max(1, profile.default.max_examples * 2 // 5))
"""For tests that run whole commands: 20 examples in the short profile."""

LABELS = tuple(f"{MARK}{number}" for number in range(1, 7))


def paper_scenario(**changes: Any) -> Scenario:
    """The running example, which starts at s1; `changes` are settings."""
    values = np.array(paper.VALUES, dtype=np.float64)
    states = States(
        LABELS,
        {"x": values[:, 0], "y": values[:, 1]},
        {"category": tuple(f"kind {number}" for number in paper.CATEGORIES)},
    )
    settings = {"start": LABELS[0], "policy": Policy(category="category"), **changes}
    settings.setdefault("epsilon", Fraction(1))
    return Scenario.from_settings(
        Settings("paper", **settings), states, MarkovModel(paper.TRANSITION)
    )


def written(folder: Path, **changes: Any) -> Path:
    """The running example as files; returns the path of its TOML file."""
    path = folder / "paper.toml"
    paper_scenario(**changes).save(path)
    return path


def trips(*rows: tuple[str, object, int]) -> str:
    """CSV lines of (person, time, state number from 1)."""
    lines = [f"{person},{time},{MARK}{state}" for person, time, state in rows]
    return "\n".join(["person,time,state", *lines]) + "\n"


def run(*arguments: object, stdin: str | bytes | None = None) -> Result:
    """What the program does with some arguments."""
    return CliRunner().invoke(program, [str(argument) for argument in arguments], input=stdin)


def is_one_line(text: str) -> bool:
    return text.endswith("\n") and text.count("\n") == 1


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Any small scenario that makes sense."""
    n_states = draw(st.integers(2, 5))
    corner = st.integers(-20, 20)
    places = draw(
        st.lists(st.tuples(corner, corner), min_size=n_states, max_size=n_states, unique=True)
    )
    weights = np.array(
        draw(
            st.lists(
                st.lists(st.integers(0, 3), min_size=n_states, max_size=n_states),
                min_size=n_states,
                max_size=n_states,
            )
        ),
        dtype=np.float64,
    )
    weights[np.arange(n_states), (np.arange(n_states) + 1) % n_states] += 1
    delta = draw(st.sampled_from([0.0, 0.0, 0.125]))
    mechanism = draw(st.sampled_from(["knorm", "staircase", "laplace", "isotropic"]))
    policy = Policy(
        complete=delta > 0 or draw(st.booleans()),
        category=draw(st.sampled_from([None, "category"])),
        distance=draw(st.sampled_from([None, Fraction(0), Fraction(21, 2)])),
        one_step=draw(st.booleans()),
    )
    settings = Settings(
        draw(st.sampled_from(["town", 'a "quoted" name', "tab\there"])),
        draw(st.sampled_from([Fraction(1, 3), Fraction(1), Fraction(5, 2)])),
        limit=draw(st.sampled_from([None, Fraction(1000)])),
        start=draw(st.sampled_from(["uniform", LABELS[0], {LABELS[0]: 0.25, LABELS[1]: 0.75}])),
        step=draw(st.sampled_from([Fraction(1), Fraction(1, 2)])),
        policy=policy,
        mechanism=mechanism,
        shape="hull"
        if mechanism == "laplace"
        else draw(st.sampled_from(["hull", "enlarged", "l1"])),
        gamma=draw(st.sampled_from([None, Fraction(1, 3)])) if mechanism == "staircase" else None,
        repair=draw(st.sampled_from(["nearest", "min_area", "min_error", None])),
        full_rank=draw(st.booleans()),
        delta=delta,
        clock=Clock(draw(st.integers(1, 3))),
    )
    states = States.on_plane(
        places, draw(st.lists(st.sampled_from("ab"), min_size=n_states, max_size=n_states)),
        LABELS[:n_states],
    )  # fmt: skip
    return Scenario.from_settings(settings, states, MarkovModel.from_counts(weights))
