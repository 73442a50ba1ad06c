"""The API on one page of plain HTML, from its OpenAPI description and with no script."""

from __future__ import annotations

from html import escape
from typing import Any

__all__ = ["api_page"]

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem;
  color-scheme: light dark; }
code, pre { font: 14px/1.45 ui-monospace, monospace; }
h2 code { font-size: 1.05rem; }
section { border-top: 1px solid #8884; padding: .5rem 0 1rem; }
table { border-collapse: collapse; } td { padding: .1rem 1rem .1rem 0; vertical-align: top; }
"""


def api_page(description: dict[str, Any]) -> str:
    """Every route with its words, its body's fields and its answers."""
    info = description["info"]
    schemas = description.get("components", {}).get("schemas", {})
    sections = [
        _section(method.upper(), path, operation, schemas)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"<title>{escape(info['title'])} API</title><style>{STYLE}</style>"
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>"
        f"<p>{escape(info.get('description', ''))}</p>"
        "<p>A key comes as <code>Authorization: Bearer KEY</code>; a problem comes as "
        '<code>{"problem": "..."}</code>. The same for programs: '
        '<a href="/openapi.json">openapi.json</a>.</p>' + "".join(sections) + "</html>"
    )


def _section(method: str, path: str, operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    words = operation.get("description") or operation.get("summary", "")
    answers = ", ".join(escape(status) for status in operation["responses"])
    return (
        f"<section><h2><code>{method} {escape(path)}</code></h2><p>{escape(words)}</p>"
        f"{_fields(operation, schemas)}<p>Answers: {answers}</p></section>"
    )


def _fields(operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    """A row for each field of the body, with its type and its words."""
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    options = [schema, *schema.get("anyOf", [])]
    names = [option["$ref"].rpartition("/")[2] for option in options if "$ref" in option]
    rows = []
    for name in names:
        required = set(schemas[name].get("required", ()))
        for field, about in schemas[name].get("properties", {}).items():
            kinds = [about, *about.get("anyOf", [])]
            kind = " or ".join(str(part["type"]) for part in kinds if "type" in part)
            need = "required" if field in required else "optional"
            rows.append(
                f"<tr><td><code>{escape(field)}</code></td><td>{escape(kind)}</td>"
                f"<td>{need}</td><td>{escape(about.get('description', ''))}</td></tr>"
            )
    return f"<table>{''.join(rows)}</table>" if rows else ""
