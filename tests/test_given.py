"""The places that a track gives away: runs of releases at which one is likelier than all others."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dphmm.chain.belief import Belief
from dphmm.report.given import places_given_away

BELIEFS = st.lists(
    st.lists(st.integers(1, 50), min_size=3, max_size=3).map(
        lambda weights: Belief.known(np.array(weights) / sum(weights), 3)
    ),
    min_size=1,
    max_size=12,
)


@given(BELIEFS)
def test_each_release_at_which_a_place_is_sure_is_in_one_run_and_no_other_is(
    beliefs: list[Belief],
) -> None:
    found = places_given_away(beliefs, beliefs)
    listed = {n: one.state for one in found if one.is_sure for n in range(one.first, one.last + 1)}
    expected = {
        number: int(belief.probabilities.argmax())
        for number, belief in enumerate(beliefs)
        if belief.probabilities.max() > 0.5
    }
    assert listed == expected
    assert [one.releases for one in found] == sorted((one.releases for one in found), reverse=True)
    assert expected or (len(found) == 1 and not found[0].is_sure)


def test_a_run_ends_where_another_place_begins_and_tells_both_means() -> None:
    here, there, vague = (Belief.known(p, 2) for p in ([0.9, 0.1], [0.2, 0.8], [0.5, 0.5]))
    first, second = places_given_away([here, here, there, vague], [vague] * 4)
    assert (first.state, first.first, first.last, second.state, second.first) == (0, 0, 1, 1, 2)
    assert (round(first.sure, 9), first.before) == (0.9, 0.5)
