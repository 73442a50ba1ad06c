"""`dphmm design`: the radius, epsilon, schedule or budget that meets a wish."""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from dphmm.chain.estimates import ESTIMATES, Estimate
from dphmm.cli.common import (
    check_apart,
    column_option,
    columns_from,
    json_option,
    print_json,
    progress_bar,
    read_tracks,
    say,
)
from dphmm.cost.limit import Window
from dphmm.cost.words import NEARER
from dphmm.geometry.exact import as_text
from dphmm.report import design_page
from dphmm.scenario.budgeting import (
    ERRORS,
    PEOPLE,
    BudgetDesign,
    ErrorOf,
    find_budget,
    find_schedule,
)
from dphmm.scenario.building import unit_of
from dphmm.scenario.checking import covered
from dphmm.scenario.designing import find_epsilon, find_radius
from dphmm.scenario.scenario import Scenario
from dphmm.scenario.spending import Spending
from dphmm.scenario.stepping import whenever
from dphmm.tables.files import write_whole
from dphmm.tables.units import length, measure

__all__ = ["command"]

SPENT = ("schedule", "budget")
"""What is looked for on people."""


@click.command("design")
@click.argument("scenario_file", metavar="SCENARIO.TOML")
@click.option("--find", type=click.Choice(["radius", "epsilon", *SPENT]), required=True)
@click.option("--error", help="The largest error, such as 250 or 0.25km: root mean squared, of an "
              "answer; for a budget the mean distance of an estimate.")  # fmt: skip
@click.option("--protection", type=click.IntRange(2), help="The smallest degree of protection.")
@click.option("--steps", default=10, show_default=True, type=click.IntRange(1), metavar="T",
              help="Steps looked at for a radius or epsilon.")  # fmt: skip
@click.option("--budget", help="What may be spent, such as '24 per 1 day'; finds the schedule.")
@click.option("--per", metavar="WINDOW", help="The window of a budget to find; 1 day by default.")
@click.option("--error-of", type=click.Choice(ERRORS), default=ERRORS[0], show_default=True,
              help="Which estimate must be close: given all answers, or as released.")  # fmt: skip
@click.option("--estimate", type=click.Choice(ESTIMATES),
              help="What stands for a belief; by default whichever is closer.")  # fmt: skip
@click.option("--trips", metavar="FILE", help="Public tracks to compare on, not simulated people.")
@click.option("--people", default=PEOPLE, show_default=True, type=click.IntRange(1), metavar="N",
              help="How many people to compare on.")  # fmt: skip
@click.option("--plot", metavar="HTML", help="Write the curve and the table to a page.")
@click.option("-o", "--output", metavar="TOML", help="Write the scenario with the best schedule.")
@column_option
@json_option
def command(
    scenario_file: str,
    find: str,
    error: str | None,
    protection: int | None,
    steps: int,
    as_json: bool,
    **spending: Any,
) -> int:
    r"""Find the radius, epsilon, schedule or budget that meets a wish.

    An epsilon is the smallest, in thousandths, that keeps the error (for a staircase one that
    does while a thousandth less does not). A radius is a multiple of the query's step: the
    smallest that gives the protection, or the largest that keeps the error. The exit code is 1
    if there is none.

    A schedule is how often to speak, at which price and with which noise, so that estimates are
    closest for a budget; a budget is the smallest round one whose best schedule keeps the error
    of estimates. Both are compared on people: simulated by the model, or those of --trips, which
    must be public, best people whom the model was not learned from. Nothing is released.

    \b
    Example:
      dphmm design town.toml --find epsilon --error 250m
      dphmm design town.toml --find radius --protection 5
      dphmm design town.toml --find schedule --budget "24 per 1 day" --plot curve.html -o day.toml
      dphmm design town.toml --find budget --error 500m --trips public.csv
    """
    scenario = Scenario.load(scenario_file)
    unit = unit_of(scenario)
    wanted = None if error is None else length(error, unit, "error")
    if find in SPENT:
        if protection is not None or (find == "schedule") == (error is not None):
            raise click.UsageError(
                "--find schedule must go with --budget, and --find budget with --error"
            )
        return _spend(scenario, scenario_file, wanted, as_json=as_json, **spending)
    for name in ("budget", "per", "trips", "plot", "output"):
        if spending[name] is not None:
            raise click.UsageError(f"--{name} must go with --find schedule or budget")
    if find == "epsilon":
        if error is None or protection is not None:
            raise click.UsageError("--find epsilon must go with --error, and with nothing else")
        found = find_epsilon(scenario, wanted or 0, steps)
    elif error is None and protection is None:
        raise click.UsageError("--find radius must go with --error or --protection")
    else:
        with progress_bar(total=None, what="radii tried") as done:
            found = find_radius(
                scenario, error=wanted, protection=protection, steps=steps, done=done
            )
    # What was looked at: later, or from another slot on, other states may be possible.
    first = "in the first step" if steps == 1 else f"in the first {steps} steps"
    only = f"{first} without a release{whenever(scenario)}{covered(scenario)}"
    if as_json:
        facts = None
        if found is not None:
            facts = {"error": found.error, "protection": found.protection, "condition": only}
        print_json({find: None if found is None else as_text(found.value), "gives": facts})
        return int(found is None)
    if found is None:
        click.echo(f"No {find} meets the wish.")
        return 1
    setting = "epsilon" if find == "epsilon" else "policy.distance"
    click.echo(f'{setting} = "{as_text(found.value)}"')
    click.echo(
        f"gives an error of at most {measure(found.error, unit)} and hides every possible state "
        f"among at least {found.protection} (itself included), {only}"
    )
    return 0


