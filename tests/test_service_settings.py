"""Settings: by file, environment and option, in that order, and one table that has them all."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from dphmm import ArgumentError, DataError
from dphmm.cli.serve import command
from dphmm.cli.stores import Opening
from dphmm.service import ServiceSettings
from dphmm.service.settings import OTHERS

ROOT = Path(__file__).resolve().parent.parent


def test_an_option_goes_before_the_environment_and_that_before_the_file(tmp_path):
    file = tmp_path / "service.toml"
    file.write_text('tick = 0.5\nthreads = 2\nworkers = 3\ntrusted_proxies = ["10.0.0.0/8"]\n')
    environment = {"DPHMM_THREADS": "5", "DPHMM_WORKERS": "6", "DPHMM_STORE": "not a setting"}
    found = ServiceSettings.read({"workers": "7"}, environment, file)
    assert (found.tick, found.threads, found.workers) == (0.5, 5, 7)
    assert found.trusted_proxies == ("10.0.0.0/8",)
    listed = {"DPHMM_TRUSTED_PROXIES": "10.1.1.1,10.1.1.2"}
    assert ServiceSettings.read({}, listed).trusted_proxies == ("10.1.1.1", "10.1.1.2")
    spaced = {"DPHMM_TRUSTED_PROXIES": "10.1.1.1, 10.0.0.0/8"}
    assert ServiceSettings.read({}, spaced).trusted_proxies == ("10.1.1.1", "10.0.0.0/8")
    assert ServiceSettings.read({}, {"DPHMM_TRUSTED_PROXIES": ""}).trusted_proxies == ()
    assert ServiceSettings.read({"threads": 2.0}, {}).threads == 2
    assert ServiceSettings.read({"largest_epsilon": "1/3"}, {}).largest_epsilon is not None


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"thraeds": 1}, "setting must be one of connections, .*, got 'thraeds'"),
        ({"threads": "many"}, "threads must be a whole number, got 'many'"),
        ({"tick": "soon"}, "tick must be a number, got 'soon'"),
        ({"threads": "0"}, "threads must be at least 1, got 0"),
        ({"threads": 2.9}, "threads must be a whole number, got 2.9"),
        ({"workers": True}, "workers must be a whole number, got True"),
        ({"tick": False}, "tick must be a number, got False"),
        ({"threads": float("inf")}, "threads must be a whole number, got inf"),
        ({"trusted_proxies": 5}, "trusted_proxies must be addresses or networks .*, got 5"),
        ({"trusted_proxies": [5]}, "trusted_proxies must be addresses or networks .*, got 5"),
        ({"trusted_proxies": "proxy.local"}, "must be addresses or networks .*, got 'proxy.local'"),
        ({"trusted_proxies": "10.0.0.1/8"}, "must be addresses or networks .*, got '10.0.0.1/8'"),
        ({"trusted_proxies": "*"}, "must be addresses or networks .*, got '\\*'"),
    ],
)
def test_a_setting_that_is_none_is_refused(given, says):
    with pytest.raises(ArgumentError, match=says):
        ServiceSettings.read(given, {})


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        ("TIKC", "TICK"),
        ("ANCOR", "ANCHOR"),
        ("SECRET_FILE", "SECRET"),
        ("TRUSTED_PROXY", "TRUSTED_PROXIES"),
        ("WORKER", "WORKERS"),
    ],
)
def test_a_variable_that_is_nearly_a_setting_is_refused(monkeypatch, tmp_path, slip, meant):
    says = f"DPHMM_{slip} must be DPHMM_{meant} or another name"
    with pytest.raises(ArgumentError, match=says):
        ServiceSettings.read({}, {f"DPHMM_{slip}": "1"})
    monkeypatch.setenv(f"DPHMM_{slip}", "1")
    with pytest.raises(ArgumentError, match=says):
        Opening().store(str(tmp_path / "store.db"))
    assert not list(tmp_path.iterdir())


def test_a_variable_of_somebody_else_is_none_of_ours():
    """Those of the tests, of make, and of Kubernetes for a service that is called dphmm."""
    names = "DATA STORE COMPILE FINAL COMPLETE BENCH_PEOPLE SERVICE_HOST SERVICE_PORT PORT_8000_TCP"
    ServiceSettings.read({}, {f"DPHMM_{name}": "x" for name in names.split()})


def test_a_file_that_is_none_is_refused(tmp_path):
    (tmp_path / "bad.toml").write_text("tick = ")
    for name in ("bad.toml", "missing.toml"):
        with pytest.raises(DataError, match="settings must be a TOML file"):
            ServiceSettings.read({}, {}, tmp_path / name)


def table():
    """The rows of the table in the docs: name in a file, environment, option, default."""
    section = (ROOT / "docs/service.md").read_text().partition("## Settings")[2]
    rows = re.findall(r"^\|(.*)\|$", section.partition("\n## ")[0], re.MULTILINE)[2:]
    return [[cell.strip().strip("`") for cell in row.split("|")] for row in rows]


def test_the_table_of_the_docs_has_every_setting_and_its_default():
    found = {name: (environment, default) for name, environment, _, default, _ in table() if name}
    assert list(found) == [field.name for field in fields(ServiceSettings)]
    for field in fields(ServiceSettings):
        default = "" if field.default in (None, ()) else f"{field.default:,}"
        assert found[field.name] == (f"DPHMM_{field.name.upper()}", default.removesuffix(".0"))


def test_the_table_of_the_docs_has_every_option():
    named = [option.split() for _, _, option, *_ in table() if option]
    listed = {option[0] for option in named if option[0] != "--set"}
    real = {one for option in command.params for one in option.opts if one.startswith("--")}
    real -= {"--color", "--quiet"}  # every command has them, once the program was asked for it
    assert listed | {"--set", "--help"} == real | {"--help"}
    # What has no option of its own is set by name.
    for name, _, option, *_ in table():
        if name and not option.startswith("--set"):
            assert option.split()[0] in real
        elif name:
            assert option == f"--set {name}="
    by_environment = {(one.envvar, one.opts[0]) for one in command.params if one.envvar}
    assert by_environment <= {(variable, option) for _, variable, option, *_ in table()}


def test_the_table_of_the_docs_has_every_variable_of_the_environment():
    """Every DPHMM_... that a service, its commands and its client read, and no other."""
    rooms = [ROOT / "src" / "dphmm" / room for room in ("books", "cli", "client", "service")]
    source = "".join(path.read_text() for room in rooms for path in room.rglob("*.py"))
    used = set(re.findall(r"\bDPHMM_[A-Z_]+[A-Z]\b", source)) - {"DPHMM_COMPLETE"}
    settings = {f"DPHMM_{field.name.upper()}" for field in fields(ServiceSettings)}
    listed = {variable for _, variable, *_ in table() if variable.startswith("DPHMM_")}
    assert listed == used | settings
    assert listed == {f"DPHMM_{name}" for name in OTHERS} | settings
