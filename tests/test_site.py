"""The documentation site: complete, built without a warning, and it finds what people look for."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import click
import pytest

import dphmm
from dphmm.cli.program import COMMANDS, program
from dphmm.scenario.keys import KEYS
from scripts import reference
from tests.conftest import ROOT, find_chromium

PAGES = dict(reference.pages())

# Laws: everything public is on a reference page


def test_every_public_name_stands_on_one_page():
    placed = [name for _, _, names in reference.SUBJECTS.values() for name in names]
    assert sorted(placed) == sorted(dphmm.__all__)


def options(command, path):
    yield from ((path, option) for part in command.params for option in part.opts)
    for name, part in getattr(command, "commands", {}).items():
        yield from options(part, f"{path} {name}")


def test_every_command_and_option_is_told():
    root = click.Context(program, info_name="dphmm")
    sections = re.split(r"^#+ ", PAGES["reference/commands.md"], flags=re.MULTILINE)
    told = {section.partition("\n")[0]: section for section in sections}
    for name in COMMANDS:
        for path, option in options(program.get_command(root, name), f"dphmm {name}"):
            if option.startswith("-"):
                assert option in told[path], (path, option)


def test_every_route_is_told():
    page = PAGES["reference/http.md"]
    for path, methods in reference.openapi()["paths"].items():
        for method in methods:
            assert f"## {method.upper()} {path}\n" in page


def test_every_key_of_a_scenario_is_told():
    page = (ROOT / "docs" / "scenario.md").read_text(encoding="utf-8")
    for section, keys in KEYS.items():
        for key in keys:
            shown = rf"^\[{key}\]" if key in KEYS else rf"^{key} = "
            assert re.search(shown, page, flags=re.MULTILINE), f"{section}.{key}"


# The site itself


class Addresses(HTMLParser):
    """What a page loads."""

    def __init__(self):
        super().__init__()
        self.loaded = []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag in ("script", "img", "iframe"):
            self.loaded.append(found.get("src"))
        if tag == "link" and found.get("rel") in ("stylesheet", "preload", "icon"):
            self.loaded.append(found.get("href"))


def test_the_site_loads_nothing_from_elsewhere(site):
    pages = [page for page in site.rglob("*.html") if "_static" not in page.parts]
    assert len(pages) > 30
    for page in pages:
        addresses = Addresses()
        addresses.feed(page.read_text(encoding="utf-8"))
        assert not [one for one in addresses.loaded if one and re.match(r"(https?:)?//", one)], page


def test_the_pages_are_there_as_plain_text(site):
    listed = re.findall(r"\((\S+)\)", (site / "llms.txt").read_text(encoding="utf-8"))
    assert all((site / name).exists() for name in listed)
    everything = (site / "llms-full.txt").read_text(encoding="utf-8")
    for page in [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "howto").glob("*.md")]:
        assert page.read_text(encoding="utf-8") in everything, page
    for page in NOTEBOOKS:
        assert "".join(cells(page, "code")[-1]["source"]) in everything, page


def test_nothing_stands_beside_the_versions_but_their_list(site):
    beside = {path.name for path in site.parent.iterdir() if path.name != site.name}
    assert beside == {"index.html", "versions.html"}


# Notebooks

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
NO_MAPS = {"audit", "clicks", "hospital", "machine", "meter"}


def cells(path, kind):
    read = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in read if cell["cell_type"] == kind]


def test_there_are_six_notebooks():
    assert {path.stem for path in NOTEBOOKS} == {*NO_MAPS, "geolife"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs_and_takes_public_names(path):
    code = "\n".join("".join(cell["source"]) for cell in cells(path, "code"))
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells(path, "code"))
    assert "from dphmm import" in code
    assert not re.search(r"dphmm\.[a-z_]+ import|import dphmm\.", code)
    if path.stem in NO_MAPS:
        assert not re.search(r"datasets|latitude|Grid|GPS", code)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_a_page_with_its_results(site, path):
    page = (site / "notebooks" / f"{path.stem}.html").read_text(encoding="utf-8")
    assert page.count('class="cell_output') >= 5
    assert "Traceback" not in page
    drawn = "".join("".join(cell["source"]) for cell in cells(path, "code")).count(".plot(")
    pictures = set(re.findall(r'src="(\.\./_images/[0-9a-f]{64}\.png)"', page))
    assert bool(pictures) == bool(drawn)
    assert all((site / "notebooks" / name).exists() for name in pictures)


QUESTIONS = {
    "limit per day": "scenario",
    "import gpx": "data",
    "staircase": "noise",
    "hospital category policy": "howto/protect-a-category",
    "find_schedule budget": "reference/design",
    "postgresql backup": "operating",
    "pandas table": "data",
    "learned zeros": "models",
    "slips": "paper-notes",
    "audit own mechanism": "audit",
}
"""What a newcomer types, and the page that should come first or second."""


@pytest.mark.browser
def test_ten_questions_find_their_page(site):
    from playwright.sync_api import sync_playwright

    wrong = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(find_chromium()), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        for question, wanted in QUESTIONS.items():
            page.goto(f"{Path(site, 'search.html').as_uri()}?q={question.replace(' ', '+')}")
            page.wait_for_selector("#search-results > p.search-summary", timeout=20_000)
            page.wait_for_selector("ul.search li", timeout=20_000)
            links = page.locator("ul.search li > a:first-child").evaluate_all(
                "found => found.map(one => one.getAttribute('href'))"
            )
            first = list(dict.fromkeys(link.split("#")[0].split("?")[0] for link in links))[:2]
            if f"{wanted}.html" not in first:
                wrong[question] = first
        browser.close()
    assert wrong == {}
