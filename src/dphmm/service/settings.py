"""What can be chosen about a running service."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from dphmm.errors import ArgumentError
from dphmm.geometry.exact import Exact, as_epsilon

__all__ = ["ServiceSettings"]


@dataclass(frozen=True)
class ServiceSettings:
    """Limits and times of a service; the defaults suit one small machine."""

    tick: float = 0.05
    """Seconds; an answer leaves a whole number of ticks after its request came. 0 is off."""
    threads: int = 4
    """How many requests use the store at once."""
    waiting: int = 1000
    """How many more may wait for a thread, half of them one client's, before 503 is said."""
    workers: int = 2
    """How many requests that may be long run at once, each in a process of its own."""
    long_waiting: int = 16
    """How many more of those may wait for each client."""
    long_seconds: float = 20.0
    """Seconds that one of them may take."""
    long_memory: int = 2**30
    """Bytes that one of them may take."""
    rate: float = 1000.0
    """Requests a second for each client; 0 is off."""
    wrong_keys: float = 5.0
    """Keys a second from one address that are looked up though nobody knows them."""
    largest_body: int = 2**24
    """Bytes of a scenario; other bodies may have a thousandth of it."""
    slowest_body: float = 10.0
    """Seconds in which a body must have come."""
    key_memory: float = 5.0
    """Seconds until a revoked key stops working."""
    scenarios: int = 32
    """How many small scenarios are kept ready."""
    most_scenarios: int = 100
    """How many scenarios a client may have."""
    most_states: int = 100_000
    """How many states each of them may have."""
    most_bytes: int = 2**28
    """Bytes of all scenarios of a client."""
    most_people: int = 1_000_000
    """How many people a client may have."""
    largest_track: int = 20_000_000
    """Steps times states that a smoothed track or a privacy statement may take."""
    largest_epsilon: Exact | None = None
    """What a request may pay for one release, if more than its scenario's own epsilon."""

    def __post_init__(self) -> None:
        if not 0 <= self.tick <= 60:
            raise ArgumentError(f"tick must be 0 to 60 seconds, got {self.tick!r}")
        for name in COUNTS:
            if getattr(self, name) < 1:
                raise ArgumentError(f"{name} must be at least 1, got {getattr(self, name)!r}")
        for name in ("rate", "wrong_keys", "slowest_body", "key_memory", "long_seconds"):
            if not 0 <= getattr(self, name) < inf:
                raise ArgumentError(
                    f"{name} must be finite and at least 0, got {getattr(self, name)!r}"
                )
        if self.largest_epsilon is not None:
            most = as_epsilon(self.largest_epsilon, "largest_epsilon")
            object.__setattr__(self, "largest_epsilon", most)


COUNTS = (
    *("threads", "waiting", "workers", "long_waiting", "long_memory", "largest_body", "scenarios"),
    *("most_scenarios", "most_states", "most_bytes", "most_people", "largest_track"),
)
