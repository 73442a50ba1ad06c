"""Keys and what was done with them: the work behind the routes of those who manage."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from dphmm.books import (
    OPERATE,
    SCOPES,
    Key,
    Store,
    create_key,
    expire_key,
    list_keys,
    replace_key,
    revoke_key,
)
from dphmm.books.acts import list_acts
from dphmm.books.keys import digest_of
from dphmm.errors import ArgumentError
from dphmm.service.access import RefusedError
from dphmm.service.bodies import KeyTerms, NewKey
from dphmm.service.showing import Json

__all__ = ["Managing"]

PAGE = 1000


class Managing:
    """A store's keys, as far as the holder of one may see and change them.

    Who has the scope `keys` manages the keys of their own client and gives what they have; an
    operator manages those of any client, and names it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def keys(self, by: Key, client: str | None) -> Json:
        """A client's keys; what they are is not kept, only their digests."""
        found = list_keys(self._store, _whose(by, client))
        return {"keys": [_show(key) for key in found]}

    def create(self, by: Key, client: str | None, body: NewKey) -> Json:
        """Another key."""
        whose = _whose(by, client)
        granted = SCOPES if OPERATE in by.scopes else by.scopes
        if not set(body.scopes) <= set(granted):
            raise RefusedError(403, "scopes must be some of the key's own, got others")
        expires = None if body.days is None else _in(days=body.days)
        key = create_key(self._store, whose, body.scopes, expires=expires, who=by.name)
        return self._made(key, whose)

    def rotate(self, by: Key, client: str | None, name: str, body: KeyTerms) -> Json:
        """A key in another's place, which closes after some hours."""
        whose = _whose(by, client)
        overlap = timedelta(hours=body.hours)
        key = replace_key(self._store, name, overlap, client=whose, who=by.name)
        return self._made(key, whose)

    def expire(self, by: Key, client: str | None, name: str, body: KeyTerms) -> Json:
        """Let a key close after some hours."""
        whose, when = _whose(by, client), _in(hours=body.hours)
        return _show(expire_key(self._store, name, when, client=whose, who=by.name), when)

    def revoke(self, by: Key, client: str | None, name: str) -> Json:
        """Close a key now."""
        found = revoke_key(self._store, name, client=_whose(by, client), who=by.name)
        return {**_show(found), "open": False}

    def acts(self, by: Key, after: int) -> Json:
        """Who did what, of all clients for an operator, of their own for others."""
        client = None if OPERATE in by.scopes else by.client
        found = list_acts(self._store, client=client, after=after, most=PAGE + 1)
        page = [vars(act) for act in found[:PAGE]]
        return {"acts": page, "next": page[-1]["number"] if len(found) > PAGE else None}

    def _made(self, key: str, client: str) -> Json:
        digest = digest_of(key)
        (found,) = (one for one in list_keys(self._store, client) if one.digest == digest)
        return {**_show(found), "key": key}


def _whose(by: Key, client: str | None) -> str:
    if OPERATE in by.scopes:
        if not client:
            raise ArgumentError("client must be named by an operator, got none")
        return client
    if client not in (None, by.client):
        raise RefusedError(403, "client must be the key's own, got another")
    return by.client


def _in(days: int = 0, hours: float = 0) -> datetime:
    return datetime.now(UTC) + timedelta(days=days, hours=hours)


def _show(key: Key, expires: datetime | None = None) -> Json:
    later = key.expires if expires is None else expires.isoformat(timespec="seconds")
    return {
        "id": key.name,
        "client": key.client,
        "scopes": sorted(key.scopes),
        "created": key.created,
        "expires": later,
        "open": not key.is_over,
    }
