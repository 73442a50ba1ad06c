"""The body of a request, whole or not at all, and then given on once.

What the service and the studio take from a network is read here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

__all__ = ["BadLengthError", "GoneError", "Message", "Receive", "TooLongError", "receive", "replay"]

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]

DIGITS = 18
"""A length of more digits is not read as a number."""


class TooLongError(Exception):
    """A body has more bytes than it may."""


class BadLengthError(Exception):
    """A request says in two ways how long its body is.

    Whoever passed it on may have taken the other one, and have seen other requests.
    """


class GoneError(Exception):
    """The client hung up before its request was complete: nothing was asked."""


async def receive(
    scope: Message, hear: Receive, largest: int, take: Callable[[int], object] | None = None
) -> bytes:
    """The whole body of a request; refused as soon as it is known to be too long.

    Args:
        scope: The request, which may announce a length.
        hear: What its connection says.
        largest: How many bytes the body may have.
        take: Is told the size of each part before the next is read; it may refuse, too.
    """
    headers = dict(scope["headers"])
    announced = headers.get(b"content-length", b"0")
    if b"content-length" in headers and b"transfer-encoding" in headers:
        raise BadLengthError
    if not announced.isdigit() or len(announced) > DIGITS or int(announced) > largest:
        raise TooLongError
    parts, size = [], 0
    while True:
        message = await hear()
        if message["type"] == "http.disconnect":
            raise GoneError
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > largest:
            raise TooLongError
        if take is not None:
            take(len(parts[-1]))
        if not message.get("more_body", False):
            return b"".join(parts)


def replay(body: bytes, hear: Receive) -> Receive:
    """The body once, then whatever the connection has to say."""
    is_given = False

    async def hear_again() -> Message:
        nonlocal is_given
        if is_given:
            return await hear()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return hear_again
