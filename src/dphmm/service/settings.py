"""What can be chosen about a running service."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from ipaddress import ip_network
from math import inf
from pathlib import Path
from typing import Any

from dphmm.errors import ArgumentError, DataError
from dphmm.geometry.exact import Exact, as_epsilon

__all__ = ["ServiceSettings", "check_variables"]


@dataclass(frozen=True)
class ServiceSettings:
    """Limits and times of a service; the defaults suit one small machine."""

    tick: float = 0.05
    """Seconds; an answer leaves a whole number of ticks after its request came. 0 is off."""
    threads: int = 4
    """How many requests use the store at once."""
    waiting: int = 1000
    """How many more may wait for a thread, half of them one client's, before 503 is said."""
    workers: int = 1
    """How many processes answer requests on one port."""
    long_workers: int = 2
    """How many requests that may be long run at once, each in a process of its own."""
    long_waiting: int = 64
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
    sent_at_once: int = 2**26
    """Bytes of bodies that a client may have under way at once; one body is always taken."""
    connections: int = 1000
    """How many there may be at once; beyond, those without a request are closed."""
    slowest_head: float = 10.0
    """Seconds in which the head of a request must have come."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks whose X-Forwarded-For is believed."""
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
        for name in (
            "rate",
            "wrong_keys",
            "slowest_head",
            "slowest_body",
            "key_memory",
            "long_seconds",
        ):
            if not 0 <= getattr(self, name) < inf:
                raise ArgumentError(
                    f"{name} must be finite and at least 0, got {getattr(self, name)!r}"
                )
        if self.largest_epsilon is not None:
            most = as_epsilon(self.largest_epsilon, "largest_epsilon")
            object.__setattr__(self, "largest_epsilon", most)

    @classmethod
    def read(
        cls,
        given: Mapping[str, Any],
        environment: Mapping[str, str],
        file: str | Path | None = None,
    ) -> ServiceSettings:
        """Settings by name: from a TOML file, then the environment, then as given.

        Args:
            given: What somebody asked for, as numbers or as text.
            environment: Where `DPHMM_TICK` is the tick, and so on.
            file: The file, if there is one.
        """
        table: dict[str, Any] = {}
        if file is not None:
            try:
                table = tomllib.loads(Path(file).read_text(encoding="utf-8"))
            except (OSError, ValueError):
                raise DataError(f"{file}: settings must be a TOML file, got none") from None
        check_variables(environment)
        for name in (field.name for field in fields(cls)):
            if f"{PREFIX}{name.upper()}" in environment:
                table[name] = environment[f"{PREFIX}{name.upper()}"]
        table |= given
        defaults = {field.name: field.default for field in fields(cls)}
        unknown = sorted(table.keys() - defaults.keys())
        if unknown:
            raise ArgumentError(
                f"setting must be one of {', '.join(sorted(defaults))}, got {unknown[0]!r}"
            )
        return cls(**{name: _value(name, held, defaults[name]) for name, held in table.items()})


def _value(name: str, held: Any, default: Any) -> Any:
    """What was written, as the kind of number or list that the setting is."""
    if isinstance(default, tuple):
        return _networks(name, held)
    if default is None:
        return held
    try:
        value = type(default)(held)
    except (OverflowError, TypeError, ValueError):
        value = None
    # What a file has as a fraction or as a truth is no number of processes.
    if value is None or isinstance(held, bool) or (isinstance(held, float) and value != held):
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise ArgumentError(f"{name} must be {kind}, got {held!r}")
    return value


def _networks(name: str, held: Any) -> tuple[str, ...]:
    """Addresses and networks; the server would take any other text for one that nobody has."""
    if isinstance(held, str):
        held = held.split(",") if held.strip() else ()
    found: list[str] = []
    for one in held if isinstance(held, list | tuple) else [held]:
        text = one.strip() if isinstance(one, str) else ""
        try:
            ip_network(text)
        except ValueError:
            raise ArgumentError(
                f"{name} must be addresses or networks such as 10.0.0.0/8, got {one!r}"
            ) from None
        found.append(text)
    return tuple(found)


def check_variables(environment: Iterable[str]) -> None:
    """Refuse a variable that is nearly one of ours: nobody else would say that it was not heard."""
    known = [*OTHERS, *(field.name.upper() for field in fields(ServiceSettings))]
    for given in sorted(name for name in environment if name.startswith(PREFIX)):
        name = given.removeprefix(PREFIX)
        near = [] if name in known else get_close_matches(name, known, 1, NEAR)
        if near:
            raise ArgumentError(f"{given} must be {PREFIX}{near[0]} or another name, got a slip")


PREFIX = "DPHMM_"
OTHERS = (
    *("HOST", "PORT", "SETTINGS", "ANCHOR", "SECRET", "NOISE_KEY_FILE"),
    *("URL", "KEY", "KEY_FILE"),
)
"""What else is read from the environment."""

NEAR = 0.7
"""How alike two names are (`difflib`) of which one is taken for a slip."""

COUNTS = (
    *("threads", "waiting", "workers", "long_workers", "long_waiting", "largest_body", "scenarios"),
    *("connections", "long_memory", "sent_at_once"),
    *("most_scenarios", "most_states", "most_bytes", "most_people", "largest_track"),
)
