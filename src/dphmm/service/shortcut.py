"""The way of a release past the framework, for requests that are just as the page says.

It is what is asked most, and finding and reading its parameters costs FastAPI more than the rest
of a request. Whatever is unusual about one is left to the framework, which says what is wrong
with it: there is no second rule here.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import compile_path

from dphmm.errors import DphmmError
from dphmm.service.bodies import NewRelease

__all__ = ["DIGEST", "LONGEST_PERSON", "Shortcut"]

DIGEST = "^[0-9a-f]{64}$"
LONGEST_PERSON = 200

Asked: TypeAlias = tuple[str, str, NewRelease]


class Shortcut:
    """What the middleware asks before the framework.

    Args:
        path: The pattern of the route.
        answer: What the route does, for a client, a scenario, a person and a body.
        explain: What is answered to a request that is refused.
    """

    def __init__(
        self,
        path: str,
        answer: Callable[[str, str, str, NewRelease], Awaitable[Response]],
        explain: Callable[[Request, DphmmError], Awaitable[Response]],
    ) -> None:
        self._pattern, self._digest = compile_path(path)[0], re.compile(DIGEST)
        self._answer, self._explain = answer, explain

    async def __call__(self, scope: MutableMapping[str, Any], content: bytes) -> Response | None:
        """The answer to a request, or None if the framework has to look at it."""
        asked = self._read(scope, content)
        if asked is None:
            return None
        try:
            return await self._answer(scope["state"]["client"], *asked)
        except DphmmError as fault:
            return await self._explain(Request(scope), fault)

    def _read(self, scope: MutableMapping[str, Any], content: bytes) -> Asked | None:
        if scope["method"] != "POST" or scope.get("root_path"):
            return None
        place = self._pattern.match(scope["path"])
        if place is None or (b"content-type", b"application/json") not in scope["headers"]:
            return None
        digest, person = place["digest"], place["person"]
        if not self._digest.fullmatch(digest) or len(person) > LONGEST_PERSON:
            return None
        try:
            return digest, person, NewRelease.model_validate_json(content)
        except ValidationError:
            return None
