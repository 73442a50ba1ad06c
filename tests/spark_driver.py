"""A driver of its own: python -m tests.spark_driver MASTER SCENARIO INBOX OUT CHECKPOINT KEY."""

from __future__ import annotations

import sys

from dphmm.scenario import Scenario
from dphmm.spark import read_stream, release_stream, session


def main(master: str, scenario: str, inbox: str, out: str, checkpoint: str, key: str) -> None:
    """Answer what is in the inbox, a file at a time, and stop."""
    spark = session(master, options={"spark.sql.shuffle.partitions": "2"})
    query = release_stream(
        read_stream(spark, inbox, files=1), Scenario.load(scenario), out,
        checkpoint=checkpoint, key_file=key, trigger={"availableNow": True},
    )  # fmt: skip
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
