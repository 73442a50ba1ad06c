"""The shape of the project: who imports whom, what is exported, what is never committed."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

import dphmm
from benchmarks import Figure
from dphmm import errors
from scripts import architecture

pytestmark = pytest.mark.checkout

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "dphmm"
FILES = sorted(SOURCE.rglob("*.py"))
LONGEST_FILE = 400
MOST_ENTRIES = 24
"""At the top of the package, `__main__` and `py.typed` included."""

# From the bottom to the top: a room imports from lower layers, or from its own without a circle.
# Imports that only type checkers see may go round in a circle, but not upwards.
# "dphmm" is the package itself, the public surface.
LAYERS = (
    ("_types", "errors"),
    ("kernels",),
    ("geometry",),
    ("chain",),
    ("noise",),
    ("policy",),
    ("cost",),
    ("release",),
    ("tables",),
    ("books", "audit"),
    ("scenario",),
    ("evaluate", "client"),
    ("dphmm",),
    ("report", "demo", "spark", "service", "studio", "cli", "__main__"),
)
LAYER = {room: height for height, rooms in enumerate(LAYERS) for room in rooms}

HEAVY = {"click", "fastapi", "httpx", "matplotlib", "networkx", "numba", "polars", "psycopg"}
HEAVY |= {"pyproj", "pyspark", "tqdm", "uvicorn"}
# Not heavy, but a sixth of the import, and no release by parts needs them.
HEAVY |= {"dphmm.books", "dphmm.scenario", "sqlite3", "tomlkit"}

# Written in two halves, so that this file does not name them.
REGISTRIES = ("pypi" + ".org", "python" + "hosted", "registry.npm" + "js", "conda." + "anaconda")


# Imports


def room_of(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return "dphmm" if first == "__init__.py" else first.removesuffix(".py")


class WithoutTyping(ast.NodeTransformer):
    """Drop the body of every `if TYPE_CHECKING:`, which never runs."""

    def visit_If(self, node: ast.If) -> ast.AST:
        if ast.unparse(node.test).rpartition(".")[2] == "TYPE_CHECKING":
            node.body = [ast.Pass()]
        return self.generic_visit(node)


def imported_rooms(tree: ast.AST, package: str, rooms: Iterable[str]) -> set[str]:
    """The rooms that a module of `package` imports, anywhere in its code."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                above = parents[: len(parents) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            names.update(f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = ast.unparse(node.func).rpartition(".")[2]
            if called in ("import_module", "__import__", "require"):
                names.add(str(node.args[0].value))
    ours = (name.split(".") for name in names if name.split(".")[0] == "dphmm")
    known = set(rooms)
    found = (parts[1] if len(parts) > 1 else "dphmm" for parts in ours)
    return {name if name in known else "dphmm" for name in found if name != "__version__"}


Graph = dict[str, set[str]]


def import_graphs(sources: Mapping[Path, str]) -> tuple[Graph, Graph]:
    """Who imports whom: all imports, and those that run."""
    rooms = {room_of(path) for path in sources}
    written: Graph = {room: set() for room in rooms}
    running: Graph = {room: set() for room in rooms}
    for path, code in sources.items():
        room, tree = room_of(path), ast.parse(code)
        package = ".".join(["dphmm", *path.relative_to(SOURCE).parts[:-1]])
        written[room] |= imported_rooms(tree, package, rooms) - {room}
        running[room] |= imported_rooms(WithoutTyping().visit(tree), package, rooms) - {room}
    return written, running


def broken_rules(sources: Mapping[Path, str]) -> list[str]:
    """One sentence for each import that points upwards, in a circle or to an unlisted room."""
    written, running = import_graphs(sources)
    unlisted = sorted(set().union(written, *written.values()) - set(LAYER))
    if unlisted:
        return [f"{room} has no layer; add it to LAYERS" for room in unlisted]
    broken = []
    for room, targets in sorted(written.items()):
        for target in sorted(targets):
            if LAYER[target] > LAYER[room]:
                broken.append(f"{room} imports {target}, which stands above it")
            elif target in running[room] and room in reachable(running, target):
                broken.append(f"{room} imports {target}, which leads back to it")
    return broken


