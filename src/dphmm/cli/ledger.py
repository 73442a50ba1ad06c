"""`dphmm ledger`: look into a book, adopt a changed scenario, change the key."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from fractions import Fraction
from typing import Any

import click

from dphmm.books.changing import adopt_terms, rotate_key
from dphmm.books.store import Store
from dphmm.cli.common import json_option, keyed, print_json
from dphmm.cli.stores import Opening, store_options
from dphmm.geometry.exact import as_text
from dphmm.release.admission import Place
from dphmm.release.moment import Line
from dphmm.release.terms import Terms
from dphmm.scenario import Scenario

__all__ = ["command"]


@click.group("ledger")
def command() -> None:
    r"""Look into a ledger, go on under a changed scenario, change the key.

    BOOK is the ledger file of `dphmm release`, or a store (a file, sqlite:///path or
    postgresql://...).

    \b
    Example:
      dphmm ledger show town.ledger.jsonl
      dphmm ledger adopt town.ledger.jsonl town.toml --same-states
    """


@command.command("show")
@click.argument("book")
@click.argument("scenario_file", metavar="[SCENARIO.TOML]", required=False)
@json_option
@store_options
def show_command(book: str, scenario_file: str | None, as_json: bool, opening: Opening) -> int:
    r"""Say what was said about how many people, and what it cost.

    Where a person has a budget, or a scenario is given that has a limit, also what is left of
    it: in all, and in the windows that contain the latest step.

    \b
    Example:
      dphmm ledger show town.ledger.jsonl
      dphmm ledger show town.ledger.jsonl town.toml
    """
    terms = None if scenario_file is None else Scenario.load(scenario_file).terms
    people: list[dict[str, Any]] = []
    with closing(opening.book(book)) as held:
        for line in held.lines():
            (place,) = held.places([line])
            limit, left = _what_is_left(place, line, terms)
            standing = place.standing
            people.append(
                {
                    "client": line.client,
                    "person": line.person,
                    "query": line.query,
                    "slot": place.latest,
                    "spoke": None if standing is None else standing.spoke,
                    "spent": as_text(place.spent),
                    "limit": limit,
                    "left": left,
                    "law": None if standing is None else standing.law.hex(),
                }
            )
        key = held.key()
    if as_json:
        print_json({"people": people, "key": None if key is None else vars(key)})
        return 0
    questions = Counter((row["client"], row["person"]) for row in people)
    for row in people:
        who = f"{row['client']}/{row['person']}" if row["client"] else row["person"]
        several = questions[row["client"], row["person"]] > 1
        spent = f"spent {row['spent']}{' on all questions' if several else ''}"
        left = "" if row["limit"] is None else f", {row['left']} left of {row['limit']}"
        silent = "" if row["spoke"] == row["slot"] else f", last answer at slot {row['spoke']}"
        slot = f"slot {row['slot']:<12}"
        click.echo(f"{who:<24} {row['query']:<12} {slot} {spent}{left}{silent}")
    source = "the operating system's noise" if key is None or key.fingerprint is None else key
    click.echo(f"{len(people)} lines; key: {getattr(source, 'fingerprint', source)}")
    return 0


def _what_is_left(place: Place, line: Line, terms: Terms | None) -> tuple[str | None, str | None]:
    """The limits of a person in words, and what they still allow at the latest slot."""
    clock = "" if place.standing is None else place.standing.clock
    own = terms is not None and (terms.query, terms.clock) == (line.query, clock)
    limit = place.both(terms.limit if terms is not None and own else None, clock)
    if limit is None or place.latest is None:
        return None, None
    left = place.budget(limit, clock, place.latest).left(place.latest)
    return str(limit), as_text(Fraction(left))


@command.command("adopt")
@click.argument("book")
@click.argument("scenario_file", metavar="SCENARIO.TOML")
@click.option("--same-states", is_flag=True, help="The states are the same: keep what is believed.")
@click.option("--other-states", is_flag=True, help="They are others: the new start holds now.")
@click.option("--client", help="Only this client's people.")
@click.option("--person", help="Only this person.")
@json_option
@store_options
def adopt_command(
    book: str,
    scenario_file: str,
    same_states: bool,
    other_states: bool,
    client: str | None,
    person: str | None,
    as_json: bool,
    opening: Opening,
) -> int:
    r"""Let people go on under a scenario that has changed since they were last answered.

    A changed model, policy or query is refused for new answers until it is adopted, which is
    written down. Answered steps keep their answers, and what was spent stays spent. With
    --same-states (a retrained model, another policy) what answers have told about where people
    are is carried over. With --other-states it cannot be: the start of the new scenario is then
    taken to be what is known at their latest step.

    \b
    Example:
      dphmm ledger adopt town.ledger.jsonl town.toml --same-states
      dphmm ledger adopt streams.db town.toml --same-states --client clinic
    """
    if same_states == other_states:
        raise click.UsageError("one of --same-states and --other-states must be given")
    terms = Scenario.load(scenario_file).terms
    with closing(opening.book(book)) as held:
        moved = list(
            adopt_terms(held, terms, same_states=same_states, client=client, person=person)
        )
    if as_json:
        print_json({"adopted": len(moved), "law": terms.law.hex()})
    else:
        click.echo(f"{len(moved)} people go on under {scenario_file}")
    return 0


@command.command("rotate")
@click.argument("book")
@click.option("--key-file", metavar="FILE", help="The new key; the system's noise without one.")
@json_option
@store_options
def rotate_command(book: str, key_file: str | None, as_json: bool, opening: Opening) -> int:
    r"""Let another key make the noise, from the step after the latest answer on.

    Earlier steps are closed from then on, also for people who were not answered there.

    \b
    Example:
      dphmm ledger rotate town.ledger.jsonl --key-file new.key
    """
    with closing(opening.book(book)) as held:
        key = rotate_key(held, keyed(key_file))
        kind = "store" if isinstance(held, Store) else "ledger"
    if as_json:
        print_json(vars(key))
    else:
        firsts = [f"{first} of {clock or '1'}" for clock, first in key.clocks.items()]
        slots = str(key.first) if len(firsts) == 1 else f"{' and '.join(firsts)}, by time step,"
        click.echo(f"the {kind}'s key serves from slot {slots} on")
    return 0
