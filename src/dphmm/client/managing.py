"""Keys, acts and the service itself: what those who manage ask for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dphmm.client.operations import listed, read_on, send
from dphmm.client.results import Act, KeyFacts, MadeKey
from dphmm.client.talking import Call, Pages, Reply, Steps
from dphmm.errors import ArgumentError, check_name, expect_each
from dphmm.geometry.exact import whole


def is_ready() -> Steps[bool]:
    """Whether the service can do its work: its store can be written and is where it should be."""
    reply: Reply = yield Call("GET", "/ready", again=False)
    if reply.status == 503:
        return False
    reply.check()
    return True


def keys(*, client: str | None = None) -> Steps[tuple[KeyFacts, ...]]:
    """The keys of a client: what they open and until when.

    Args:
        client: Whose, for an operator to say.
    """
    reply = yield Call("GET", "/v1/keys", _whose(client))
    return listed(reply, "keys", KeyFacts)


def create_key(
    scopes: Iterable[str], *, days: int | None = None, client: str | None = None
) -> Steps[MadeKey]:
    """Another key, whose `key` can be read this once, with some of your own scopes.

    Args:
        scopes: Some of release, read, people, scenarios, keys.
        days: After how many it closes.
        client: Whose, for an operator to say.
    """
    if isinstance(scopes, str):
        raise ArgumentError("scopes must be some of release, read, people, scenarios, keys")
    body: dict[str, Any] = {"scopes": expect_each(scopes, str, "scopes")}
    if days is not None:
        body["days"] = whole(days, "days", 1)
    reply = yield send("POST", "/v1/keys", body, _whose(client), again=False)
    return reply.read(MadeKey)


def rotate_key(key_id: str, *, hours: int = 0, client: str | None = None) -> Steps[MadeKey]:
    """Another key with the same scopes, whose `key` can be read this once.

    Args:
        key_id: The id of the old one.
        hours: How long the old one stays open.
        client: Whose, for an operator to say.
    """
    body, path = {"hours": whole(hours, "hours")}, _of_key(key_id) + "/rotate"
    reply = yield send("POST", path, body, _whose(client), again=False)
    return reply.read(MadeKey)


def expire_key(key_id: str, *, hours: int = 0, client: str | None = None) -> Steps[KeyFacts]:
    """Let a key close after some hours, never later than it would.

    Args:
        key_id: Its id.
        hours: How long it stays open.
        client: Whose, for an operator to say.
    """
    reply = yield send("PUT", _of_key(key_id), {"hours": whole(hours, "hours")}, _whose(client))
    return reply.read(KeyFacts)


def revoke_key(key_id: str, *, client: str | None = None) -> Steps[KeyFacts]:
    """Close a key now.

    Args:
        key_id: Its id.
        client: Whose, for an operator to say.
    """
    reply = yield Call("DELETE", _of_key(key_id), _whose(client), again=False)
    return reply.read(KeyFacts)


def acts(*, after: int = 0) -> Pages[Act]:
    """Who did what with people's budgets, erasures and keys, in order; not whom about.

    Args:
        after: Only those after this number.
    """
    yield from read_on("/v1/acts", "acts", Act, str(whole(after, "after")))


def metrics() -> Steps[str]:
    """The counters, in the format of Prometheus; for a key that operates."""
    reply = yield Call("GET", "/metrics")
    reply.check()
    return str(reply.content.decode(errors="replace"))


def _of_key(key_id: str) -> str:
    if not isinstance(key_id, str) or not key_id.isalnum():
        raise ArgumentError("key_id must be the id of a key, as `keys` lists them")
    return f"/v1/keys/{key_id}"


def _whose(client: str | None) -> dict[str, str]:
    return {} if client is None else {"client": check_name(client, "client")}
