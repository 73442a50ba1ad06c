"""`dphmm check`: what a scenario protects, step by step, before anybody is released."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from dphmm.cli.common import json_option, print_json, progress
from dphmm.cost.statement import PrivacyStatement
from dphmm.cost.words import SHAPED
from dphmm.geometry.exact import as_text
from dphmm.scenario.checking import Check, Step, check_scenario, doubts, narrows
from dphmm.scenario.scenario import Scenario
from dphmm.scenario.speaking import how_often
from dphmm.scenario.stepping import whenever
from dphmm.tables.units import measure

__all__ = ["command"]

LISTED = 5
"""States named in a line for people; `--json` names all of them."""


@click.command("check")
@click.argument("scenario_file", metavar="SCENARIO.TOML")
@click.option("--steps", default=10, show_default=True, type=click.IntRange(1), metavar="T")
@json_option
def command(scenario_file: str, steps: int, as_json: bool) -> int:
    r"""Say who is exposed at which step, what repair adds, and what an answer is worth.

    The exit code is 1 if somebody stays exposed: the policy leaves them alone and repair is
    off, or only one state is possible.

    \b
    Example:
      dphmm check town.toml --steps 20
    """
    scenario = Scenario.load(scenario_file)
    check = check_scenario(
        scenario, steps, lambda found: progress(found, total=steps, what="checking")
    )
    found = check.steps
    unprotected, costs, unit = bool(check.exposed), check.costs, check.unit
    if as_json:
        often = how_often(scenario)
        print_json(
            {
                "scenario": scenario.name,
                "states": len(scenario.states),
                "model": scenario.source,
                "epsilon": as_text(scenario.settings.epsilon),
                "guarantee": check.guarantee,
                "verdict": check.verdict,
                "speaks": None
                if often is None
                else asdict(often) | {"epsilon": as_text(often.epsilon)},
                "exposed": unprotected,
                "doubts": doubts(scenario),
                "unit": unit,
                "steps": [step.plain() for step in found],
                "costs": None if costs is None else _plain(scenario, check, costs),
            }
        )
        return int(unprotected)
    click.echo(f"{scenario.name}: {len(scenario.states)} states; model: {scenario.source}")
    click.echo(check.guarantee)
    for doubt in doubts(scenario):
        click.echo(f"note: {doubt}")
    head = "step  possible  exposed  repair adds  hull                    DoP         error"
    click.echo(f"{head:82s}  {'rms':10s}  least")
    for step in found:
        click.echo(_line(step, unit))
        if step.own_error is not None:
            click.echo(
                f"      {step.own_possible} by the model's own moves, rms "
                f"{measure(step.own_error, unit)} if they were facts"
                f"{whenever(scenario, anyway=True)}"
            )
        if step.exposed_before:
            names = ", ".join(step.exposed_before[:LISTED])
            more = len(step.exposed_before) - LISTED
            fate = "exposed" if step.exposed else "exposed without repair"
            click.echo(f"      {fate}: {names}{f' and {more} more' if more > 0 else ''}")
        if step.added:
            pairs = ", ".join(f"{a} - {b}" for a, b in step.added[:LISTED])
            more = len(step.added) - LISTED
            click.echo(f"      linked by repair: {pairs}{f' and {more} more' if more > 0 else ''}")
    if found[-1].lasts:
        click.echo(f"From step {found[-1].time} on nothing changes without a release.")
    click.echo("error: the mean distance of an answer; rms: the root of its mean square")
    click.echo(
        "least: no mechanism that answers every point of the lattice under such a hull has a "
        "smaller rms"
    )
    if costs is not None:
        click.echo(f"{check.planned}:")
        click.echo("\n".join(f"  {line}" for line in costs.text().splitlines()))
    elif narrows(scenario, found):
        click.echo(f"What several answers cost depends on the answers ({SHAPED}).")
    click.echo(click.style(check.verdict, fg="red" if unprotected else "green"))
    return int(unprotected)


def _plain(scenario: Scenario, check: Check, costs: PrivacyStatement) -> dict[str, Any]:
    """The costs for programs, with what they rest on beside for whom they hold."""
    only = f"{whenever(scenario)}{costs.condition}".lstrip(",; ")
    return {"if": check.planned, **costs.plain(), "condition": only or None}


def _line(step: Step, unit: str) -> str:
    squared = f"{unit}^{step.rank}" if unit and step.rank > 1 else unit
    hull = f"rank {step.rank}, {measure(step.volume, squared)}"
    degrees = f"{step.least_protection}..{step.most_protection}"
    return (
        f"{step.time:4d}  {step.possible:8d}  {len(step.exposed_before):7d}  "
        f"{len(step.added):11d}  {hull:22s}  {degrees:10s}  {measure(step.mean_error, unit):10s}  "
        f"{measure(step.error, unit):10s}  {measure(step.least_error, unit)}"
    )
