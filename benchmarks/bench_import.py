"""What it costs to import and to compile."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from time import perf_counter

from benchmarks import Figure
from dphmm.kernels import VARIABLE

BASE = "import numpy, scipy.sparse, scipy.spatial"
WORK = """
import numpy as np
from dphmm import MarkovModel, Plan, PolicyGraph, Query, Stream
model = MarkovModel(np.full((9, 9), 1 / 9))
query = Query(np.array(list(np.ndindex(3, 3))))
Stream(model, Plan(PolicyGraph.complete(9), query), epsilon=1, start=0).release(4)
"""


def seconds(code: str, cache: str | None = None) -> float:
    environment = dict(os.environ) | ({"NUMBA_CACHE_DIR": cache} if cache else {})
    # As for everybody: what is measured elsewhere is the compiled code, from the first call on.
    environment.pop(VARIABLE, None)
    start = perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    return perf_counter() - start


def compiled(cache: str) -> int:
    """How many compiled functions a cache folder holds."""
    return sum(name.endswith(".nbc") for _, _, names in os.walk(cache) for name in names)


def run() -> list[Figure]:
    base, ours = float("inf"), float("inf")
    for _ in range(7):
        base, ours = min(base, seconds(BASE)), min(ours, seconds("import dphmm"))
    with tempfile.TemporaryDirectory() as cache:
        first = seconds(WORK, cache)
        before = compiled(cache)
        second = seconds(WORK, cache)
        new = compiled(cache) - before
    return [
        Figure("import dphmm", ours, "s", "numpy and scipy alone", ours / base, "ratio <= 1.3"),
        Figure("first release ever, compiling", first, "s"),
        Figure("first release of a second run", second, "s"),
        Figure("functions that the second run compiled", new, "", target="value <= 0"),
    ]
