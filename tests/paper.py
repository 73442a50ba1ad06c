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

# Example 5.1: the columns of the difference matrix, the l1 sensitivity; the area is ours.
DIFFERENCES = ((-1, 1), (1, -1), (-4, -1), (4, 1), (-1, -1), (1, 1), (3, 0), (-3, 0))
L1_SENSITIVITY = 5
AREA = 11

# Possible sets, as masks over s1..s6.
POSSIBLE_EXPOSING_S5 = (False, True, True, False, True, False)  # Example 5.2
POSSIBLE_HIDING_S2 = (False, True, False, True, True, True)  # below Definition 5.2
POSSIBLE_EXPOSING_S3 = (False, False, True, True, True, True)  # Example 6.1

# Example 5.2: the log ratio of Laplace noise, in epsilons, for s5 against s2 and s3.
LAPLACE_LOSS = "3/2"

# Below Definition 5.2: DoP(s2) = 3, because s4 and s5 lie in f(s2) + K.
DEGREE_OF_S2 = 3

# Example 6.1: joining s3 to s4, s5 or s6 (numbers 3, 4, 5). The paper draws the areas; these
# numbers and the mean squared errors at epsilon 1 are from its formulas.
REPAIRED_AREA = {3: 14, 4: 16, 5: 20}
REPAIRED_ERROR = {3: 54, 4: 47, 5: 50}
AREA_BEFORE_REPAIR = 9
ERROR_BEFORE_REPAIR = "140/3"
