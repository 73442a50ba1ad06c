"""The two clients: one blocks, one is awaited; what they do is the same steps."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import update_wrapper
from inspect import Parameter, Signature, signature
from math import inf
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar
from urllib.parse import urlsplit

from dphmm.client import managing, many, operations
from dphmm.client.talking import Call, Page, Pages, Pause, Reply, Step, Steps, Talk
from dphmm.errors import ArgumentError, expect, require
from dphmm.geometry.exact import whole
from dphmm.tables.files import as_path
from dphmm.tables.keys import read_private

__all__ = ["AsyncClient", "Client"]

P = ParamSpec("P")
Thing = TypeVar("Thing")

URL = "DPHMM_URL"
KEY = "DPHMM_KEY"
KEY_FILE = "DPHMM_KEY_FILE"
LONGEST_KEY = 256
AT_HOME = ("127.0.0.1", "localhost", "::1")


class _Base:
    """Where a service is, and with which key it is asked."""

    _kind: str
    _carrier: str

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        key_file: str | os.PathLike[str] | None = None,
        timeout: float = 60.0,
        retries: int = 5,
        ca_file: str | os.PathLike[str] | None = None,
        plain: bool = False,
        transport: Any = None,
    ) -> None:
        self._httpx = require("httpx", "client")
        found = os.environ.get(URL) or "http://127.0.0.1:8000"
        self.url = _checked(found if url is None else url, plain)
        secret = _find_key(key, key_file)
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
            raise ArgumentError(f"timeout must be a number, got {type(timeout).__name__}")
        if not 0 < timeout < inf:
            raise ArgumentError(f"timeout must be positive and finite, got {timeout!r}")
        self._retries = whole(retries, "retries")
        if transport is not None:
            expect(transport, getattr(self._httpx, self._carrier), "transport")
        headers = {"authorization": f"Bearer {secret}"} if secret else {}
        self._http: Any = getattr(self._httpx, self._kind)(
            base_url=self.url,
            headers=headers | {"user-agent": "dphmm"},
            timeout=timeout,
            transport=transport,
            verify=_context(ca_file),
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def _request(self, call: Call) -> dict[str, Any]:
        """A call as httpx takes it."""
        kind = {} if call.content is None else {"content-type": call.kind}
        return {
            "method": call.method,
            "url": call.path,
            "params": call.query,
            "content": call.content,
            "headers": kind,
        }

    def _lost(self, fault: Exception) -> Reply:
        """That there was no answer; the fault's own words may name hosts and people."""
        unsent = (self._httpx.ConnectError, self._httpx.ConnectTimeout, self._httpx.PoolTimeout)
        return Reply(0, why=type(fault).__name__, sent=not isinstance(fault, unsent))


def _reply(response: Any) -> Reply:
    return Reply(response.status_code, response.content, dict(response.headers))


def _named(make: Callable[..., Any], method: Callable[..., Any]) -> None:
    """Let a method look as if it had been written out."""
    update_wrapper(method, make)
    own = signature(make)
    first = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [first, *own.parameters.values()]
    method.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    del method.__wrapped__  # type: ignore[attr-defined]


def _blocking(make: Callable[P, Steps[Thing]]) -> Callable[Concatenate[Client, P], Thing]:
    """A method that carries out steps and waits for them."""

    def method(self: Client, /, *given: P.args, **named: P.kwargs) -> Thing:
        talk = Talk(make(*given, **named), self._retries)
        step = talk.next()
        while step is not None:
            step = talk.next(self._do(step))
        return talk.result

    _named(make, method)
    return method


def _read_by(make: Callable[P, Pages[Thing]]) -> Callable[Concatenate[Client, P], Iterator[Thing]]:
    """A method that gives one thing after the other, and asks for a page when it needs one."""

    def method(self: Client, /, *given: P.args, **named: P.kwargs) -> Iterator[Thing]:
        talk = Talk(make(*given, **named), self._retries)
        step = talk.next()
        while step is not None:
            if isinstance(step, Page):
                yield from step.items
            step = talk.next(self._do(step))

    _named(make, method)
    return method


def _awaited(
    make: Callable[P, Steps[Thing]],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, Thing]]:
    """The same as `_blocking`, to be awaited."""

    async def method(self: AsyncClient, /, *given: P.args, **named: P.kwargs) -> Thing:
        talk = Talk(make(*given, **named), self._retries)
        step = talk.next()
        while step is not None:
            step = talk.next(await self._do(step))
        return talk.result

    _named(make, method)
    return method


def _awaited_by(
    make: Callable[P, Pages[Thing]],
) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[Thing]]:
    """The same as `_read_by`, for `async for`."""

    async def method(
        self: AsyncClient, /, *given: P.args, **named: P.kwargs
    ) -> AsyncIterator[Thing]:
        talk = Talk(make(*given, **named), self._retries)
        step = talk.next()
        while step is not None:
            if isinstance(step, Page):
                for item in step.items:
                    yield item
            step = talk.next(await self._do(step))

    _named(make, method)
    return method


