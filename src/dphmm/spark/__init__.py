"""The same release and learning on Apache Spark, for what one machine cannot hold.

Answers and ledgers equal the local engine's under the same key: a person's rows meet in one
partition, in order of time, and noise is a function of the key and of the moment, so that a
task that Spark runs twice says the same thing twice.
"""

from __future__ import annotations

from dphmm.spark.bulk import Summary, ledger, release, releases, state
from dphmm.spark.counting import learn_private, learn_public
from dphmm.spark.sessions import session
from dphmm.spark.streaming import release_stream
from dphmm.spark.tables import read_stream, read_table

__all__ = [
    "Summary",
    "learn_private",
    "learn_public",
    "ledger",
    "read_stream",
    "read_table",
    "release",
    "release_stream",
    "releases",
    "session",
    "state",
]
