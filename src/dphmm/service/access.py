"""Who may ask: keys, their scopes, and how often."""

from __future__ import annotations

import hmac
import time
from dataclasses import dataclass

from dphmm.books import Key, Store, find_key
from dphmm.books.keys import digest_of
from dphmm.errors import DphmmError
from dphmm.service.limits import Buckets
from dphmm.service.settings import ServiceSettings

__all__ = ["Access", "RefusedError"]


@dataclass
class RefusedError(DphmmError):
    """A request that gets no further, and what its sender may do."""

    status: int
    message: str
    retry_after: int | None = None

    def __str__(self) -> str:
        return self.message


class Access:
    """Checks keys against the store, and remembers good ones for a few seconds.

    Only digests are compared and remembered; the key itself is let go of at once.
    """

    def __init__(self, store: Store, settings: ServiceSettings) -> None:
        self._store = store
        self._memory = settings.key_memory
        self._known: dict[str, tuple[Key, float]] = {}
        self._by_key = Buckets(settings.rate)
        self._by_address = Buckets(settings.wrong_keys)

    def remembered(self, header: str | None, address: str) -> Key | None:
        """The key of a header if it was good a moment ago; asks no database."""
        digest = self._digest(header, address)
        key, until = self._known.get(digest, (None, 0.0))
        if key is None or not hmac.compare_digest(key.digest, digest) or time.monotonic() > until:
            return None
        return key

    def looked_up(self, header: str | None, address: str) -> Key:
        """The key of a header, from the store; refused if it is none."""
        found = find_key(self._store, _bearer(header))
        if found is None:
            self._by_address.take(address)
            raise RefusedError(401, "the key must be one that the operator gave you, got another")
        now = time.monotonic()
        self._known = {d: held for d, held in self._known.items() if held[1] > now}
        self._known[found.digest] = (found, now + self._memory)
        return found

    def check(self, key: Key, scope: str) -> None:
        """Refuse a key that does not open this door, or that knocks too often."""
        if not self._by_key.take(key.digest):
            raise RefusedError(429, "requests must come more slowly; wait a second", retry_after=1)
        if scope not in key.scopes:
            raise RefusedError(403, f"the key must have the scope {scope!r}, got one without it")

    def _digest(self, header: str | None, address: str) -> str:
        if not self._by_address.left(address):
            raise RefusedError(429, "too many requests without a good key; wait a second", 1)
        if not _bearer(header):
            self._by_address.take(address)
            raise RefusedError(401, "a key must be sent as 'Authorization: Bearer KEY', got none")
        return digest_of(_bearer(header))


def _bearer(header: str | None) -> str:
    scheme, _, key = (header or "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""
