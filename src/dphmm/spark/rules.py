"""What workers are told: public things as a broadcast, and where their own key file is."""

from __future__ import annotations

import hashlib
import pickle
import zlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dphmm.errors import require
from dphmm.noise.cones import fan_of
from dphmm.scenario.scenario import Scenario
from dphmm.tables.keys import read_key

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Rules"]

PREPARED = 64
"""Steps whose possible sets and hulls the driver computes for all workers."""

LOADED = 4
"""Scenarios that a worker process keeps, with the hulls that it has met."""

_loaded: OrderedDict[str, Scenario] = OrderedDict()


@dataclass(frozen=True)
class Rules:
    """A scenario, and the path of the key on each worker; the key itself never travels."""

    public: Any
    """The pickled scenario and its hulls, as bytes or as a broadcast of them."""
    digest: str
    key_file: str

    @classmethod
    def shared(cls, spark: SparkSession, scenario: Scenario, key_file: str) -> Rules:
        """Send the scenario to every worker once."""
        _prepare(scenario)
        content = pickle.dumps(scenario, protocol=pickle.HIGHEST_PROTOCOL)
        digest = hashlib.sha256(content).hexdigest()
        return cls(spark.sparkContext.broadcast(content), digest, str(key_file))

    @classmethod
    def carried(cls, scenario: Scenario, key_file: str) -> Rules:
        """Send the scenario with the function itself: stateful queries know no broadcasts."""
        s = scenario
        bare = Scenario.from_settings(s.settings, s.states, s.model, s.source, s.edges)
        content = pickle.dumps(bare, protocol=pickle.HIGHEST_PROTOCOL)
        return cls(zlib.compress(content), hashlib.sha256(content).hexdigest(), str(key_file))

    def scenario(self) -> Scenario:
        """The scenario, made once in each worker process."""
        if self.digest not in _loaded:
            # Numba's own threads would fight the cores of other tasks.
            require("numba", "spark").set_num_threads(1)
            carried = isinstance(self.public, bytes)
            content = zlib.decompress(self.public) if carried else self.public.value
            _loaded[self.digest] = pickle.loads(content)
            if len(_loaded) > LOADED:
                _loaded.popitem(last=False)
        return _loaded[self.digest]

    def key(self) -> bytes:
        """The key, from the worker's own disk."""
        return read_key(self.key_file)


def _prepare(scenario: Scenario) -> None:
    """Meet the possible sets of the first steps, which are the same for everybody."""
    possible, price = scenario.start.possible, scenario.settings.epsilon
    met: set[bytes] = set()
    for time in range(1, PREPARED + 1):
        possible = scenario.model.at(time).successors(possible)
        if possible.tobytes() in met:
            continue
        met.add(possible.tobytes())
        fan_of(scenario.plan.at(possible).mechanism(price).body)
