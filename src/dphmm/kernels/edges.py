"""Which edges of a policy are left on a possible set."""

from __future__ import annotations

import numpy as np

from dphmm._types import IntArray, Mask
from dphmm.kernels.compiling import kernel


@kernel(lambda links, class_of, n_classes, possible: 2 * len(links))
def living(
    links: IntArray, class_of: IntArray, n_classes: int, possible: Mask
) -> tuple[Mask, Mask]:
    """The classes with an edge whose ends are possible, and the states at such ends."""
    present = np.zeros(n_classes, dtype=np.bool_)
    connected = np.zeros(len(possible), dtype=np.bool_)
    for i in range(len(links)):
        a, b = links[i, 0], links[i, 1]
        if possible[a] and possible[b]:
            present[class_of[i]] = True
            connected[a] = True
            connected[b] = True
    return present, connected
