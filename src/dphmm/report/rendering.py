"""Pages from templates: whatever is put into one is text, unless the template says otherwise."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any

from dphmm import __version__
from dphmm.cost.words import show_factor, show_number, show_odds
from dphmm.errors import require
from dphmm.geometry.exact import as_text
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
    environment.globals["version"] = __version__
    environment.filters |= {
        "exact": as_text,
        "number": _number,
        "measure": measure,
        "odds": show_odds,
        "factor": show_factor,
        "thousands": "{:,}".format,
        "digits": lambda value, count: f"{float(value):.{count}g}",
        "percent": lambda share, digits: f"{100 * share:.{digits}f}",
    }
    return environment


def _number(value: Fraction | float) -> str:
    return "∞" if value == inf else show_number(value)
