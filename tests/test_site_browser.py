"""The documentation in a browser: for everybody, in light and dark, down to a telephone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import dphmm
from scripts.versions import find_versions, write_versions
from tests.conftest import find_chromium

SMALLEST = 12
"""Pixels of the smallest text."""
TELEPHONE = {"width": 400, "height": 800}

KINDS = {
    "landing": "index.html",
    "tutorial": "tutorial.html",
    "how-to": "howto/publish-a-day.html",
    "names": "reference/design.html",
    "commands": "reference/commands.html",
    "routes": "reference/http.html",
    "notebook": "notebooks/clicks.html",
    "gallery": "gallery.html",
    "results": "evaluation.html",
    "found": "search.html?q=limit",
    "versions": "../versions.html",
}
"""A page of every kind."""

SMALL = """() => {
  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const parent = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !parent.checkVisibility()) continue;
    const size = parseFloat(getComputedStyle(parent).fontSize);
    if (size < SMALLEST) found.push([size, parent.tagName, texts.currentNode.data.trim()]);
  }
  return found;
}""".replace("SMALLEST", str(SMALLEST))

WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(find_chromium()), args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


def visit(page: Any, site: Path, name: str) -> None:
    path, _, question = name.partition("?")
    page.goto((site / path).resolve().as_uri() + (f"?{question}" if question else ""))
    if question:
        page.wait_for_selector("ul.search li", timeout=20_000)


def faults(page: Any) -> list[str]:
    """What axe finds, with the first place of each."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_a_page_of_any_kind(chromium: Any, site: Path, scheme: str) -> None:
    page = chromium.new_page(color_scheme=scheme)
    found = {}
    for kind, name in KINDS.items():
        visit(page, site, name)
        found[kind] = faults(page)
    page.close()
    assert found == {kind: [] for kind in KINDS}


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_while_somebody_searches(chromium: Any, site: Path, scheme: str) -> None:
    page = chromium.new_page(color_scheme=scheme, viewport=TELEPHONE)
    visit(page, site, "index.html")
    page.keyboard.press("Control+k")
    page.wait_for_selector("dialog[open] input[type=search]")
    page.keyboard.type("limit")
    assert faults(page) == []
    page.close()


@pytest.mark.browser
def test_axe_would_find_a_picture_without_words_and_a_faint_text(chromium: Any, site: Path) -> None:
    page = chromium.new_page()
    visit(page, site, "index.html")
    page.evaluate("document.querySelector('main img').removeAttribute('alt')")
    page.evaluate("document.querySelector('main p').style.color = '#ddd'")
    assert {one.partition(":")[0] for one in faults(page)} == {"image-alt", "color-contrast"}
    page.close()


@pytest.mark.browser
def test_no_page_is_wider_than_a_telephone_or_has_small_print(chromium: Any, site: Path) -> None:
    page = chromium.new_page(viewport=TELEPHONE)
    names = sorted(
        str(path.relative_to(site))
        for path in site.rglob("*.html")
        if "_static" not in path.parts and path.name != "search.html"
    )
    assert len(names) > 30
    wide, small = {}, {}
    for name in [*names, KINDS["found"], KINDS["versions"]]:
        visit(page, site, name)
        if (by := page.evaluate(WIDER)) > 0:
            wide[name] = by
        if found := page.evaluate(SMALL):
            small[name] = found[:3]
    assert (wide, small) == ({}, {})
    page.evaluate("document.querySelector('h1').style.cssText = 'width: 500px; font-size: 11px'")
    assert page.evaluate(WIDER) > 0, "a wide page would be seen"
    assert page.evaluate(SMALL), "small print would be seen"
    page.close()


# Versions


class Versions(HTMLParser):
    """Where a page says that other versions are."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        link = dict(attributes).get("href") or ""
        if tag == "a" and link.endswith("versions.html"):
            self.links.append(link)


def test_every_page_names_its_version_and_leads_to_the_others(site: Path) -> None:
    for path in site.rglob("*.html"):
        if "_static" in path.parts:
            continue
        text = path.read_text(encoding="utf-8")
        assert f"dphmm {dphmm.__version__}" in text, path
        versions = Versions()
        versions.feed(text)
        assert versions.links, path
        for link in versions.links:
            assert (path.parent / link).resolve() == (site.parent / "versions.html").resolve()
    listed = (site.parent / "versions.html").read_text(encoding="utf-8")
    assert f'href="{dphmm.__version__}/index.html"' in listed
    assert not re.search(r"https?:", listed)


def test_versions_stand_beside_each_other_the_newest_first(tmp_path: Path) -> None:
    for name in ("0.9.1", "0.10.0", "0.10.0rc1", "0.2.0", "notes"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text("x")
    (tmp_path / "0.11.0").mkdir()
    assert find_versions(tmp_path) == ["0.10.0", "0.10.0rc1", "0.9.1", "0.2.0"]
    write_versions(tmp_path)
    assert (tmp_path / "versions.html").read_text().count("<li>") == 4
    assert "url=0.10.0/index.html" in (tmp_path / "index.html").read_text()
