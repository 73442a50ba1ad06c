"""The API on one page of plain HTML, from its OpenAPI description and with no script."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from dphmm.errors import require

__all__ = ["api_page"]


def api_page(description: dict[str, Any]) -> str:
    """Every route with its words, its body's fields and its answers."""
    jinja2 = require("jinja2", "service")
    text = files("dphmm.service").joinpath("page.html").read_text(encoding="utf-8")
    page = jinja2.Environment(autoescape=True, trim_blocks=True).from_string(text)
    schemas = description.get("components", {}).get("schemas", {})
    return str(page.render(**description, schemas=schemas, bodies=_bodies))


def _bodies(operation: dict[str, Any]) -> list[str]:
    """The names of the bodies that a route takes."""
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    options = [schema, *schema.get("anyOf", [])]
    return [option["$ref"].rpartition("/")[2] for option in options if "$ref" in option]
