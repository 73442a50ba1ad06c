"""`dphmm report`: one page about a scenario and what was released under it."""

from __future__ import annotations

from pathlib import Path

import click

from dphmm.chain.estimates import Estimate
from dphmm.cli.common import (
    estimate_option,
    json_option,
    load_with,
    note,
    print_json,
    progress,
    say,
)
from dphmm.cli.released import read_released
from dphmm.errors import DataError
from dphmm.geometry.exact import as_text
from dphmm.report import (
    LAG,
    Ground,
    TrackFacts,
    drawn_besides,
    private_errors,
    read_truth,
    scenario_page,
)
from dphmm.tables.files import write_whole

__all__ = ["command"]


@click.command("report")
@click.argument("scenario_file", metavar="SCENARIO.TOML")
@click.argument("releases")
@click.option("-o", "--output", default="report.html", show_default=True, metavar="FILE")
@click.option("--person", help="Whose track is drawn; by default the first in the file.")
@click.option("--unit", default="", help="What to measure in, if not as the scenario says.")
@click.option(
    "--private-truth",
    metavar="TRIPS",
    help="The true trips. Adds a section for their owner that must not be published.",
)
@click.option(
    "--lag", default=LAG, show_default=True, type=click.IntRange(0), help="Steps waited for."
)
@click.option(
    "--ledger",
    metavar="BOOK",
    help="The ledger or store that RELEASES came from: counts all that was ever said. "
    "Default: SCENARIO.ledger.jsonl beside it, if it holds them.",
)
@estimate_option
@json_option
def command(
    scenario_file: str,
    releases: str,
    output: str,
    person: str | None,
    unit: str,
    private_truth: str | None,
    lag: int,
    ledger: str | None,
    estimate: Estimate | None,
    as_json: bool,
) -> int:
    r"""Write one HTML page about RELEASES, the output of `dphmm release`.

    It shows the map, the policy, the noise, who hides whom, a person's released and estimated
    track, and the ledger, and says in plain sentences what an adversary can and cannot learn.
    All of it is public unless you add --private-truth.

    \b
    Example:
      dphmm report town.toml released.csv -o report.html
    """
    read = [scenario_file, releases, *([private_truth] if private_truth else [])]
    if any(Path(output).resolve() == Path(name).resolve() for name in read):
        raise DataError(f"{output}: output must be a file of its own, got one that the run reads")
    scenario = load_with(scenario_file, estimate)
    ground = Ground.read(scenario, Path(scenario_file).parent)
    tracks = read_released(releases, scenario, scenario_file, ledger)
    people = [TrackFacts(track, lag) for track in tracks]
    names = [track.person for track in tracks]
    if person is not None and person not in names:
        raise DataError(f"{Path(releases).name}: file must hold releases of --person, got none")
    truth = None if private_truth is None else read_truth(private_truth, scenario)
    if truth is not None and not any(truth.of(facts) is not None for facts in people):
        raise DataError(
            f"{Path(private_truth or '').name}: trips must have every step of somebody in "
            f"{Path(releases).name}, got nobody's"
        )
    shown = next(one for one in people if person in (None, one.track.person))
    drawn = people if truth is not None else [shown, *drawn_besides(people, shown)]
    for facts in progress(drawn, total=len(drawn), what="working out"):
        facts.work_out(drawn=True, statement=facts is shown)
    page = scenario_page(scenario, people, person=person, truth=truth, unit=unit, ground=ground)
    write_whole(output, page, private=truth is not None)
    if as_json:
        answer: dict[str, object] = {
            "report": output,
            "private": truth is not None,
            "people": len(tracks),
            "releases": sum(facts.said for facts in people),
            "spent": {track.person: as_text(track.spent) for track in tracks},
            "statement": shown.statement.text(),
        }
        if truth is not None:
            everybody = [facts for facts in people if truth.of(facts) is not None]
            found = private_errors(everybody, truth)
            kinds = ("raw", "estimate", "lagged", "smoothed")
            answer["private_errors"] = {
                **{kind: getattr(found, kind) for kind in kinds},
                "expected": dict(zip(kinds, found.expected, strict=True)),
                "map": found.map if found.fixes else None,
                "fixes": found.fixes,
            }
        print_json(answer)
        return 0
    count = sum(facts.said for facts in people)
    people_in_words = "1 person" if len(tracks) == 1 else f"{len(tracks)} people"
    say(f"{output}: {people_in_words}, {count} {'answer' if count == 1 else 'answers'}")
    if truth is not None:
        note("it holds a private section: do not publish it")
    return 0
