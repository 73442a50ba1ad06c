"""Spark sessions that encrypt what they write and send, and what their failures mean."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from dphmm.errors import (
    ArgumentError,
    BudgetError,
    DataError,
    DphmmError,
    MissingExtraError,
    require,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_encrypted", "exact_faults", "plain_faults", "session"]

ENCRYPTED = {
    "spark.authenticate": "true",
    "spark.io.encryption.enabled": "true",
    "spark.network.crypto.enabled": "true",
}
"""Shuffles, spills, cached and broadcast blocks on disk, and everything between processes."""

DEFAULTS = {
    **ENCRYPTED,
    "spark.eventLog.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # A belief of 10,000 states is 80 kB, and a batch of rows must fit a small worker.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(16 * 2**20),
    # A stateful query cannot unpack a function that Spark turned into a broadcast.
    "spark.broadcast.UDFCompressionThreshold": str(256 * 2**20),
    # One writer a table, so that rows need not be sorted by table first.
    "spark.sql.maxConcurrentOutputFileWriters": "8",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # A task has one core; threads of its own would fight the other tasks for theirs.
    "spark.executorEnv.NUMBA_NUM_THREADS": "1",
    "spark.executorEnv.OMP_NUM_THREADS": "1",
    "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
}


def session(
    master: str = "local[*]", *, name: str = "dphmm", options: Mapping[str, str] | None = None
) -> SparkSession:
    """A session with encryption on and the event log off; `options` are Spark's own settings.

    A standalone cluster needs the secret that its processes share, `spark.authenticate.secret`,
    best from the file spark-defaults.conf, which only its owner can read.
    """
    sql = require("pyspark.sql", "spark")
    require("pyarrow", "spark")
    if not _has_java():
        raise MissingExtraError(
            "Spark needs a Java runtime; install Java 17 or newer (openjdk-17-jre-headless)"
        )
    # Otherwise workers take the system's Python, which has none of our packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = sql.SparkSession.builder.master(master).appName(name)
    # What runs on one machine listens to that machine only.
    here = {"spark.driver.host": "127.0.0.1"} if master.startswith("local") else {}
    for key, value in {**DEFAULTS, **here, **(options or {})}.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except Exception as fault:
        reason = re.search(r"requirement failed: (.*)|Exception: (.*)", str(fault))
        said = next((text for text in reason.groups() if text), "") if reason else str(fault)
        raise ArgumentError(
            f"master must be one that Spark can start, got {master!r}: {said.splitlines()[0]}"
        ) from None


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return bool(shutil.which("java") or (home and (Path(home) / "bin" / "java").exists()))


def check_encrypted(spark: SparkSession) -> None:
    """Refuse a session that would write true states to disk or wire as they are."""
    settings = spark.sparkContext.getConf()
    wanted = [key for key in ENCRYPTED if settings.get(key, "false") != "true"]
    if spark.sparkContext.master.startswith("local"):
        wanted = [key for key in wanted if key == "spark.io.encryption.enabled"]
    if wanted:
        raise ArgumentError(
            f"spark must be a session with {' and '.join(wanted)} set to true, got one without; "
            f"dphmm.spark.session makes such a session"
        )


_OURS = re.compile(r"dphmm\.errors\.(\w+): (.*)")
_OVER = re.compile(r"over: (\{.*\})")

_EXACT = ("spent", "requested", "remaining")


@contextmanager
def exact_faults() -> Iterator[None]:
    """Put a budget error's numbers into words, which survive the way from worker to driver."""
    try:
        yield
    except BudgetError as fault:
        numbers = {key: str(value) for key, value in vars(fault).items() if key in _EXACT}
        raise ArgumentError(f"over: {json.dumps({**vars(fault), **numbers})}") from None


@contextmanager
def plain_faults() -> Iterator[None]:
    """Turn what a worker raised, which Spark wraps in pages of text, into our own error."""
    try:
        yield
    except DphmmError:
        raise
    except Exception as fault:
        found = _OURS.search(str(fault))
        if found is None:
            # Only Spark's name for it: its words may show rows.
            named = re.match(r"\s*\[([A-Z0-9_.]+)\]", str(fault))
            kind = named[1] if named else type(fault).__name__
            raise DphmmError(f"Spark must finish its work, got {kind}; its log says more") from None
        over = _OVER.search(found[2])
        if over:
            facts = json.loads(over[1])
            numbers = {key: Fraction(facts[key]) for key in _EXACT}
            raise BudgetError(**{**facts, **numbers}) from None
        raise DataError(found[2].strip()) from None
