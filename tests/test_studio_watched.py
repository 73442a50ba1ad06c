"""The live page: what it looks like in every state, and a source that goes away and comes back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("starlette")

from dphmm import Client
from dphmm.books import Store
from dphmm.errors import StoreError
from dphmm.studio import live, watching
from dphmm.studio.saving import open_file
from dphmm.studio.server import run_in_background
from tests.scenarios import paper_scenario
from tests.studio_page import Studio, sync_api
from tests.test_service_processes import free_port, key_of, serving
from tests.test_studio_browser import CONTRAST, WIDTHS
from tests.test_studio_live import END, HEAD, line, say
from tests.test_studio_sizes import RULER

pytestmark = pytest.mark.browser
expect = sync_api.expect

Watched: TypeAlias = tuple[Path | str, Callable[[], None]]
"""Where answers are, and how more of them come there."""

PEOPLE = ("ann", "bob", "somebody with a name that is as long as names are")

ANSWERS = ".track-answers circle, .track-answers .away"
"""Answers on the map, and arrows to those that lie off it."""


@pytest.fixture
def limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scenario that people are done with after three answers; a service is looked at often."""
    monkeypatch.setitem(live.OFTEN, "service", 2.0)
    paper_scenario(limit="3 per 10 steps").save(tmp_path / "town.toml")
    return tmp_path / "town.toml"


@contextmanager
def ledger(
    town: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Path, Callable[[], None]]]:
    path, law = town.with_suffix(".jsonl"), open_file(town).scenario.law
    path.write_bytes(HEAD + END)

    def speak() -> None:
        said = [line(person, slot, law) for person in PEOPLE for slot in (1, 2, 3)]
        with path.open("ab") as file:
            file.write(b"".join(said) + line("eve", 3, "other") + END)

    yield path, speak


@contextmanager
def store(town: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    path = town.with_suffix(".db")
    with closing(Store.open(str(path))) as kept:

        def speak() -> None:
            for person in PEOPLE:
                say(town, kept, person, (1, 2, 3))

        yield path, speak


@pytest.mark.parametrize("source", [ledger, store])
def test_the_live_page_is_whole_and_readable_in_every_state(
    browser: Any, limited: Path, monkeypatch: pytest.MonkeyPatch, source: Any
) -> None:
    found: dict[Any, list[str]] = {}

    def look(state: str) -> None:
        for width, height in WIDTHS:
            page.set_viewport_size({"width": width, "height": height})
            studio.settle()
            page.wait_for_timeout(250)  # plots follow a window that has come to rest
            found[state, width] = page.evaluate(RULER)
        page.set_viewport_size({"width": 1440, "height": 900})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            found[state, scheme] = studio.axe() + page.evaluate(CONTRAST)

    def goes_away(self: Any) -> None:
        raise StoreError("the place where answers are must be readable, got none")

    with (
        source(limited, monkeypatch) as (place, speak),
        run_in_background(limited, watch=place) as address,
    ):
        studio = Studio(browser, address, viewport={"width": 1440, "height": 900}).open()
        page = studio.page
        studio.tab("live")
        expect(page.locator("#live-tell")).to_contain_text("Nothing was said yet")
        look("nothing said")
        speak()
        expect(page.locator("#live-tell")).to_contain_text("answers about")
        expect(page.locator("#live-tell strong")).to_contain_text("3 people spent 80% or more")
        look("spent")
        for kind in (watching.LedgerSource, watching.StoreSource, watching.ServiceSource):
            monkeypatch.setattr(kind, "look", goes_away)
        expect(page.locator("#live-away")).to_contain_text("Not reached since")
        look("away")
        studio.context.close()
    assert {state: wrong for state, wrong in found.items() if wrong} == {}


def test_a_service_that_goes_away_and_comes_back_under_the_page(
    browser: Any, limited: Path
) -> None:
    url, port = str(limited.with_name("streams.db")), free_port()
    place, key, key_file = f"http://127.0.0.1:{port}", key_of(url), limited.with_name("read.key")
    key_file.write_text(key)
    key_file.chmod(0o600)
    with ExitStack() as stack, ExitStack() as first:
        client = stack.enter_context(closing(Client(place, key=key)))
        first.enter_context(serving(url, port=port))
        held = client.add_scenario(limited)
        client.begin(held, "ann")
        client.release(held, "ann", 1, 2)
        address = stack.enter_context(
            run_in_background(limited, watch=place, key_file=str(key_file))
        )
        studio = Studio(browser, address).open()
        page = studio.page
        away, tell, panel, whole = map(
            page.locator, ("#live-away", "#live-tell", "#panel-live", "html")
        )
        studio.tab("live")
        expect(tell).to_contain_text("1 answer about 1 person")
        expect(away).to_be_hidden()
        first.close()
        # That is said once, and what was seen stays, marked as old.
        words = rf"^Not reached since [\d:]+: .* {place} does not answer\. Looking again"
        expect(away).to_have_text(re.compile(words))
        said = away.text_content()
        expect(panel).to_have_class(re.compile("stale"))
        expect(whole).to_have_class(re.compile("live-old"))
        expect(tell).to_contain_text("1 answer about 1 person")
        assert page.locator("#live-people tbody tr").count() == 1
        assert page.locator(ANSWERS).count() == 1
        assert page.locator("#problem").is_hidden()
        studio.tab("policy")
        expect(whole).not_to_have_class(re.compile("live-old"))
        studio.tab("live")
        expect(whole).to_have_class(re.compile("live-old"))
        assert away.text_content() == said
        stack.enter_context(serving(url, port=port))
        expect(away).to_be_hidden()
        client.release(held, "ann", 2, 2)
        expect(tell).to_contain_text("2 answers about 1 person")
        expect(panel).not_to_have_class(re.compile("stale"))
        expect(whole).not_to_have_class(re.compile("live-old"))
        expect(page.locator(ANSWERS)).to_have_count(2)
        studio.context.close()
