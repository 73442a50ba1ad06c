"""`dphmm audit`: noise and streams held against their claim, after broken ones were caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import click

from dphmm.audit import (
    DRAWS,
    FALSE_ALARM,
    LEAST_DRAWS,
    SEQUENCE_SHARE,
    Audit,
    BatchSampler,
    Control,
    Sampler,
    StreamSampler,
    audit_sampler,
    controls,
    load,
    running_example,
    running_sequence,
    sampler_of,
)
from dphmm.audit.checks import write_chance
from dphmm.cli.common import json_option, print_json, progress
from dphmm.errors import DphmmError
from dphmm.scenario.auditing import short_stream, subject_of
from dphmm.scenario.scenario import Scenario

__all__ = ["command"]

OURS = ("knorm", "staircase", "laplace", "enlarged")

STREAMS = ("batch", "stream")
"""The running example over several steps, by the two ways in which we release."""

STREAM_SHARE = 300
"""A `Stream` takes longer still: so many times fewer rows are drawn."""


@click.command("audit")
@click.argument("scenario_file", metavar="[SCENARIO.TOML]", required=False)
@click.option(
    "--mechanism", "mechanisms", multiple=True, metavar="NAME",
    help="knorm, staircase, laplace, enlarged, batch, stream, or module:object; may be repeated.",
)  # fmt: skip
@click.option(
    "--draws", default=DRAWS, show_default=True, type=click.IntRange(1000), metavar="N",
    help="Answers to draw for each audited state.",
)  # fmt: skip
@json_option
def command(
    scenario_file: str | None, mechanisms: tuple[str, ...], draws: int, as_json: bool
) -> int:
    r"""Test the noise against the epsilon that it claims, from its answers alone.

    First ten broken mechanisms are audited; if one is not caught, nothing is said about the
    others. Then knorm, staircase, laplace and enlarged noise, batches and streams on the paper's
    running example, or the noise and a short stream of a scenario, or your own mechanism. Half
    of the draws look for events that tell linked states apart, the other half certifies them.
    The exit code is 1 if a violation was found or a control was missed. An audit can find a
    violation; it cannot show that there is none.

    \b
    Example:
      dphmm audit
      dphmm audit town.toml
      dphmm audit --mechanism mynoise:Sampler
    """
    subjects = _subjects(scenario_file, mechanisms, draws)
    share = FALSE_ALARM / len(subjects)
    # Controls take the same share, so that their power is the power of what follows.
    caught = controls(draws=draws, false_alarm=share)
    reliable = all(control.seen is not None for control in caught)
    if not as_json:
        click.echo(f"Controls on the paper's running example, {draws} draws a state:")
        for control in caught:
            click.echo(f"  {control.text()}")
    results = []
    if reliable:
        work = _audited(subjects, share)
        results = list(progress(work, total=len(subjects), what="auditing"))
    wrong = not reliable or any(result.violations for result in results)
    if as_json:
        print_json(_plain(caught, results, draws))
        return int(wrong)
    if not reliable:
        click.echo("A control was missed, so nothing can be said about the real mechanisms.")
        return 1
    for result in results:
        click.echo(result.text())
    alarm = sum(result.false_alarm for result in results)
    miss = max(control.miss for control in caught)
    click.echo(
        f"Chance of a false alarm over all {sum(len(r.findings) for r in results)} tests: "
        f"at most {write_chance(alarm)}. Chance to miss a control: at most {write_chance(miss)}."
    )
    return int(wrong)


Maker = Callable[[], Sampler]
Work = tuple[Maker, int]
"""What makes fresh samplers, and how many rows of each state are drawn."""


def _subjects(
    scenario_file: str | None, mechanisms: tuple[str, ...], draws: int
) -> dict[str, Work]:
    fewer = max(LEAST_DRAWS, draws // SEQUENCE_SHARE)
    if scenario_file is not None and mechanisms:
        raise click.UsageError("--mechanism must not go with a scenario, which has its own")
    if scenario_file is not None:
        scenario = Scenario.load(scenario_file)
        subjects = {scenario.name: (sampler_of(subject_of(scenario)), draws)}
        stream = short_stream(scenario)
        if stream is not None:
            subjects[f"{scenario.name}, a short stream"] = (stream, fewer)
        return subjects
    streams = {
        "batch": (running_sequence(BatchSampler), fewer),
        "stream": (
            running_sequence(StreamSampler, days=(2,), asks=1),
            max(LEAST_DRAWS, draws // STREAM_SHARE),
        ),
    }
    return {
        name: streams[name]
        if name in STREAMS
        else (sampler_of(running_example(name)) if name in OURS else load(name), draws)
        for name in mechanisms or (*OURS, *STREAMS)
    }


def _audited(subjects: dict[str, Work], share: float) -> Iterator[Audit]:
    for name, (make, draws) in subjects.items():
        try:
            yield audit_sampler(make, name=name, draws=draws, false_alarm=share)
        except DphmmError:
            raise
        except Exception as fault:
            if ":" not in name:
                raise
            raise click.ClickException(f"{name} failed: {type(fault).__name__}: {fault}") from fault


def _plain(caught: list[Control], results: list[Audit], draws: int) -> dict[str, Any]:
    return {
        "draws": draws,
        "controls": [
            {
                "name": control.name,
                "test": control.test,
                "caught": control.seen is not None,
                "miss": control.miss,
                "detail": None if control.seen is None else control.seen.detail,
            }
            for control in caught
        ],
        "false_alarm": sum(result.false_alarm for result in results),
        "mechanisms": [
            {
                "name": result.name,
                "claimed": float(result.epsilon),
                "violation": bool(result.violations),
                "result": result.text(),
                "draws": result.draws,
                "pairs": result.pairs,
                "linked": result.linked,
                "miss": result.miss,
                "leaks": result.leaks,
                "findings": [asdict(finding) for finding in result.findings],
            }
            for result in results
        ],
    }
