"""Pages from templates: whatever is put into one is text, unless the template says otherwise."""

from __future__ import annotations

from base64 import b64encode
from fractions import Fraction
from functools import cache
from hashlib import sha256
from importlib import resources
from math import inf
from typing import TYPE_CHECKING, Any

from dphmm import __version__
from dphmm.cost.words import show_factor, show_number, show_share
from dphmm.errors import require
from dphmm.geometry.exact import as_text
from dphmm.report.svg import write_number
from dphmm.report.symbols import symbol_key
from dphmm.tables.units import measure

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["render"]


def render(template: str, **values: Any) -> str:
    """The page of a template; a value that it needs and does not get is an error."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    jinja2 = require("jinja2", "cli")
    environment: Environment = jinja2.Environment(
        loader=jinja2.PackageLoader("dphmm.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {
        "version": __version__,
        "script_text": _script,
        "script_hash": _hash,
        "symbol_key": symbol_key,
    }
    environment.filters |= {
        "exact": as_text,
        "number": _number,
        "measure": measure,
        "factor": show_factor,
        "thousands": "{:,}".format,
        "percent": lambda share, digits: f"{100 * share:.{digits}f}",
        "share": show_share,
        "coordinate": _coordinate,
    }
    return environment


def _number(value: Fraction | float) -> str:
    return "∞" if value == inf else show_number(value)


def _coordinate(value: float) -> str:
    """A number of an answer in at most nine digits, without powers of ten."""
    return write_number(float(f"{value:.9g}"))


@cache
def _script(name: str) -> str:
    """A script that stands in a page, as it stands there."""
    return (resources.files("dphmm.report") / "templates" / name).read_text("utf-8")


def _hash(name: str) -> str:
    """What the page's policy allows to run: this script and no other."""
    digest = sha256(_script(name).encode("utf-8")).digest()
    return f"sha256-{b64encode(digest).decode('ascii')}"
