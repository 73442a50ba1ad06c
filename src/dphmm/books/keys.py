"""API keys: 256 random bits shown once, of which the store keeps the SHA-256."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from dphmm.books.acts import write_act
from dphmm.books.database import Row, Transaction
from dphmm.books.store import Store
from dphmm.errors import ArgumentError, NotFoundError
from dphmm.release.moment import check_client

__all__ = [
    "OPERATE",
    "SCOPES",
    "Key",
    "create_key",
    "expire_key",
    "find_key",
    "list_keys",
    "replace_key",
    "revoke_key",
]

SCOPES = ("release", "read", "people", "scenarios", "keys")
"""What a client's key may open: release, read, and manage its people, scenarios and keys."""

OPERATE = "operate"
"""The only scope of the key of somebody who runs the service and is no client."""

OLDER = {"admin": ("people", "scenarios", "keys")}
PREFIX = "dphmm_"
KEY_BYTES = 32
COLUMNS = "digest, client, scopes, created, revoked, expires"


@dataclass(frozen=True)
class Key:
    """Who holds a key and what it opens; the key itself is not here.

    Args:
        digest: The SHA-256 of the key, whose first letters are its name.
        client: Whose it is; empty for an operator's.
        scopes: What it opens.
        created: When it was made.
        revoked: Whether it was closed.
        expires: When it closes by itself, if ever.
    """

    digest: str
    client: str
    scopes: frozenset[str]
    created: str = ""
    revoked: bool = False
    expires: str | None = None

    @property
    def name(self) -> str:
        """What it is called in lists and logs."""
        return self.digest[:16]

    @property
    def is_over(self) -> bool:
        """Whether it opens nothing any more."""
        return self.revoked or (self.expires is not None and self.expires <= _now())


def create_key(
    store: Store,
    client: str,
    scopes: Iterable[str],
    keep: Callable[[str], object] = lambda key: None,
    *,
    expires: datetime | None = None,
    who: str = "",
) -> str:
    """A new key for a client: the only time it can be read.

    What cannot be kept is not made: `keep` has it before the store does.
    """
    chosen = frozenset(scopes)
    if chosen == {OPERATE}:
        if client:
            raise ArgumentError("client must be empty for a key that operates, got a name")
    elif not chosen or chosen - set(SCOPES):
        raise ArgumentError(
            f"scopes must be some of {', '.join(SCOPES)}, or {OPERATE} alone, got {sorted(chosen)}"
        )
    elif not client:
        raise ArgumentError("client must be named, got an empty name")
    check_client(client)
    with store.writing() as seals:
        key = _insert(seals.transaction, client, chosen, expires)
        write_act(seals.transaction, who, client, "key create")
        keep(key)
    return key


def _insert(
    transaction: Transaction, client: str, scopes: frozenset[str], expires: datetime | None
) -> str:
    key = PREFIX + secrets.token_urlsafe(KEY_BYTES)
    transaction.rows(
        "INSERT INTO keys (digest, client, scopes, created, revoked, expires) "
        "VALUES (?, ?, ?, ?, 0, ?)",
        (digest_of(key), client, " ".join(sorted(scopes)), _now(), _text(expires)),
    )
    return key


def digest_of(key: str) -> str:
    """What the store keeps of a key; 256 random bits need no slow hash."""
    return hashlib.sha256(key.encode()).hexdigest()


def find_key(store: Store, key: str) -> Key | None:
    """The holder of a key; None if it is unknown, revoked or expired.

    The row is found by the hash, which a caller without the key cannot steer, and compared
    once more in constant time.
    """
    digest = digest_of(key)
    with store.database.transaction(write=False) as transaction:
        row = transaction.row(f"SELECT {COLUMNS} FROM keys WHERE digest = ?", (digest,))
    found = None if row is None else _key(row)
    if found is None or not hmac.compare_digest(found.digest, digest) or found.is_over:
        return None
    return found


def list_keys(store: Store, client: str | None = None) -> list[Key]:
    """All keys, or a client's, oldest first."""
    with store.database.transaction(write=False) as transaction:
        rows = transaction.rows(f"SELECT {COLUMNS} FROM keys ORDER BY created, digest")
    return [key for key in map(_key, rows) if client in (None, key.client)]


def revoke_key(store: Store, start: str, *, client: str | None = None, who: str = "") -> Key:
    """Close the one key whose digest starts like this."""
    found = _named(store, start, client)
    with store.writing() as seals:
        seals.transaction.rows("UPDATE keys SET revoked = 1 WHERE digest = ?", (found.digest,))
        write_act(seals.transaction, who, found.client, "key revoke")
    return found


def expire_key(
    store: Store, start: str, when: datetime, *, client: str | None = None, who: str = ""
) -> Key:
    """Let the one key whose digest starts like this close at a time; never later than it would."""
    found = _named(store, start, client)
    with store.writing() as seals:
        _expire(seals.transaction, found, when)
        write_act(seals.transaction, who, found.client, "key expire")
    return found


def replace_key(
    store: Store,
    start: str,
    overlap: timedelta,
    *,
    client: str | None = None,
    expires: datetime | None = None,
    who: str = "",
) -> str:
    """Another key for the same client and scopes; the old one closes after a while."""
    found = _named(store, start, client)
    if found.is_over:
        raise ArgumentError("digest must name a key that is open, got a closed one")
    with store.writing() as seals:
        key = _insert(seals.transaction, found.client, found.scopes, expires)
        _expire(seals.transaction, found, datetime.now(UTC) + overlap)
        write_act(seals.transaction, who, found.client, "key rotate")
    return key


def _expire(transaction: Transaction, key: Key, when: datetime) -> None:
    later = _text(when)
    sooner = later if key.expires is None else min(later or "", key.expires)
    transaction.rows("UPDATE keys SET expires = ? WHERE digest = ?", (sooner, key.digest))


def _named(store: Store, start: str, client: str | None) -> Key:
    if not start or not all(letter in "0123456789abcdef" for letter in start):
        raise ArgumentError("digest must be the first letters of a key's SHA-256")
    found = [key for key in list_keys(store, client) if key.digest.startswith(start)]
    if len(found) != 1:
        raise NotFoundError(f"digest must fit one key, got one that fits {len(found)}")
    return found[0]


def _key(row: Row) -> Key:
    digest, client, scopes, created, revoked, expires = row
    opened = [new for scope in scopes.split() for new in OLDER.get(scope, (scope,))]
    return Key(digest, client, frozenset(opened), created, bool(revoked), expires)


def _now() -> str:
    return _text(datetime.now(UTC)) or ""


def _text(when: datetime | None) -> str | None:
    return None if when is None else when.astimezone(UTC).isoformat(timespec="seconds")