def reachable(graph: Graph, start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        room = waiting.pop()
        if room not in seen:
            seen.add(room)
            waiting.extend(graph.get(room, ()))
    return seen


def drawn_rooms() -> str:
    """The picture of CONTRIBUTING.md: the package as it imports itself."""
    _, running = import_graphs({path: path.read_text() for path in FILES})
    return architecture.picture(LAYERS, running)


def test_the_picture_of_the_rooms_is_that_of_the_code() -> None:
    assert architecture.FILE.read_text() == drawn_rooms(), "run make pages"


def test_the_picture_leaves_out_what_follows() -> None:
    imports = {"top": {"middle", "low"}, "middle": {"low"}, "low": set()}
    assert architecture.reduced(imports) == {"top": {"middle"}, "middle": {"low"}, "low": set()}
    drawn = architecture.picture([("low",), ("middle",), ("top",)], imports)
    assert (drawn.count("<rect "), drawn.count("<path ")) == (3, 2)


def test_imports_point_downwards_only() -> None:
    assert broken_rules({path: path.read_text() for path in FILES}) == []


@pytest.mark.parametrize(
    ("room", "code"),
    [
        ("errors.py", "from dphmm import release"),
        ("errors.py", "import dphmm.release.stream"),
        ("errors.py", "from .release import Stream"),
        ("errors.py", "def later():\n    from dphmm.release.stream import Stream"),
        ("errors.py", "import importlib\nimportlib.import_module('dphmm.release.stream')"),
        ("kernels/planar.py", "from ..release import Stream"),
        ("geometry/hull.py", "if TYPE_CHECKING:\n    from dphmm.release.stream import Stream"),
        ("geometry/hull.py", "from dphmm import Stream"),
        ("geometry/hull.py", "from dphmm import SensitivityHull"),
        ("helpers.py", "import numpy"),
    ],
)
def test_an_import_that_points_upwards_is_seen(room: str, code: str) -> None:
    sources = {
        SOURCE / "__init__.py": "",
        SOURCE / "release" / "stream.py": "",
        SOURCE / room: code,
    }
    assert len(broken_rules(sources)) == 1


def test_a_circle_within_a_layer_is_seen() -> None:
    sources = {
        SOURCE / "audit.py": "from dphmm.books import Book",
        SOURCE / "books.py": "from dphmm.audit import audit",
    }
    assert len(broken_rules(sources)) == 2


def test_a_circle_of_types_within_a_layer_is_allowed() -> None:
    sources = {
        SOURCE / "audit.py": "if TYPE_CHECKING:\n    from dphmm.books import Book",
        SOURCE / "books.py": "from dphmm.audit import audit",
    }
    assert broken_rules(sources) == []


def test_imports_within_a_room_and_downwards_are_allowed() -> None:
    sources = {
        SOURCE / "errors.py": "",
        SOURCE / "kernels" / "__init__.py": "from dphmm.kernels import planar",
        SOURCE / "kernels" / "planar.py": "from . import other\nfrom ..errors import DphmmError",
        SOURCE / "release" / "stream.py": "from dphmm import kernels, errors, __version__",
    }
    assert broken_rules(sources) == []


def modules_imported(tree: ast.AST, known: set[str]) -> set[str]:
    """The modules of dphmm that run before this one is there: imports at its top."""
    names: set[str] = set()
    for node in ast.iter_child_nodes(WithoutTyping().visit(tree)):
        if isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names & known


def test_no_module_leads_back_to_itself() -> None:
    """Rooms are large, so circles are looked for between modules too."""
    name_of = {
        path: ".".join(["dphmm", *path.relative_to(SOURCE).with_suffix("").parts])
        for path in FILES
        if path.name != "__init__.py"
    }
    known = set(name_of.values())
    graph = {
        name: modules_imported(ast.parse(path.read_text()), known) for path, name in name_of.items()
    }
    around = [
        name for name, targets in graph.items() if any(name in reachable(graph, t) for t in targets)
    ]
    assert around == []


def test_the_top_of_the_package_can_be_taken_in_at_a_glance() -> None:
    entries = [path.name for path in SOURCE.iterdir() if path.name != "__pycache__"]
    assert len(entries) <= MOST_ENTRIES


def test_importing_the_package_loads_nothing_heavy() -> None:
    script = f"import sys, dphmm; print(*sorted({HEAVY!r} & set(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    assert result.stdout.split() == []


# Names and files


def test_public_names_are_sorted_and_importable() -> None:
    names = list(getattr(dphmm, "__all__", []))
    assert names == sorted(set(names))
    for name in names:
        assert getattr(dphmm, name) is not None


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_says_what_it_is_and_holds_one_idea(path: Path) -> None:
    code = path.read_text()
    assert ast.get_docstring(ast.parse(code)), "the module has no docstring"
    lines = code.count("\n")
    assert lines <= LONGEST_FILE, "the file is long; it probably holds two ideas"


def drawn_tree(docstring: str) -> dict[str, str | None]:
    """The exceptions drawn in a docstring, each with the one it hangs from."""
    parents: dict[str, str | None] = {}
    path: list[tuple[int, str]] = []
    for line in docstring.splitlines():
        drawn = re.match(r"([ │├└─]*)(\w+Error)\b", line)
        if drawn:
            depth = len(drawn[1])
            path = [(above, name) for above, name in path if above < depth]
            parents[drawn[2]] = path[-1][1] if path else None
            path.append((depth, drawn[2]))
    return parents


def test_the_tree_of_errors_is_drawn_as_it_is() -> None:
    defined = {
        name: None if value is errors.DphmmError else value.__bases__[0].__name__
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.DphmmError)
    }
    assert drawn_tree(errors.__doc__ or "") == defined
    assert set(defined) <= set(errors.__all__)
    assert sorted(errors.__all__) == errors.__all__


