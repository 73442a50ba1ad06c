"""`dphmm design`: the radius or epsilon that meets a wanted error or protection."""

from __future__ import annotations

import click

from dphmm.cli.common import json_option, print_json
from dphmm.geometry.exact import as_text
from dphmm.scenario.building import unit_of
from dphmm.scenario.checking import covered
from dphmm.scenario.designing import find_epsilon, find_radius
from dphmm.scenario.scenario import Scenario
from dphmm.tables.units import length, measure

__all__ = ["command"]


@click.command("design")
@click.argument("scenario_file", metavar="SCENARIO.TOML")
@click.option("--find", type=click.Choice(["radius", "epsilon"]), required=True)
@click.option("--error", help="The largest root mean squared error, such as 250 or 0.25km.")
@click.option("--protection", type=click.IntRange(2), help="The smallest degree of protection.")
@click.option("--steps", default=10, show_default=True, type=click.IntRange(1), metavar="T")
@json_option
def command(
    scenario_file: str,
    find: str,
    error: str | None,
    protection: int | None,
    steps: int,
    as_json: bool,
) -> int:
    r"""Find the radius or epsilon that meets a wanted error or degree of protection.

    An epsilon is the smallest, in thousandths, that keeps the error. A radius is a multiple
    of the query's step: the smallest that gives the protection, or the largest that keeps the
    error. The exit code is 1 if there is none.

    \b
    Example:
      dphmm design town.toml --find epsilon --error 250m
      dphmm design town.toml --find radius --protection 5
    """
    scenario = Scenario.load(scenario_file)
    unit = unit_of(scenario)
    wanted = None if error is None else length(error, unit, "error")
    if find == "epsilon":
        if error is None or protection is not None:
            raise click.UsageError("--find epsilon must go with --error, and with nothing else")
        found = find_epsilon(scenario, wanted or 0, steps)
    elif error is None and protection is None:
        raise click.UsageError("--find radius must go with --error or --protection")
    else:
        found = find_radius(scenario, error=wanted, protection=protection, steps=steps)
    if as_json:
        facts = None
        if found is not None:
            facts = {"error": found.error, "protection": found.protection}
        print_json({find: None if found is None else as_text(found.value), "gives": facts})
        return int(found is None)
    if found is None:
        click.echo(f"No {find} meets the wish.")
        return 1
    setting = "epsilon" if find == "epsilon" else "policy.distance"
    click.echo(f'{setting} = "{as_text(found.value)}"')
    click.echo(
        f"gives an error of at most {measure(found.error, unit)} and hides every possible state "
        f"among at least {found.protection} (itself included), in steps without a release"
        f"{covered(scenario)}"
    )
    return 0