def _spend(
    scenario: Scenario,
    scenario_file: str,
    error: Any,
    *,
    budget: str | None,
    per: str | None,
    error_of: ErrorOf,
    estimate: Estimate | None,
    trips: str | None,
    people: int,
    plot: str | None,
    output: str | None,
    column_names: tuple[str, ...],
    as_json: bool,
) -> int:
    """A schedule for a budget, or a budget for an error."""
    if (budget is None) == (error is None) or (per is not None and error is None):
        raise click.UsageError(
            "--find schedule must go with --budget, and --find budget with --error and --per"
        )
    read = [scenario_file, *([trips] if trips else [])]
    for written in (plot, output):
        check_apart(written, read)
    clock = scenario.settings.clock
    options: dict[str, Any] = {"people": people, "error_of": error_of, "estimate": estimate}
    if trips is not None:
        columns = columns_from(column_names)
        options["tracks"] = read_tracks(trips, scenario.states, clock, columns)
    if error is not None and per is None and not clock.has_dates:
        raise click.UsageError("--per must be given, like '100 steps', where times are no dates")
    with progress_bar(total=None, what="days tried") as done:
        found = (
            find_schedule(scenario, budget, done=done, **options)
            if budget is not None
            else find_budget(scenario, error, per or "1 day", done=done, **options)
        )
    if found is None:
        print_json({"budget": None}) if as_json else click.echo("No budget meets the wish.")
        return 1
    chosen = found.adopt(scenario)
    if plot is not None:
        write_whole(plot, design_page(scenario, found))
    if output is not None and Path(output).parent.resolve() == Path(scenario_file).parent.resolve():
        write_whole(output, chosen.settings.to_toml())  # what it names is there already
    elif output is not None:
        Path(output).parent.mkdir(parents=True, exist_ok=True)
        chosen.save(output)
    if as_json:
        print_json(_plain(found, unit_of(scenario)))
    else:
        _print(found, chosen, plot, output)
    return 0


def _plain(found: BudgetDesign, unit: str) -> dict[str, Any]:
    def way(one: Spending) -> dict[str, Any]:
        return asdict(one) | {"epsilon": as_text(one.epsilon)}

    return {
        "budget": str(found.budget),
        "best": way(found.best),
        "expected": found.error(found.best),
        "error_of": found.error_of,
        "expected_on": found.whom,
        "unit": unit,
        "ways": [way(one) for one in found.ways],
        "tried": [
            {"budget": as_text(amount), "expected": error, **way(one)}
            for amount, one, error in found.tried
        ],
    }


def _print(found: BudgetDesign, chosen: Scenario, plot: str | None, output: str | None) -> None:
    unit, settings, best = unit_of(chosen), chosen.settings, found.best
    in_unit = f" in {unit}" if unit else ""
    click.echo(f"{found.budget}, tried on {found.whom}; mean distances{in_unit}")
    rows = [["every", "epsilon", "noise", "estimate", "hindsight", "now", "adversary", ""]]
    rows += [
        [
            _interval(way.every, chosen),
            as_text(way.epsilon),
            way.mechanism,
            way.estimate,
            f"{measure(way.hindsight)} ± {measure(way.spread)}",
            measure(way.now),
            measure(way.adversary),
            "recommended" if way == best else "",
        ]
        for way in found.ways
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        click.echo(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
    for amount, way, error in found.tried:
        every = _interval(way.every, chosen)
        click.echo(f"{as_text(amount)}: {measure(error, unit)}, every {every}, {way.mechanism}")
    kind = "as released" if found.error_of == "now" else "in hindsight"
    beyond = (
        "People move less regularly than a model: for them it is more (try --trips)."
        if found.simulated
        else "If the model was learned from these people, for others it is more."
    )
    click.echo(
        f"Expected on {found.whom}: {measure(found.error(best), unit)} {kind}, evened out with the "
        f"intervals beside it. {beyond}"
    )
    click.echo(
        f"adversary: somebody who knows that a person stays at one place and reads all answers of "
        f"a window is {measure(best.adversary, unit)} off"
    )
    if best.mechanism == "staircase":
        click.echo(NEARER)
    if settings.limit is not None:
        click.echo(f"limit: {settings.limit.words}{covered(chosen)}")
    for path, what in ((plot, "the curve"), (output, "the scenario")):
        if path is not None:
            say(f"{path}: {what}")


def _interval(every: int, scenario: Scenario) -> str:
    """So many steps and, with dates, how long that is."""
    steps = f"{every} {'step' if every == 1 else 'steps'}"
    clock = scenario.settings.clock
    if not clock.has_dates:
        return steps
    long = Window(Fraction(1), every * clock.seconds, timed=True).length
    return f"{steps} ({long})"
