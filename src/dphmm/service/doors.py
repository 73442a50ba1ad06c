"""Which key opens which path, and how much may be sent there; asked before anything is read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from starlette.routing import compile_path

from dphmm.service.access import RefusedError
from dphmm.service.settings import ServiceSettings

__all__ = ["CLOSED", "Door", "Doors", "check_path"]

CLOSED = ("/v1", "/metrics")
"""Where a key is asked for."""

SMALL = 1000
"""Bodies that are not large may have the thousandth part."""


@dataclass(frozen=True)
class Door:
    """What is behind a path.

    Args:
        method: The method of HTTP.
        path: The pattern of the path.
        scopes: Of which a key must have one.
        large: Whether a body may be as large as a scenario.
    """

    method: str
    path: str
    scopes: tuple[str, ...]
    large: bool = False


class Doors:
    """All doors of a service."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._largest = settings.largest_body
        self._doors: list[tuple[re.Pattern[str], Door]] = []

    def add(self, door: Door) -> None:
        """Have another one."""
        self._doors.append((compile_path(door.path)[0], door))

    def find(self, method: str, path: str) -> Door:
        """The door of a request; a refusal where there is none."""
        fitting = []
        for pattern, door in self._doors:
            if pattern.match(path):
                if door.method == method:
                    return door
                fitting.append(door)
        if not fitting:
            raise RefusedError(404, "not found")
        allowed = ", ".join(sorted({door.method for door in fitting}))
        raise RefusedError(405, "method not allowed", headers={"allow": allowed})

    def largest(self, door: Door | None) -> int:
        """Bytes that a body may have."""
        whole = door is not None and door.large
        return self._largest if whole else max(self._largest // SMALL, SMALL)


def check_path(raw: bytes) -> None:
    """Refuse a path that is not UTF-8: two names would be read as one."""
    try:
        unquote_to_bytes(raw).decode("utf-8")
    except UnicodeDecodeError:
        raise RefusedError(400, "the path must be UTF-8, got other bytes") from None
