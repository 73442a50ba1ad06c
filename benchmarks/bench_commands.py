"""The five commands of the README on half a million fixes, in processor time and memory.

Nothing is compiled before the first: what a newcomer waits for is counted.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import Figure
from dphmm.kernels import VARIABLE
from tests.cabs import write_cabs
from tests.test_five_commands import commands

PLAIN = {"import": "a map", "learn": "a model", "release": "answers", "report": "a page"}


def run() -> list[Figure]:
    figures, whole = [], 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_cabs(folder / "cabs/train", 80, 500_000, seed=1)
        write_cabs(folder / "cabs/people", 20, 26_000, seed=2)
        newcomer = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "compiled")}
        newcomer.pop(VARIABLE, None)
        for words in commands():
            program = [sys.executable, "-m", "dphmm", "--quiet", *words]
            child = subprocess.Popen(program, cwd=folder, env=newcomer)
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            if child.returncode:
                raise RuntimeError(f"dphmm {words[0]} ended with {child.returncode}")
            spent = used.ru_utime + used.ru_stime
            whole += spent
            target = "value <= 30" if words[0] == "report" else ""
            figures.append(Figure(f"{words[0]}: {PLAIN[words[0]]}", spent, "s", target=target))
        megabytes = used.ru_maxrss / 1024
    return [
        *figures,
        Figure("all five commands", whole, "s", target="value <= 60"),
        Figure("memory of the report", megabytes, "MB", target="value <= 1000"),
    ]