class Client(_Base):
    """Asks a service for releases, and waits for its answers.

    A release is safe to ask again: a moment has one answer. So what times out, finds the service
    busy (503) or comes too fast (429) is sent again, a few times, with growing pauses; what was
    wrong is not. A refused budget is a `BudgetError`, somebody unknown a `StoreError`, a wrong
    argument an `ArgumentError`, anything else about the service a `ServiceError`.

    Args:
        url: Where the service is; default: DPHMM_URL, or this machine's port 8000.
        key: The key; default: that of `key_file`, else DPHMM_KEY, else DPHMM_KEY_FILE. Secret.
        key_file: A file with the key, closed to others.
        timeout: Seconds to wait for an answer.
        retries: How often the same request may be sent again.
        ca_file: Certificates of those who sign the service's, beside the usual ones.
        plain: Whether keys and true states may leave this machine without TLS.
        transport: What carries requests, for tests; see httpx.

    >>> Client("https://releases.example", key="dphmm_...")
    Client('https://releases.example')
    """

    _kind = "Client"
    _carrier = "BaseTransport"

    def close(self) -> None:
        """Let go of its connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        self.close()

    def _do(self, step: Step) -> Reply | None:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
        if not isinstance(step, Call):
            return None
        try:
            return _reply(self._http.request(**self._request(step)))
        except self._httpx.RequestError as fault:
            return self._lost(fault)

    is_ready = _blocking(managing.is_ready)
    add_scenario = _blocking(operations.add_scenario)
    scenarios = _blocking(operations.scenarios)
    scenario = _blocking(operations.scenario)
    begin = _blocking(operations.begin)
    release = _blocking(operations.release)
    releases = _read_by(operations.releases)
    track = _blocking(operations.track)
    privacy = _blocking(operations.privacy)
    people = _read_by(operations.people)
    ledger = _blocking(operations.ledger)
    entries = _read_by(operations.entries)
    erase = _blocking(operations.erase)
    keys = _blocking(managing.keys)
    create_key = _blocking(managing.create_key)
    rotate_key = _blocking(managing.rotate_key)
    expire_key = _blocking(managing.expire_key)
    revoke_key = _blocking(managing.revoke_key)
    acts = _read_by(managing.acts)
    metrics = _blocking(managing.metrics)
    release_many = _blocking(many.release_many)


class AsyncClient(_Base):
    """The same as `Client`, to be awaited; its lists are for `async for`.

    Args:
        url: Where the service is; default: DPHMM_URL, or this machine's port 8000.
        key: The key; default: that of `key_file`, else DPHMM_KEY, else DPHMM_KEY_FILE. Secret.
        key_file: A file with the key, closed to others.
        timeout: Seconds to wait for an answer.
        retries: How often the same request may be sent again.
        ca_file: Certificates of those who sign the service's, beside the usual ones.
        plain: Whether keys and true states may leave this machine without TLS.
        transport: What carries requests, for tests; see httpx.
    """

    _kind = "AsyncClient"
    _carrier = "AsyncBaseTransport"

    async def close(self) -> None:
        """Let go of its connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *fault: object) -> None:
        await self.close()

    async def _do(self, step: Step) -> Reply | None:
        if isinstance(step, Pause):
            await require("anyio", "client").sleep(step.seconds)
        if not isinstance(step, Call):
            return None
        try:
            return _reply(await self._http.request(**self._request(step)))
        except self._httpx.RequestError as fault:
            return self._lost(fault)

    is_ready = _awaited(managing.is_ready)
    add_scenario = _awaited(operations.add_scenario)
    scenarios = _awaited(operations.scenarios)
    scenario = _awaited(operations.scenario)
    begin = _awaited(operations.begin)
    release = _awaited(operations.release)
    releases = _awaited_by(operations.releases)
    track = _awaited(operations.track)
    privacy = _awaited(operations.privacy)
    people = _awaited_by(operations.people)
    ledger = _awaited(operations.ledger)
    entries = _awaited_by(operations.entries)
    erase = _awaited(operations.erase)
    keys = _awaited(managing.keys)
    create_key = _awaited(managing.create_key)
    rotate_key = _awaited(managing.rotate_key)
    expire_key = _awaited(managing.expire_key)
    revoke_key = _awaited(managing.revoke_key)
    acts = _awaited_by(managing.acts)
    metrics = _awaited(managing.metrics)
    release_many = _awaited(many.release_many)


def _checked(url: object, plain: object) -> str:
    """An address at which a key and true states can be read by nobody else."""
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        fits = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        fits = False
    if not fits or parts.query or parts.fragment:
        raise ArgumentError("url must be the address of a service such as https://host:8000")
    if parts.username is not None:
        raise ArgumentError("url must hold no name or password; a key comes by itself")
    if parts.scheme == "http" and parts.hostname not in AT_HOME and plain is not True:
        raise ArgumentError(
            "url must be https, so that nobody else reads the key and the states; with "
            "plain=True it may be http"
        )
    return str(url).rstrip("/")


def _find_key(key: object, key_file: Any) -> str:
    """The key that was given, or that a file or the environment has; none is empty."""
    if key is not None and key_file is not None:
        raise ArgumentError("key must be given by itself or in key_file, got both")
    if key is None and key_file is None:
        key = os.environ.get(KEY)
        key_file = os.environ.get(KEY_FILE) if key is None else None
    if key_file is not None:
        held = read_private(_path(key_file, "key_file"), LONGEST_KEY)
        key = held.decode(errors="replace")
    if key is None:
        return ""
    text = key.strip() if isinstance(key, str) else ""
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise ArgumentError("key must be one that the operator gave you, got something else")
    return text


def _path(given: Any, argument: str) -> Path:
    try:
        return as_path(given)
    except ArgumentError:
        raise ArgumentError(f"{argument} must name a file, got {type(given).__name__}") from None


def _context(ca_file: Any) -> ssl.SSLContext:
    """TLS with certificates that are checked, against the usual ones and those of a file."""
    context = ssl.create_default_context()
    if ca_file is not None:
        try:
            context.load_verify_locations(_path(ca_file, "ca_file"))
        except OSError:
            raise ArgumentError(
                "ca_file must be a readable file of certificates, got another"
            ) from None
    return context
