"""The pure parts of the page's JavaScript, each called by itself in a browser."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts.vendor_d3 import PACKAGES, STATIC, used_names
from tests.studio_page import Studio

pytest.importorskip("uvicorn")

ROOT = Path(__file__).resolve().parent.parent
JS = ROOT / "src" / "dphmm" / "studio" / "static" / "js"


class Module:
    """A module of the page; calling it runs an expression with the module's names as `m`."""

    def __init__(self, page: Any, name: str) -> None:
        self.page, self.name = page, name

    def __call__(self, expression: str, given: object = None) -> Any:
        code = (
            f'async (given) => {{ const m = await import("/static/js/{self.name}.js"); '
            f"return ({expression}); }}"
        )
        return self.page.evaluate(code, given)


@pytest.fixture(scope="module")
def page(browser: Any, address: str) -> Any:
    opened = Studio(browser, address).open()
    yield opened.page
    opened.context.close()


@pytest.fixture
def state(page: Any) -> Module:
    return Module(page, "state")


@pytest.fixture
def elements(page: Any) -> Module:
    return Module(page, "elements")


WORLD = {"settings": {"epsilon": "1", "when.every": 4}, "edges": [[0, 1]]}


@pytest.mark.browser
class TestState:
    def test_a_value_is_the_changed_one_or_the_files(self, state: Module) -> None:
        view = {"draft": {"changes": {"epsilon": "2"}, "edges": None}}
        code = "['epsilon', 'when.every', 'limit'].map((key) => m.valueOf(...given, key) ?? null)"
        assert state(code, [view, WORLD]) == ["2", 4, None]

    def test_what_is_as_in_the_file_again_is_no_change(self, state: Module) -> None:
        draft = {"changes": {"epsilon": "2"}, "edges": None}
        code = "m.withValues(...given, { epsilon: '1' })"
        assert state(code, [draft, WORLD]) == {"changes": {}, "edges": None}

    def test_a_schedule_is_taken_away_whole(self, state: Module) -> None:
        draft = {"changes": {"when.phase": 2, "epsilon": "2"}, "edges": None}
        wanted = {"changes": {"epsilon": "2", "when": None}, "edges": None}
        assert state("m.withoutSchedule(...given)", [draft, WORLD]) == wanted

    def test_edges_are_sorted_and_as_opened_they_are_no_change(self, state: Module) -> None:
        draft = {"changes": {}, "edges": None}
        more = state("m.withEdges(...given, [[3, 2]])", [draft, WORLD])
        assert more["edges"] == [[0, 1], [2, 3]]
        assert state("m.withEdges(...given, [], [[2, 3]])", [more, WORLD])["edges"] is None

    def test_a_link_survives_its_way_and_nonsense_does_not(self, state: Module) -> None:
        code = "m.toFragment(given, 'print').then(m.fromFragment)"
        assert state(code, {"step": 3}) == {"step": 3, "fingerprint": "print"}
        assert state("m.fromFragment('#v2.%%%')") is None
        assert state("m.fromFragment('#v1.abc')") is None

    @pytest.mark.parametrize("given", [None, 7, "x", {"tab": "../etc", "draft": 3, "step": "4"}])
    def test_a_view_made_by_hand_keeps_only_what_has_the_right_shape(
        self, state: Module, given: object
    ) -> None:
        assert state("m.restore(given)", given) == state("m.firstView()")

    def test_undo_and_redo_walk_along_edits_and_a_slider_is_one(self, state: Module) -> None:
        code = """(() => { const s = new m.Store(m.firstView());
          const go = (n, label, kind) =>
            s.change({ draft: { changes: { n }, edges: null } }, label, kind);
          go(1, "one"); go(2, "two", "slide"); go(3, "three", "slide");
          const seen = [s.past.map((p) => p.label), s.view.draft.changes.n];
          s.go(-1); seen.push(s.view.draft.changes.n); s.go(-1); s.go(2);
          seen.push(s.view.draft.changes.n, Object.isFrozen(s.view)); return seen; })()"""
        assert state(code) == [["one", "three"], 3, 1, 3, True]


