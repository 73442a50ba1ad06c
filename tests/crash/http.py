"""A plain client of an ASGI application, without a network."""

from __future__ import annotations

import asyncio

import httpx


class Direct(httpx.BaseTransport):
    """What carries the requests of a client that blocks, without a network."""

    def __init__(self, app):
        self._app = app

    def handle_request(self, request):
        return asyncio.run(self._handle(request))

    async def _handle(self, request):
        transport = httpx.ASGITransport(self._app)
        sent = httpx.Request(
            request.method, request.url, headers=request.headers, content=request.read()
        )
        response = await transport.handle_async_request(sent)
        content = await response.aread()
        return httpx.Response(response.status_code, headers=response.headers, content=content)


class Http:
    """One request at a time, each on a loop of its own."""

    def __init__(self, app):
        self._app = app

    def request(self, method, path, **options):
        return asyncio.run(self._request(method, path, options))

    async def _request(self, method, path, options):
        transport = httpx.ASGITransport(self._app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.request(method, path, **options)

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, **options):
        return self.request("POST", path, **options)