def test_an_error_missing_from_the_drawing_is_seen() -> None:
    drawing = "DphmmError\n├── DataError (ValueError)   text\n│   └── ScenarioError  text"
    assert drawn_tree(drawing) == {
        "DphmmError": None,
        "DataError": "DphmmError",
        "ScenarioError": "DataError",
    }


# What is committed


def tracked_files() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a git checkout")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_uv_lock_is_tracked() -> None:
    forbidden = {"uv.lock", "pylock.toml", "poetry.lock", "package-lock.json"}
    assert [path for path in tracked_files() if path.name in forbidden] == []


def test_no_tracked_file_names_a_package_registry() -> None:
    naming = []
    for path in tracked_files():
        content = path.read_bytes().lower()
        naming += [path.name for host in REGISTRIES if host.encode() in content]
    assert naming == []


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("requirements*.lock")), ids=lambda path: path.name
)
def test_a_lock_holds_hashes_and_no_address(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert not [line for line in lines if "://" in line or line.startswith("-") or " @ " in line]
    pinned = [number for number, line in enumerate(lines) if "==" in line and "#" not in line]
    assert len(pinned) >= 10
    assert all(lines[number + 1].strip().startswith("--hash=sha256:") for number in pinned)


def test_the_locks_pin_the_same_versions() -> None:
    pins: dict[str, set[str]] = {}
    for path in ROOT.glob("requirements*.lock"):
        # Not the markers: a package may be needed on fewer versions of Python in one lock.
        pinned = re.findall(r"^(\S+)==(\S+)", path.read_text(), re.MULTILINE)
        for name in {name for name, _ in pinned}:
            versions = sorted({version for other, version in pinned if other == name})
            pins.setdefault(name, set()).add(" | ".join(versions))
    assert {name: versions for name, versions in pins.items() if len(versions) > 1} == {}


# Measurements


def test_a_figure_knows_whether_its_target_is_met() -> None:
    assert Figure("a", 2.0, "s").met is None
    assert Figure("a", 2.0, "s", target="value <= 2").met is True
    assert Figure("a", 2.0, "s", against="b", ratio=4.0, target="ratio < 3").met is False


@pytest.mark.parametrize("target", ["ratio < 3", "speed < 3", "value = 3"])
def test_a_target_that_cannot_be_judged_is_refused(target: str) -> None:
    with pytest.raises(ValueError, match="must"):
        Figure("a", 2.0, "s", target=target)


def test_every_benchmark_can_be_imported() -> None:
    for path in sorted((ROOT / "benchmarks").glob("bench_*.py")):
        assert callable(importlib.import_module(f"benchmarks.{path.stem}").run)
