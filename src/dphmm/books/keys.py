"""API keys: 256 random bits shown once, of which the store keeps the SHA-256."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from dphmm.books.store import Store
from dphmm.errors import ArgumentError, NotFoundError
from dphmm.release.moment import check_client

__all__ = ["SCOPES", "Key", "create_key", "find_key", "list_keys", "revoke_key"]

SCOPES = ("release", "read", "admin")
PREFIX = "dphmm_"
KEY_BYTES = 32


@dataclass(frozen=True)
class Key:
    """Who holds a key and what it opens; the key itself is not here."""

    digest: str
    client: str
    scopes: frozenset[str]
    created: str = ""
    revoked: bool = False


def create_key(
    store: Store,
    client: str,
    scopes: Iterable[str],
    keep: Callable[[str], object] = lambda key: None,
) -> str:
    """A new key for a client: the only time it can be read.

    What cannot be kept is not made: `keep` has it before the store does.
    """
    chosen = frozenset(scopes)
    if not chosen or chosen - set(SCOPES):
        raise ArgumentError(f"scopes must be some of {', '.join(SCOPES)}, got {sorted(chosen)}")
    if not client:
        raise ArgumentError("client must be named, got an empty name")
    check_client(client)
    key = PREFIX + secrets.token_urlsafe(KEY_BYTES)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    with store.writing() as seals:
        seals.transaction.rows(
            "INSERT INTO keys (digest, client, scopes, created, revoked) VALUES (?, ?, ?, ?, 0)",
            (digest_of(key), client, " ".join(sorted(chosen)), created),
        )
        keep(key)
    return key


def digest_of(key: str) -> str:
    """What the store keeps of a key; 256 random bits need no slow hash."""
    return hashlib.sha256(key.encode()).hexdigest()


def find_key(store: Store, key: str) -> Key | None:
    """The holder of a key; None if it is unknown or revoked.

    The row is found by the hash, which a caller without the key cannot steer, and compared
    once more in constant time.
    """
    digest = digest_of(key)
    with store.database.transaction(write=False) as transaction:
        row = transaction.row(
            "SELECT digest, client, scopes, created, revoked FROM keys WHERE digest = ?", (digest,)
        )
    if row is None or not hmac.compare_digest(row[0], digest) or row[4]:
        return None
    return Key(row[0], row[1], frozenset(row[2].split()), row[3])


def list_keys(store: Store) -> list[Key]:
    """All keys, oldest first."""
    with store.database.transaction(write=False) as transaction:
        rows = transaction.rows(
            "SELECT digest, client, scopes, created, revoked FROM keys ORDER BY created, digest"
        )
    return [Key(d, c, frozenset(s.split()), made, bool(r)) for d, c, s, made, r in rows]


def revoke_key(store: Store, start: str) -> Key:
    """Close the one key whose digest starts like this."""
    if not start or not all(letter in "0123456789abcdef" for letter in start):
        raise ArgumentError("digest must be the first letters of a key's SHA-256")
    found = [key for key in list_keys(store) if key.digest.startswith(start)]
    if len(found) != 1:
        raise NotFoundError(f"digest must fit one key, got one that fits {len(found)}")
    with store.writing() as seals:
        seals.transaction.rows("UPDATE keys SET revoked = 1 WHERE digest = ?", (found[0].digest,))
    return found[0]
