"""Profiles, and the skips of tests whose surroundings are missing."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

# The machine may be busy with other work, so neither deadlines nor slow data are failures.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("short", UNHURRIED, derandomize=True, max_examples=50)
settings.register_profile("full", UNHURRIED, max_examples=1000, print_blob=True)
settings.load_profile("short")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="also run slow tests, many more examples")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--full"):
        settings.load_profile("full")


def find_shared_data() -> Path | None:
    """The folder of datasets, which are not part of the repository."""
    folder = Path(os.environ.get("DPHMM_DATA", ROOT.parent / "shared" / "data"))
    return folder if folder.is_dir() else None


def find_chromium() -> Path | None:
    """A Chromium that playwright can start with executable_path=."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((Path(path) for path in map(shutil.which, names) if path), None)


def find_postgres_programs() -> Path | None:
    """The folder of initdb and postgres; Debian keeps it out of PATH."""
    in_path = shutil.which("initdb")
    found = [Path(in_path)] if in_path else list(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return max(found).resolve().parent if found else None


def installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def missing(marker: str) -> str | None:
    """Why a test with this marker cannot run here, or None."""
    if marker == "spark":
        if not installed("pyspark"):
            return "pyspark is not installed; run: make install-spark"
        if not shutil.which("java"):
            return "there is no Java runtime; run: make system-packages"
    if marker == "postgres":
        if not installed("psycopg"):
            return "psycopg is not installed; run: make install"
        if find_postgres_programs() is None:
            return "there is no PostgreSQL server program; run: make system-packages"
    if marker == "browser":
        if not installed("playwright"):
            return "playwright is not installed; run: make install"
        if find_chromium() is None:
            return "there is no Chromium; run: make system-packages"
    if marker == "checkout" and not (ROOT / "src" / "dphmm").is_dir():
        return "the sources of the checkout are not here"
    if marker == "data" and find_shared_data() is None:
        return "the shared datasets are not beside the checkout; set DPHMM_DATA to their folder"
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    reasons = {
        marker: missing(marker) for marker in ("spark", "postgres", "browser", "checkout", "data")
    }
    if not config.getoption("--full"):
        reasons["slow"] = "slow; runs in make test-full"
    for item in items:
        if item.name == "friends.md" and not installed("hmmlearn"):
            item.add_marker(pytest.mark.skip(reason="hmmlearn has no wheel for this Python"))
        for marker, reason in reasons.items():
            if reason is not None and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def patient_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """No line about progress where a test looks at all that was printed, on any machine."""
    if "dphmm.cli.common" in sys.modules:
        monkeypatch.setattr(sys.modules["dphmm.cli.common"], "OFTEN", float("inf"))


def present(path: Path | None, marker: str) -> Path:
    if path is None:
        pytest.skip(missing(marker) or f"{marker} is missing")
    return path


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of the shared datasets; skips where there is none."""
    return present(find_shared_data(), "data")


@pytest.fixture(scope="session")
def chromium() -> Path:
    """The Chromium program; skips where there is none."""
    return present(find_chromium(), "browser")


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Any]:
    """A Chromium that asks nobody for anything."""
    from playwright.sync_api import sync_playwright

    quiet = ("background-networking", "component-update", "gpu", "quic", "sync")
    arguments = ["--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in quiet)]
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(chromium), args=arguments)
        yield started
        started.close()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where a studio with its examples is."""
    from dphmm.studio.server import run_in_background

    with run_in_background() as found:
        yield found


@pytest.fixture
def studio(browser: Any, address: str) -> Iterator[Any]:
    """The studio's page, which in the end has complained of nothing and asked nobody else."""
    from tests.studio_page import Studio

    opened = Studio(browser, address).open()
    yield opened
    opened.settle()
    opened.context.close()
    assert opened.problems == []
    inside = (opened.address, "data:", "blob:")
    assert [url for url in opened.requests if not url.startswith(inside)] == []


@pytest.fixture
def town(tmp_path: Path) -> Path:
    """A file of one's own, with two rules and a comment."""
    from tests.scenarios import paper_scenario

    path = tmp_path / "town.toml"
    paper_scenario(start="uniform").save(path)
    text = path.read_text().replace(
        'category = "category"', 'category = "category"\ndistance = "1"'
    )
    path.write_text(f"# agreed in May\n{text}")
    return path


@pytest.fixture
def own(browser: Any, town: Path) -> Iterator[Any]:
    """The studio's page with a file of one's own."""
    from dphmm.studio.server import run_in_background
    from tests.studio_page import Studio

    with run_in_background(town) as address:
        opened = Studio(browser, address).open()
        opened.settle()
        yield opened
        opened.context.close()


@pytest.fixture(scope="session")
def postgres_programs() -> Path:
    """The folder of initdb, postgres and psql; skips where there is none."""
    return present(find_postgres_programs(), "postgres")


@pytest.fixture(scope="session")
def postgres_server():
    """A PostgreSQL server of our own."""
    from tests.crash.postgres import running_server

    with running_server() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new store may be, on each database."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return str(request.getfixturevalue("postgres_server").new_database())


@pytest.fixture
def store(store_url: str):
    """A new store, which is sound in the end."""
    from dphmm.books import Store, find_problems

    store = Store.open(store_url)
    yield store
    assert find_problems(store) == []
    store.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation, built once for all workers: its notebooks take a while."""
    import dphmm

    together = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        together = together.parent
    folder = together / "site" / dphmm.__version__
    with (together / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "llms.txt").exists():
            command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "docs", folder]
            built = subprocess.run(
                [*command, "-d", together / "read"],
                cwd=ROOT,
                capture_output=True,
                text=True,
                env={**os.environ, "DPHMM_DATA": "/nowhere"},
                check=False,
            )
            assert built.returncode == 0, built.stderr
            assert built.stderr == ""
    return folder
