"""`dphmm demo`: the main job end to end on a synthetic city."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from time import perf_counter

import click

from dphmm.cli.common import json_option, print_json
from dphmm.cli.common import say as tell
from dphmm.demo import BUDGET, MOST_PEOPLE, Demo, run_demo
from dphmm.geometry.exact import as_text

__all__ = ["command"]

WANTED_RATIO = 0.5
"""What the mean error in hindsight may be at most, as a part of that without any answer."""

FILES = (
    ("report.html", "the report: open it in a browser"),
    ("report-private.html", "the same with the true tracks, for their owner only"),
    ("city.toml", "the scenario: states, model, policy, noise, epsilon, when, limit"),
    ("cells.csv", "the states: 340 m cells with a category each"),
    ("streets.geojson", "the base map under them: river and fast roads"),
    ("model.npz", "the model that was learned"),
    ("history.csv", "the trips that it was learned from"),
    ("public.csv", "trips of others who agreed, to design with"),
    ("trips.csv", "the day that was released, before noise"),
    ("released.csv", "the same day, private: answers and estimates"),
    ("city.ledger.jsonl", "what was said and what it cost, person by person"),
)


@click.command("demo")
@click.option("-o", "--output", "folder", default="demo", show_default=True, metavar="FOLDER")
@click.option(
    "--people", default=12, show_default=True, type=click.IntRange(1, MOST_PEOPLE), metavar="N",
    help="How many people to release.",
)  # fmt: skip
@json_option
def command(folder: str, people: int, as_json: bool) -> int:
    r"""Make a small city, learn how people move, and release a day of theirs privately.

    Takes less than a minute and writes everything to a folder, to look at and to change. The
    people are made up; the noise is not. The exit code is 1 if the estimates in hindsight are
    not at least twice as close as those without any answer.

    \b
    Example:
      dphmm demo
    """
    began = perf_counter()

    def say(line: str) -> None:
        if not as_json:
            tell(f"  {line}")

    if not as_json:
        tell("dphmm demo\n")
    demo = run_demo(folder, people=people, say=say)
    seconds = perf_counter() - began
    if as_json:
        print_json(_plain(demo, seconds))
    else:
        _print(demo, seconds)
    return int(demo.ratio > WANTED_RATIO)


def _plain(demo: Demo, seconds: float) -> dict[str, object]:
    return {
        "folder": str(demo.folder),
        "files": [name for name, _ in FILES],
        "people": list(demo.people),
        "steps": demo.steps,
        "answers": demo.answers,
        "spent": as_text(demo.spent),
        "repeated": demo.repeated,
        "states": demo.states,
        "links": demo.links,
        "exposed": len(demo.check.exposed),
        "least_protection": demo.check.least_protection,
        "mean_error": {
            "raw": demo.errors.raw,
            "estimate": demo.errors.estimate,
            "smoothed": demo.errors.smoothed,
            "unknown": demo.unknown,
        },
        "ratio": demo.ratio,
        "seconds": round(seconds, 1),
    }


def _print(demo: Demo, seconds: float) -> None:
    errors, check, folder = demo.errors, demo.check, shlex.quote(str(demo.folder))
    program, last = _program(), demo.people[-1]
    nobody = "Nobody is exposed" if not check.exposed else f"{len(check.exposed)} are exposed"
    verdict = "less than half" if demo.ratio <= WANTED_RATIO else "NOT less than half"
    again = f", {demo.repeated} of them said before, at no cost" if demo.repeated else ""
    width = max(len(name) for name, _ in FILES) + len(str(folder)) + 3
    lines = [
        "",
        f"A day of each person for a total of {as_text(demo.spent)}, and estimates in hindsight "
        f"{errors.smoothed:.0f} m from the truth.",
        "",
        f"{demo.states} cells, {demo.links} pairs that must look alike, {len(demo.people)} people, "
        f"{demo.answers} answers, {demo.steps} steps with an estimate{again}",
        f"{nobody}: every cell is hidden among at least {check.least_protection}.",
        "",
        "Mean distance to the truth (known here because the people are made up)",
        f"  released answer       {errors.raw:6.0f} m   every two hours, and nothing in between",
        f"  estimate at the time  {errors.estimate:6.0f} m   of every five minutes",
        f"  estimate in hindsight {errors.smoothed:6.0f} m   {demo.ratio:.0%} of that without any "
        f"answer, {verdict}",
        f"  without any answer    {demo.unknown:6.0f} m   what the model alone tells",
        "Estimates use the answers and the model alone, so they cost no privacy.",
        "",
        "Where everything is",
        *(f"  {f'{folder}/{name}':{width}}{what}" for name, what in FILES),
        "",
        "What to type next",
        f"  {program} check {folder}/city.toml",
        f'  {program} design {folder}/city.toml --find schedule --budget "{BUDGET}" '
        f"--trips {folder}/public.csv",
        f"  {program} report {folder}/city.toml {folder}/released.csv --person {last} "
        f"-o {folder}/{last}.html",
        f"  {program} studio {folder}/city.toml",
        "",
        f"Done in {seconds:.0f} seconds. docs/tutorial.md goes through it step by step.",
    ]
    tell("\n".join(lines))


def _program() -> str:
    """What to type for this program, wherever it was started from."""
    started = Path(sys.argv[0])
    if started.name != "dphmm":
        return "python -m dphmm"
    known = shutil.which("dphmm")
    same = known is not None and Path(known).resolve() == started.resolve()
    return "dphmm" if same else shlex.quote(str(started))
