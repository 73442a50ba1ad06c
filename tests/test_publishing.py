"""What leads to a release: the script that makes one, and the workflow of a public CI."""

from __future__ import annotations

import re

import pytest
import yaml

import dphmm
from scripts import release
from tests.conftest import ROOT

pytestmark = pytest.mark.checkout


def test_the_changelog_has_something_to_release():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## 9.9.9 (2030-01-01)\n" in release.cut_changelog(text, "9.9.9", "2030-01-01")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# Changelog\n\n## Unreleased\n\n## 1.0.0 (2026-01-01)\n\n- Old.\n", "must have entries"),
        ("# Changelog\n", "must have entries"),
        ("## Unreleased\n\n- New.\n\n## 1.0.0 (2026-01-01)\n", "VERSION must be new, got 1.0.0"),
    ],
)
def test_a_changelog_that_cannot_be_cut_is_refused(text, problem):
    with pytest.raises(release.ReleaseError, match=problem):
        release.cut_changelog(text, "1.0.0", "2026-02-02")


def test_the_version_is_the_same_wherever_it_stands():
    for name, pattern in release.VERSIONED.items():
        found = re.search(pattern, (ROOT / name).read_text(encoding="utf-8"))
        assert [found and found[1], name] == [dphmm.__version__, name]


def test_a_file_that_names_no_version_is_refused():
    with pytest.raises(release.ReleaseError, match="must name the version, got none"):
        release.set_version("", r"version: (.*)", "1.0.0", "a.md")


@pytest.mark.parametrize("version", ["", "1.0", "v1.0.0", "1.0.0-beta"])
def test_a_version_that_is_none_is_refused_and_loses_nothing(version, monkeypatch, tmp_path):
    monkeypatch.setattr(release, "DIST", tmp_path)
    (tmp_path / "earlier.whl").touch()
    with pytest.raises(release.ReleaseError, match="VERSION must look like"):
        release.main(version)
    assert (tmp_path / "earlier.whl").exists()


def test_an_archive_must_hold_what_users_need():
    with pytest.raises(release.ReleaseError, match="sdist must hold README"):
        release.check_contents(["a/LICENSE"], ["README.md"], "sdist")


def test_the_workflow_runs_what_stands_here():
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    for job in workflow["jobs"].values():
        assert {"runs-on", "timeout-minutes"} <= set(job)
        commands = [step["run"] for step in job["steps"] if "run" in step]
        for target in (command.split()[1] for command in commands if command.startswith("make ")):
            assert f"\n{target}:" in (ROOT / "Makefile").read_text(encoding="utf-8")
    versions = workflow["jobs"]["versions"]["strategy"]["matrix"]
    assert versions["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert versions["system"] == ["ubuntu-latest", "macos-latest"]
