"""One way to take a request's body, for the service and the studio."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from dphmm.service.receiving import BadLengthError, GoneError, TooLongError, receive, replay

GONE = {"type": "http.disconnect"}


def parts(*contents: bytes) -> list[dict[str, object]]:
    """Messages of a body that comes in parts."""
    last = len(contents) - 1
    return [
        {"type": "http.request", "body": content, "more_body": number < last}
        for number, content in enumerate(contents)
    ]


def hearing(messages: Iterable[dict[str, object]]):
    waiting = iter(messages)

    async def hear():
        return next(waiting)

    return hear


def heard(messages, largest=10, take=None, **headers: str) -> bytes:
    named = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    return asyncio.run(receive({"headers": named}, hearing(messages), largest, take))


def test_a_body_in_parts_is_put_together():
    assert heard(parts(b"ab", b"", b"cd")) == b"abcd"
    assert heard(parts(b"0123456789"), content_length="10") == b"0123456789"


@pytest.mark.parametrize("length", ["11", "9" * 5000, "-1", "1e3", "٣"])
def test_a_body_that_says_it_is_too_long_is_not_waited_for(length):
    with pytest.raises(TooLongError):
        heard([], content_length=length)


def test_a_body_that_is_longer_than_it_said_is_given_up_at_once():
    more = {"type": "http.request", "body": b"x" * 6, "more_body": True}
    with pytest.raises(TooLongError):
        heard([more, more], content_length="6")


def test_two_lengths_are_none():
    with pytest.raises(BadLengthError):
        heard(parts(b"a"), content_length="1", transfer_encoding="chunked")


def test_a_body_that_breaks_off_is_no_body():
    with pytest.raises(GoneError):
        heard([{"type": "http.request", "body": b"{}", "more_body": True}, GONE])


def test_whoever_counts_the_parts_may_refuse_the_next():
    sizes: list[int] = []

    def take(size: int) -> None:
        sizes.append(size)
        if sum(sizes) > 3:
            raise PermissionError

    with pytest.raises(PermissionError):
        heard(parts(b"ab", b"cd", b"ef"), take=take)
    assert sizes == [2, 2]


def test_a_body_is_given_on_once():
    async def twice():
        hear = replay(b"{}", hearing([GONE]))
        return await hear(), await hear()

    assert asyncio.run(twice()) == (
        {"type": "http.request", "body": b"{}", "more_body": False},
        GONE,
    )
