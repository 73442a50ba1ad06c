"""The scenarios that the studio has open: which one a request means, and as its files are now."""

from __future__ import annotations

from threading import Lock
from typing import Any

from cachetools import LRUCache

from dphmm.errors import ArgumentError
from dphmm.studio import requests, saving
from dphmm.studio.examples import open_example
from dphmm.studio.opened import Opened
from dphmm.studio.requests import read_request
from dphmm.studio.start import Start, name_of

__all__ = ["ForgottenError", "Shelf"]

REMEMBERED = 8
"""How many scenarios the server keeps; the page opens one again when it was forgotten."""


class ForgottenError(Exception):
    """A scenario that the server does not have (any more)."""


class Shelf:
    """The scenarios that were opened lately; the one the studio was started with stays."""

    def __init__(
        self,
        own: Opened | None = None,
        start: Start | None = None,
        watched: dict[str, str] | None = None,
    ) -> None:
        self._own, self._watched = own, watched
        self._start = start or Start()
        self._opened: LRUCache[str, Opened] = LRUCache(REMEMBERED)
        self._examples: LRUCache[str, Opened] = LRUCache(REMEMBERED)
        self._lock = Lock()

    def open(self, content: dict[str, Any]) -> dict[str, Any]:
        """Open what a request names, and tell the page what it needs to draw it."""
        request = read_request(requests.Open, content)
        opened = self._own_now() if request.name == "own" else None
        if request.name == "file":
            path = self._start.find(request.file)
            opened = saving.open_file(path)
            self._start.remember(path)
        if opened is None:
            size = request.model_dump_json(exclude={"fingerprint"})
            with self._lock:
                opened = self._examples.get(size) or open_example(request)
                self._examples[size] = opened
        if request.fingerprint not in (None, opened.fingerprint):
            raise ArgumentError(
                f"link must be one to this scenario, got one to another; nothing of it was applied "
                f"to {opened.scenario.name}"
            )
        return self._keep(opened)

    def save(self, content: dict[str, Any]) -> dict[str, Any]:
        """Save a draft, and open what was saved in its place."""
        opened = self.find(content)
        saved = saving.save(
            opened, read_request(requests.Save, content, len(opened.scenario.states))
        )
        if saved.path is not None:
            self._start.remember(saved.path)
        # Another window may look at the file that the studio was started with: that stays `own`.
        named = name_of(saved.path)
        if self._own is not None and name_of(self._own.path) == named:
            with self._lock:
                self._own = saved
            named = {"name": "own"}
        return {**self._keep(saved), "named": named}

    def _own_now(self) -> Opened | None:
        """The scenario that the studio was started with, as its file is now."""
        if self._own is None:
            return None
        opened = saving.open_again(self._own)
        with self._lock:
            self._own = opened
        return opened

    def list(self, content: dict[str, Any]) -> dict[str, Any]:
        """What the start page offers."""
        return self._start.describe()

    def drop(self, content: dict[str, Any]) -> dict[str, Any]:
        """Which of the listed files was dropped on the page."""
        request = read_request(requests.Dropped, content)
        return self._start.match(request.name, request.text)

    def find(self, content: dict[str, Any]) -> Opened:
        """The scenario that a request is about."""
        world = read_request(requests.World, content).world
        with self._lock:
            opened = self._opened.get(world)
        if opened is None and self._own is not None and self._own.fingerprint == world:
            opened = self._own
        if opened is None:
            raise ForgottenError
        return opened

    def _keep(self, opened: Opened) -> dict[str, Any]:
        with self._lock:
            self._opened[opened.fingerprint] = opened
        watched = self._watched is not None and name_of(opened.path) == self._watched
        return {"world": opened.fingerprint, "watched": watched, **opened.described}