@pytest.mark.browser
class TestElements:
    @pytest.mark.parametrize(
        ("value", "unit", "text"),
        [(1528, "m", "1.5 km"), (0.75, "km", "750 m"), (994, "m", "990 m"), (4.94, "", "4.9")],
    )
    def test_lengths_read_as_in_the_library(
        self, elements: Module, value: float, unit: str, text: str
    ) -> None:
        from dphmm.tables.units import roughly

        assert elements("m.length(...given)", [value, unit]) == text
        assert roughly(value, unit) == text

    def test_at_most_is_never_less(self, elements: Module) -> None:
        for value in (0.1234, 1.0, 9.999, 123.4, 0.0):
            assert float(elements("m.atMost(given)", value)) >= value

    def test_numbers_and_counts(self, elements: Module) -> None:
        assert elements("[null, 12345.6, 0.12345].map(m.short)") == ["∞", "12,346", "0.1235"]
        assert elements("[m.count(1, 'place'), m.count(2000, 'place')]") == [
            "1 place",
            "2,000 places",
        ]

    def test_waiting_keeps_only_the_last_call(self, elements: Module) -> None:
        code = """new Promise((resolve) => { const seen = [];
          const late = m.debounce((x) => seen.push(x), 5); late(1); late(2); late(3);
          setTimeout(() => resolve(seen), 60); })"""
        assert elements(code) == [3]


@pytest.mark.browser
def test_of_many_requests_only_the_newest_waits(page: Any) -> None:
    code = """(async () => { const seen = [];
      const rest = () => new Promise((r) => setTimeout(r));
      const go = m.oneAtATime(async (x) => { seen.push(x); await rest(); });
      [1, 2, 3, 4].forEach(go); await new Promise((r) => setTimeout(r, 60)); return seen; })()"""
    assert Module(page, "server")(code) == [1, 4]


# Taken away


@pytest.mark.browser
class TestShare:
    def test_texts_are_escaped_and_wrapped(self, page: Any) -> None:
        share = Module(page, "share")
        assert share("m.escape(given)", '<b a="1">&') == "&lt;b a=&quot;1&quot;&gt;&amp;"
        assert share("m.wrap('one two three', 7)") == ["one two", "three"]

    def test_a_page_is_whole_in_itself(self, page: Any) -> None:
        parts = {
            "title": "<script>alert(1)</script>",
            "headline": "Off by 1 km.",
            "warnings": ["no better than silence"],
            "notes": [],
            "rows": [["exposed", "1", "0"]],
            "pictures": [["The map", "<svg></svg>"]],
            "toml": 'name = "a"',
            "fingerprint": "abc",
        }
        found = Module(page, "share")("m.sharePage(given)", parts)
        assert "<script" not in found
        assert "http" not in found.replace('http-equiv="', "")
        assert all(text in found for text in ("Off by 1 km.", "abc", "name = &quot;a&quot;"))


# Style


def oxlint(*paths: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("oxlint")
    if not program.exists():
        pytest.skip("oxlint is not installed; run: make install")
    command = [str(program), "-c", str(ROOT / ".oxlintrc.json"), *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_javascript_has_the_checked_style(tmp_path: Path) -> None:
    assert oxlint(JS).returncode == 0, oxlint(JS).stdout
    wrong = tmp_path / "wrong.js"
    wrong.write_text("var x = 1;\nif (x == 2) alert(y);\n")
    found = oxlint(wrong)
    assert found.returncode == 1
    assert all(rule in found.stdout for rule in ("no-var", "eqeqeq", "no-undef"))


def test_a_module_holds_one_idea_and_says_which() -> None:
    for path in JS.glob("*.js"):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert lines[0].startswith("// "), path.name
        assert len(lines) <= 400, path.name


# The one library


@pytest.mark.browser
@pytest.mark.checkout
def test_the_page_has_the_parts_of_d3_that_it_uses_and_no_others(studio: Any) -> None:
    assert sorted(studio.page.evaluate("Object.keys(d3)")) == used_names()


@pytest.mark.checkout
def test_the_library_is_what_its_note_says() -> None:
    folder = STATIC / "vendor"
    script = (folder / "d3.min.js").read_bytes()
    note, licence = ((folder / name).read_text() for name in ("README.md", "LICENSE"))
    assert f"SHA-256 of `d3.min.js`: {hashlib.sha256(script).hexdigest()}" in note
    packages = re.findall(r"(d3-\w+) ([0-9.]+)[,.]", note)
    assert packages
    for name, version in packages:
        assert PACKAGES[name] == version
        assert re.search(rf"\b{name}\b[^:]*:", licence), f"{name} has no licence"
