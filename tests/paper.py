"""The paper's running example, with states s1..s6 numbered 0..5.

The paper's figures are not at hand, so the transition probabilities are ours. They are
chosen so that the possible sets of the examples come up: from s1 one step leads to
{s2, s3, s5} and two steps to {s3, s4, s5, s6}; from s4 one step leads to {s2, s4, s5, s6}
and from s6 to {s4, s5, s6}. All are multiples of a quarter, so floats hold them exactly.
"""

from __future__ import annotations

TRANSITION = (
    (0.0, 0.5, 0.25, 0.0, 0.25, 0.0),
    (0.0, 0.0, 0.5, 0.5, 0.0, 0.0),
    (0.0, 0.0, 0.5, 0.0, 0.5, 0.0),
    (0.0, 0.25, 0.0, 0.25, 0.25, 0.25),
    (0.0, 0.0, 0.0, 0.0, 0.5, 0.5),
    (0.0, 0.0, 0.0, 0.25, 0.25, 0.5),
)

# Example 3.2: temperature and noise level of each state.
VALUES = ((1, 0), (2, 1), (3, 0), (0, 1), (4, 2), (1, 2))

# Figure 1: {s1} the octagon, {s2, s3} the circles, {s4, s5, s6} the squares.
CATEGORIES = (0, 1, 1, 2, 2, 2)
