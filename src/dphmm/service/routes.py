"""Which key opens which path, and how much may be sent there; asked before anything is read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from starlette.routing import compile_path

from dphmm.service.access import RefusedError
from dphmm.service.settings import ServiceSettings

__all__ = ["CLOSED", "Route", "Routes", "check_path"]

CLOSED = ("/v1", "/metrics")
"""Where a key is asked for."""

SMALL = 1000
"""Bodies that are not large may have the thousandth part."""


@dataclass(frozen=True)
class Route:
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


class Routes:
    """All routes of a service."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._largest = settings.largest_body
        self._routes: list[tuple[re.Pattern[str], Route]] = []

    def add(self, route: Route) -> None:
        """Have another one."""
        self._routes.append((compile_path(route.path)[0], route))

    def find(self, method: str, path: str) -> Route:
        """The route of a request; a refusal where there is none."""
        fitting = []
        for pattern, route in self._routes:
            if pattern.match(path):
                if route.method == method:
                    return route
                fitting.append(route)
        if not fitting:
            raise RefusedError(404, "not found")
        allowed = ", ".join(sorted({route.method for route in fitting}))
        raise RefusedError(405, "method not allowed", headers={"allow": allowed})

    def largest(self, route: Route | None) -> int:
        """Bytes that a body may have."""
        whole = route is not None and route.large
        return self._largest if whole else max(self._largest // SMALL, SMALL)


def check_path(raw: bytes) -> None:
    """Refuse a path that is not UTF-8: two names would be read as one."""
    try:
        unquote_to_bytes(raw).decode("utf-8")
    except UnicodeDecodeError:
        raise RefusedError(400, "the path must be UTF-8, got other bytes") from None
