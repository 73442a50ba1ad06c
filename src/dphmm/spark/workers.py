"""What workers are told: public things as a broadcast, and where their own key file is."""

from __future__ import annotations

import gc
import hashlib
import pickle
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cachetools import LRUCache

from dphmm.errors import require
from dphmm.noise.randomness import KeyedRandomness
from dphmm.release.moment import check_client
from dphmm.release.terms import Terms
from dphmm.scenario.scenario import Scenario
from dphmm.tables.keys import read_key

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Setup", "terms_of"]

PREPARED = 64
"""Steps whose possible sets and hulls the driver computes for all workers."""

_loaded: LRUCache[str, Scenario] = LRUCache(4)
"""Scenarios that a worker process keeps, with the hulls that it has met."""


@dataclass(frozen=True)
class Setup:
    """A scenario, and the path of the key on each worker; the key itself never travels."""

    public: Any
    """The pickled scenario and its hulls, as bytes or as a broadcast of them."""
    digest: str
    key_file: str
    client: str
    used: str | None = None
    """The fingerprint of the key that the continued run used."""

    @classmethod
    def share(
        cls,
        spark: SparkSession,
        scenario: Scenario,
        key_file: str,
        client: str,
        used: str | None = None,
    ) -> Setup:
        """Send the scenario to every worker once."""
        _prepare(scenario)
        content = pickle.dumps(scenario, protocol=pickle.HIGHEST_PROTOCOL)
        digest = hashlib.sha256(content).hexdigest()
        public = spark.sparkContext.broadcast(content)
        return cls(public, digest, str(key_file), check_client(client), used)

    @classmethod
    def carry(cls, scenario: Scenario, key_file: str, client: str) -> Setup:
        """Send the scenario with the function itself: stateful queries know no broadcasts."""
        # A copy without the hulls that this one has met.
        content = pickle.dumps(scenario.replace(), protocol=pickle.HIGHEST_PROTOCOL)
        digest = hashlib.sha256(content).hexdigest()
        return cls(zlib.compress(content), digest, str(key_file), check_client(client))

    def scenario(self) -> Scenario:
        """The scenario, made once in each worker process."""
        if self.digest not in _loaded:
            # Numba's own threads would fight the cores of other tasks.
            require("numba", "spark").set_num_threads(1)
            carried = isinstance(self.public, bytes)
            content = zlib.decompress(self.public) if carried else self.public.value
            _loaded[self.digest] = pickle.loads(content)
            # What is loaded by now stays; the collector need not look through it again.
            gc.freeze()
        return _loaded[self.digest]

    def randomness(self) -> KeyedRandomness:
        """Noise by the key on the worker's own disk."""
        return KeyedRandomness(read_key(self.key_file))


def terms_of(scenario: Scenario) -> Terms:
    """The scenario's terms for a worker, which has one core."""
    return replace(scenario.terms, threads=1)


def _prepare(scenario: Scenario) -> None:
    """Meet the possible sets of the first steps, which are the same for everybody."""
    terms = scenario.terms
    possible, first = terms.start.possible, terms.origin or 0
    met: set[bytes] = set()
    for time in range(first + 1, first + PREPARED + 1):
        possible = terms.model.reach(possible, time)
        if possible.tobytes() in met:
            continue
        met.add(possible.tobytes())
        places = terms.model.place_mask(possible)
        terms.plan.at(places).mechanism(terms.epsilon).sampler  # noqa: B018 (makes it)
