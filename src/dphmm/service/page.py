"""The API on one page of plain HTML, from its OpenAPI description and with no script."""

from __future__ import annotations

from functools import partial
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
    return str(page.render(**description, bodies=partial(_bodies, schemas)))


def _bodies(schemas: dict[str, Any], operation: dict[str, Any]) -> list[dict[str, Any]]:
    """The bodies that a route takes."""
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    options = [schema, *schema.get("anyOf", [])]
    named = [schemas[one["$ref"].rpartition("/")[2]] for one in options if "$ref" in one]
    return named + [one for one in options if "properties" in one]
