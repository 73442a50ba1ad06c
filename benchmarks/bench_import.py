"""What it costs to import and to compile.

Both sides of an import are read as an installation leaves them, with their bytecode: a checkout
beside `PYTHONDONTWRITEBYTECODE` would be compiled anew each time, and numpy would not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from resource import RUSAGE_CHILDREN, getrusage

from benchmarks import Figure
from dphmm.kernels import VARIABLE

BASE = "import numpy, scipy.sparse, scipy.spatial"
WORK = """
from time import process_time
import dphmm
began = process_time()
import numpy as np
from dphmm import MarkovModel, Plan, PolicyGraph, Query, Stream
model = MarkovModel(np.full((9, 9), 1 / 9))
query = Query(np.array(list(np.ndindex(3, 3))))
Stream(model, Plan(PolicyGraph.complete(9), query), epsilon=1, start=0).release(4)
print(process_time() - began)
"""


def with_bytecode(folder: str) -> dict[str, str]:
    """The environment of a process that keeps the bytecode of all that it imports in a folder."""
    environment = dict(os.environ) | {"PYTHONPYCACHEPREFIX": folder}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def seconds(code: str, environment: dict[str, str]) -> float:
    """Seconds of processor time of a process."""
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_release(cache: str) -> float:
    """Seconds of processor time of a process's first release, after the import."""
    environment = dict(os.environ) | {"NUMBA_CACHE_DIR": cache}
    environment.pop(VARIABLE, None)
    command = [sys.executable, "-c", WORK]
    said = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
    return float(said.stdout)


def compiled(cache: str) -> int:
    """How many compiled functions a cache folder holds."""
    return sum(name.endswith(".nbc") for _, _, names in os.walk(cache) for name in names)


def run() -> list[Figure]:
    base, ours = float("inf"), float("inf")
    with tempfile.TemporaryDirectory() as folder:
        environment = with_bytecode(folder)
        for code in (BASE, "import dphmm"):
            seconds(code, environment)
        for _ in range(7):
            base = min(base, seconds(BASE, environment))
            ours = min(ours, seconds("import dphmm", environment))
    with tempfile.TemporaryDirectory() as cache:
        first = first_release(cache)
        before = compiled(cache)
        second = min(first_release(cache) for _ in range(3))
        new = compiled(cache) - before
    return [
        Figure("import dphmm", ours, "s", "numpy and scipy alone", ours / base, "ratio <= 1.2"),
        Figure("first release ever, after the import", first, "s", target="value <= 3"),
        Figure("first release of a second run", second, "s", target="value <= 0.4"),
        Figure("functions that the second run compiled", new, "", target="value <= 0"),
    ]
