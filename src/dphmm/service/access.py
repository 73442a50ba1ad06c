"""Who may ask: keys, their scopes, and how often."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cachetools import TTLCache

from dphmm.books import Key
from dphmm.books.keys import digest_of
from dphmm.errors import DphmmError
from dphmm.service.limits import REMEMBERED, Buckets
from dphmm.service.settings import ServiceSettings

__all__ = ["Access", "RefusedError"]


@dataclass
class RefusedError(DphmmError):
    """A request that gets no further, and what its sender may do."""

    status: int
    message: str
    retry_after: int | None = None
    where: Sequence[str] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.message

    def all_headers(self) -> dict[str, str]:
        """What is told besides the message."""
        later = {} if self.retry_after is None else {"retry-after": str(self.retry_after)}
        return {**self.headers, **later}


class Access:
    """Remembers good keys for a few seconds, and counts who asks.

    Only digests are compared and remembered; the key itself is let go of at once.
    """

    def __init__(self, settings: ServiceSettings) -> None:
        self._known: TTLCache[str, Key] = TTLCache(REMEMBERED, settings.key_memory)
        self._by_client = Buckets(settings.rate)
        self._by_address = Buckets(settings.wrong_keys)

    def identify(self, header: str | None, address: str) -> tuple[str, Key | None]:
        """The key in a header, and whose it is if it was good a moment ago."""
        if not self._by_address.left(address):
            raise RefusedError(429, "too many requests without a good key; wait a second", 1)
        secret = _bearer(header)
        if not secret:
            self._by_address.take(address)
            raise RefusedError(401, "a key must be sent as 'Authorization: Bearer KEY', got none")
        digest = digest_of(secret)
        key = self._known.get(digest)
        same = key is not None and hmac.compare_digest(key.digest, digest)
        return secret, key if same else None

    def remember(self, found: Key | None, address: str) -> Key:
        """What the store said about a key: its holder, or a refusal."""
        if found is None:
            self._by_address.take(address)
            raise RefusedError(401, "the key must be one that the operator gave you, got another")
        self._known[found.digest] = found
        return found

    def check(self, key: Key, scope: str) -> None:
        """Refuse a key without the scope, or one that asks too often."""
        if not self._by_client.take(key.client):
            raise RefusedError(429, "requests must come more slowly; wait a second", retry_after=1)
        if scope not in key.scopes:
            raise RefusedError(403, f"the key must have the scope {scope!r}, got one without it")


def _bearer(header: str | None) -> str:
    scheme, _, key = (header or "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""
