"""The studio: a page to draw a policy, see who is exposed and watch a simulated release.

The server knows scenarios and simulations only. It has no route to a store or to anybody's
data, listens on loopback, and takes nothing from the page on trust.
"""

from __future__ import annotations

from dphmm.errors import require

for _part in ("jinja2", "pydantic", "starlette", "uvicorn"):
    require(_part, "service")
