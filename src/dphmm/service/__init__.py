"""The release service: an HTTP API over a store; needs the `service` extra."""

from __future__ import annotations

from dphmm.service.settings import ServiceSettings

__all__ = ["ServiceSettings"]
