"""Make a release without publishing it: `make release VERSION=0.3.0`.

Everything happens in a clone of what is committed, below build/release; the checkout is not
touched. What comes out stands in dist/: wheel and sdist, a bill of materials, the licences of
what is needed, and a patch that cuts the changelog and sets the version, to be applied and
tagged when the release is wanted. Nothing is uploaded.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "release"
DIST = ROOT / "dist"
VERSIONED = {
    "src/dphmm/__init__.py": r'(?m)^__version__ = "(.*)"$',
    "CITATION.cff": r"(?m)^version: (.*)$",
    "docs/index.md": r"(?m)^>>> dphmm.__version__\n'(.*)'$",
}
"""Where the version stands, and how."""

FORBIDDEN = re.compile(r"(^|/)(\.venv|__pycache__|\.git|demo|bench|evidence|site)(/|$)|\.(db|key)$")
"""What no archive may hold."""


class ReleaseError(Exception):
    """Why there is no release, in one line."""


def cut_changelog(text: str, version: str, day: str) -> str:
    r"""The changelog with what was unreleased under a version, and nothing unreleased.

    >>> print(cut_changelog("# Changelog\n\n## Unreleased\n\n- New.\n", "1.0.0", "2026-01-02"))
    # Changelog
    <BLANKLINE>
    ## Unreleased
    <BLANKLINE>
    ## 1.0.0 (2026-01-02)
    <BLANKLINE>
    - New.
    <BLANKLINE>
    """
    head, mark, rest = text.partition("## Unreleased\n")
    entries = rest.partition("\n## ")[0]
    if not mark or not re.search(r"(?m)^- ", entries):
        raise ReleaseError("CHANGELOG.md must have entries under Unreleased, got none")
    if re.search(rf"(?m)^## {re.escape(version)}\b", text):
        raise ReleaseError(f"VERSION must be new, got {version}, which CHANGELOG.md has already")
    return f"{head}{mark}\n## {version} ({day})\n{rest}"


def set_version(text: str, pattern: str, version: str, name: str) -> str:
    r"""A text with its one version replaced.

    >>> set_version("version: 0.1.0\n", VERSIONED["CITATION.cff"], "0.2.0", "CITATION.cff")
    'version: 0.2.0\n'
    """
    found = re.search(pattern, text)
    if found is None:
        raise ReleaseError(f"{name} must name the version, got none")
    return text[: found.start(1)] + version + text[found.end(1) :]


def check_contents(names: Iterable[str], needed: Iterable[str], archive: str) -> None:
    """Refuse an archive that lacks what users need or holds what nobody should have.

    >>> check_contents(["dphmm/py.typed", "dphmm/.venv/x"], ["dphmm/py.typed"], "wheel")
    Traceback (most recent call last):
    ...
    scripts.release.ReleaseError: wheel must not hold dphmm/.venv/x
    """
    held = set(names)
    for name in held:
        if FORBIDDEN.search(name):
            raise ReleaseError(f"{archive} must not hold {name}")
    for name in needed:
        if not any(one.endswith(name) for one in held):
            raise ReleaseError(f"{archive} must hold {name}")


def licences(bill: dict[str, Any]) -> str:
    """The licence of everything in a bill of materials, as a table.

    >>> print(licences({"components": [{"name": "a", "version": "1",
    ...     "licenses": [{"license": {"id": "MIT"}}]}]}))
    | package | version | licence |
    |---|---|---|
    | a | 1 | MIT |
    """
    rows = ["| package | version | licence |", "|---|---|---|"]
    for part in sorted(bill["components"], key=lambda part: part["name"].lower()):
        said = [
            one.get("expression") or one["license"].get("id") or one["license"].get("name", "")
            for one in part.get("licenses", ())
        ]
        name = "; ".join(dict.fromkeys(line.split("\n")[0] for line in said)) or "not said"
        rows.append(f"| {part['name']} | {part.get('version', '')} | {name} |")
    return "\n".join(rows)


def run(*command: str | Path, cwd: Path = WORK) -> str:
    """What a command printed; a failing one ends the release with its last lines."""
    print("$", *(str(part) for part in command), flush=True)
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise ReleaseError(f"{Path(str(command[0])).name} failed:\n{last}")
    return done.stdout


def prepare(version: str) -> None:
    """A clone of what is committed, with the version set and the changelog cut."""
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", version):
        raise ReleaseError(f"VERSION must look like 1.2.3 or 1.2.3rc1, got {version!r}")
    left = subprocess.run(
        ["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    if left:
        raise ReleaseError(f"the tree must be clean, got changes:\n{left.rstrip()}")
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.parent.mkdir(exist_ok=True)
    run("git", "clone", "-q", ROOT, WORK, cwd=ROOT)
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    changelog = WORK / "CHANGELOG.md"
    changelog.write_text(
        cut_changelog(changelog.read_text(encoding="utf-8"), version, day), encoding="utf-8"
    )
    for name, pattern in VERSIONED.items():
        file = WORK / name
        text = set_version(file.read_text(encoding="utf-8"), pattern, version, name)
        file.write_text(text, encoding="utf-8")


def build(version: str) -> tuple[Path, Path]:
    """The wheel and the sdist, with contents that were looked at."""
    run(sys.executable, "-m", "hatchling", "build", "-d", DIST)
    wheel, sdist = DIST / f"dphmm-{version}-py3-none-any.whl", DIST / f"dphmm-{version}.tar.gz"
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    with zipfile.ZipFile(wheel) as archive:
        needed = ("dphmm/py.typed", "studio/static/index.html", "licenses/LICENSE")
        check_contents(archive.namelist(), needed, wheel.name)
    with tarfile.open(sdist) as archive:
        needed = ("tests/conftest.py", "docs/index.md", "README.md", "CHANGELOG.md")
        check_contents(archive.getnames(), needed, sdist.name)
    return wheel, sdist


def try_wheel(wheel: Path, sdist: Path, tests: str) -> None:
    """The demo and the tests against the wheel, in a new environment, without the checkout."""
    place = WORK.parent / "fresh"
    shutil.rmtree(place, ignore_errors=True)
    venv.create(place / "env", with_pip=True)
    python = place / "env" / "bin" / "python"
    pip = (python, "-m", "pip", "--disable-pip-version-check", "install", "-qq")
    run(*pip, "--require-hashes", "-r", WORK / "requirements.lock", cwd=place)
    run(*pip, "--no-deps", wheel, cwd=place)
    with tarfile.open(sdist) as archive:
        archive.extractall(place, filter="data")
    source = place / sdist.name.removesuffix(".tar.gz")
    shutil.rmtree(source / "src")  # so that only the wheel can answer
    run(place / "env" / "bin" / "dphmm", "demo", "-o", place / "demo", cwd=place)
    command = (python, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *tests.split())
    print(run(*command, cwd=source).splitlines()[-1])


def describe() -> None:
    """A bill of materials of what the extras need, and the licences in it."""
    bill = DIST / "dphmm.cdx.json"
    run(sys.executable, "-m", "cyclonedx_py", "requirements", "requirements.lock", "-o", bill)
    inside = WORK.parent / "fresh" / "env" / "bin" / "python"
    full = run(sys.executable, "-m", "cyclonedx_py", "environment", inside)
    (DIST / "LICENCES.md").write_text(licences(json.loads(full)) + "\n", encoding="utf-8")


def main(version: str = "", tests: str = "tests") -> None:
    """Make dist/ anew, once it is known that there is something to release."""
    prepare(version)
    shutil.rmtree(DIST, ignore_errors=True)
    wheel, sdist = build(version)
    try_wheel(wheel, sdist, tests)
    describe()
    (DIST / "release.patch").write_text(run("git", "diff"), encoding="utf-8")
    print(f"dist/ holds dphmm {version}. Not published. To publish it:")
    print(f"  git apply dist/release.patch && git commit -am 'Release {version}'")
    print(f"  git tag v{version} && git push --tags && twine upload dist/*.whl dist/*.gz")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except ReleaseError as fault:
        sys.exit(f"release: {fault}")
