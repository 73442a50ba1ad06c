"""The studio's page with what a person does on it, for every test in a browser."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

sync_api = pytest.importorskip("playwright.sync_api")

sync_api.expect.set_options(timeout=20_000)  # the machine may be busy with other work

LAPTOP = {"width": 1360, "height": 820}

# Counts what the page has asked and not yet read. The browser's own "network idle" did not come
# once, within 20 seconds, after a test had answered a request itself.
COUNT_QUESTIONS = """
window.open_questions = 0;
window.last_question = performance.now();
const ask = window.fetch;
window.fetch = (...given) => {
  const count = (change) => {
    window.open_questions += change;
    window.last_question = performance.now();
  };
  count(+1);
  return ask(...given).finally(() => count(-1));
};
"""
HEARD = "performance.now() - window.last_question < 20_000"
QUIET = "window.open_questions === 0 && performance.now() - window.last_question > 500"


CHANGES = """async () => {
  const { fromFragment } = await import("/static/js/state.js");
  return (await fromFragment(location.hash))?.draft.changes ?? {};
}"""


class Studio:
    """A page with what a person does on it."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        settings = {"viewport": LAPTOP, "accept_downloads": True, **options}
        self.context = browser.new_context(**settings)
        self.page = self.context.new_page()
        self.address = address
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.watch(self.page)

    def watch(self, page: Any) -> None:
        page.set_default_timeout(20_000)
        page.add_init_script(COUNT_QUESTIONS)
        page.on("console", lambda m: self.problems.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def open(self, fragment: str = "") -> Studio:
        """Open the page; where it offers scenarios, choose the paper's example."""
        self.page.goto(self.address + fragment)
        self.page.wait_for_selector("html[data-drawn], html[data-start]", state="attached")
        if self.page.locator("html[data-start]").count():
            self.page.locator("#start-paper").click()
            self.page.wait_for_selector("html[data-drawn]", state="attached")
        return self

    def settle(self) -> None:
        """Wait until the page has drawn the answer to the latest change.

        A busy machine answers slowly but one after the other; a page that hangs hears nothing.
        """
        # Not `wait_for_function`, which the page's own rules against `eval` forbid.
        while not self.page.evaluate(QUIET):
            assert self.page.evaluate(HEARD), "the page heard nothing for 20 s"
            self.page.wait_for_timeout(50)

    def click(self, name: str, role: str = "button") -> None:
        self.page.get_by_role(role, name=name, exact=True).click()

    def tool(self, name: str) -> None:
        self.page.locator(f'#tools label:has([value="{name}"])').click()

    def tab(self, name: str) -> None:
        self.page.locator(f"#tab-{name}").click()

    def write(self, field: str, text: str) -> None:
        """Type into a field and leave it, which is when it counts."""
        self.page.locator(field).fill(text)
        self.page.locator(field).press("Tab")

    def place(self, label: str) -> tuple[float, float]:
        """Where a state of the example is on the screen: its name stands 35 pixels below."""
        text = self.page.locator(".state-label", has_text=re.compile(f"^{label}$"))
        box = self.page.locator("#map svg").bounding_box()
        return (
            box["x"] + float(text.get_attribute("x")),
            box["y"] + float(text.get_attribute("y")) - 35,
        )

    def text(self, field: str) -> str:
        return str(self.page.locator(field).text_content())

    def expect(self, field: str, text: str | re.Pattern[str]) -> None:
        """What a field says, once the page has the answer to the latest change."""
        sync_api.expect(self.page.locator("html")).not_to_have_class(re.compile("waiting"))
        sync_api.expect(self.page.locator(field)).to_have_text(text)

    def download(self, button: str) -> Path:
        with self.page.expect_download() as waiting:
            self.page.locator(button).click()
        path = Path(waiting.value.path())
        return path

    def link_with(self, key: str, value: str) -> str:
        """The page's address, once it holds an edit: it is written a while after that."""
        for _ in range(400):
            if self.page.evaluate(CHANGES).get(key) == value:
                return str(self.page.evaluate("location.href"))
            self.page.wait_for_timeout(50)
        raise AssertionError(f"the address never had {key} = {value}")

    def axe(self) -> list[str]:
        """What axe-core finds wrong with the page as it is now.

        What it cannot decide by itself is a finding as well, but for contrast over pictures,
        which `CONTRAST` computes.
        """
        # An answer that comes meanwhile replaces what axe is looking at: wait until all are there.
        self.settle()
        self.page.wait_for_timeout(900)  # the longest that the page waits before it asks
        self.settle()
        return self.axe_now()

    def axe_now(self) -> list[str]:
        """The same without waiting for answers that may be under way."""
        source = resources.files("axe_playwright_python") / "axe.min.js"
        # The page may load no scripts but its own; the debugger may.
        self.page.evaluate(source.read_text(encoding="utf-8"))
        found = self.page.evaluate("axe.run({ resultTypes: ['violations', 'incomplete'] })")
        unsure = [rule for rule in found["incomplete"] if rule["id"] != "color-contrast"]
        return [
            f"{rule['id']}: {node['html'][:120]}"
            for rule in found["violations"] + unsure
            for node in rule["nodes"]
        ]


class Held:
    """The requests to one route, which wait until the test lets them go."""

    def __init__(self, page: Any, path: str) -> None:
        self.waiting: list[Any] = []
        self.is_held = True
        self.page = page
        page.route(f"**{path}", self._take)

    def _take(self, route: Any) -> None:
        if self.is_held:
            self.waiting.append(route)
        else:
            route.continue_()

    def until(self, count: int) -> None:
        """Wait until so many requests are held."""
        for _ in range(400):
            if len(self.waiting) >= count:
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"{len(self.waiting)} of {count} requests came")

    def let_go(self) -> None:
        """Answer what waits in its order, and all that follows."""
        self.is_held = False
        for route in self.waiting:
            route.continue_()


def epsilon(studio: Studio) -> str:
    return str(studio.page.locator("#set-epsilon").input_value())


def expose_s3(studio: Studio) -> None:
    studio.click("Start at s1, step twice")
    studio.page.wait_for_selector("#candidates")
