"""The paper's running example as the body of a request."""

from __future__ import annotations

from tests import paper

ROWS = enumerate(zip(paper.VALUES, paper.CATEGORIES, strict=True), start=1)
STATES = "label,temperature,noise,kind\n" + "\n".join(
    f"s{number},{values[0]},{values[1]},kind{category}" for number, (values, category) in ROWS
)
TOML = """
name = "paper"
epsilon = 1
start = "s1"
[query]
columns = ["temperature", "noise"]
[policy]
category = "kind"
[time]
origin = 0
"""


def body(toml=TOML):
    return {"scenario": toml, "states": STATES, "transition": [list(r) for r in paper.TRANSITION]}
