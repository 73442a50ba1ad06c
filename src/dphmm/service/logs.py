"""The log of a service: one JSON object a line, which names no person, key, state or duration."""

from __future__ import annotations

import json
import logging
import sys
import time
from types import TracebackType
from typing import Any

__all__ = ["JsonLines", "log", "log_lines", "places_of"]

FIELDS = ("request", "method", "route", "status", "client", "key", "action", "fault", "at")

log = logging.getLogger("dphmm.service")


class JsonLines(logging.Formatter):
    """One JSON object a line; a fault adds where it happened, never a value."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        facts: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        facts |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info and record.exc_info[0] is not None:
            facts["fault"] = record.exc_info[0].__name__
            facts["at"] = places_of(record.exc_info[2])
        return json.dumps(facts)


def places_of(traceback: TracebackType | None) -> list[str]:
    """File and line of each frame: an exception's own text might quote what was sent."""
    places = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        places.append(f"{code.co_filename}:{traceback.tb_lineno}")
        traceback = traceback.tb_next
    return places


def log_lines() -> None:
    """Send the service's and the server's own lines to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("dphmm.service", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO if name.startswith("dphmm") else logging.WARNING)
