"""Who may ask: keys, their scopes, and how often."""

from __future__ import annotations

import hmac
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cachetools import LRUCache, TTLCache

from dphmm.books import Key
from dphmm.books.keys import digest_of
from dphmm.errors import DphmmError
from dphmm.service.limits import REMEMBERED, Buckets
from dphmm.service.settings import ServiceSettings
from dphmm.service.sharing import Shared, SharedBuckets

__all__ = ["Access", "RefusedError"]

UNKNOWN = "the key must be one that the operator gave you, got another"


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

    Only digests are compared and remembered; the key itself is let go of at once. A key that was
    good once is always looked up again, so that nobody who guesses keys can lock it out.
    """

    def __init__(self, settings: ServiceSettings, shared: Shared | None = None) -> None:
        self._known: TTLCache[str, Key] = TTLCache(REMEMBERED, settings.key_memory)
        self._once_known: LRUCache[str, bool] = LRUCache(REMEMBERED)
        self._by_client = _buckets(settings.rate, shared, "client")
        self._unknown = _buckets(settings.wrong_keys, shared, "address")
        self._listed = Buckets(1)

    def identify(self, header: str | None, address: str) -> tuple[str, Key | None]:
        """The key in a header, and whose it is if it was good a moment ago."""
        secret = _bearer(header)
        if not secret:
            raise RefusedError(401, "a key must be sent as 'Authorization: Bearer KEY', got none")
        digest = digest_of(secret)
        key = self._known.get(digest)
        if key is not None and hmac.compare_digest(key.digest, digest) and not key.is_over:
            return secret, key
        return secret, None

    def is_worth_looking(self, secret: str, address: str) -> bool:
        """Whether a key is looked up: it was good once, or few wrong ones came from there."""
        return digest_of(secret) in self._once_known or self._unknown.left(address)

    def is_worth_listing(self) -> bool:
        """Whether to see, once a second, which keys there are: a new one is not a wrong one."""
        return self._listed.take("")

    def know(self, keys: Iterable[Key]) -> None:
        """Take some keys to be good until they are looked up."""
        for key in keys:
            if not key.is_over:
                self._once_known[key.digest] = True

    def remember(self, found: Key | None, address: str, asked: bool = True) -> Key:
        """What the store said about a key: its holder, or a refusal."""
        if found is None:
            self._unknown.take(address)
            # Still 401 if nobody asked the store, for that is what a wrong key is told.
            raise RefusedError(401, UNKNOWN, retry_after=None if asked else 1)
        self._known[found.digest] = found
        self.know([found])
        return found

    def forget_all(self) -> None:
        """Look keys up again, one of which was changed."""
        self._known.clear()

    def check(self, key: Key, scopes: Collection[str]) -> None:
        """Refuse a key without one of the scopes, or a client that asks too often."""
        if not self._by_client.take(key.client):
            raise RefusedError(429, "requests must come more slowly; wait a second", retry_after=1)
        if not key.scopes & set(scopes):
            wanted = " or ".join(repr(scope) for scope in scopes)
            raise RefusedError(403, f"the key must have the scope {wanted}, got one without it")


def _buckets(rate: float, shared: Shared | None, kind: str) -> Buckets | SharedBuckets:
    """Buckets for one process, or for all that share something."""
    return Buckets(rate) if shared is None else SharedBuckets(rate, shared, kind)


def _bearer(header: str | None) -> str:
    scheme, _, key = (header or "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""
