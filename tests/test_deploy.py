"""What is shipped for operators: the image's steps, the compose file and the unit are right."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from dphmm import Client
from dphmm.service import ServiceSettings
from tests.test_service_processes import PATIENCE, free_port

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"


def instructions():
    """The instructions of the Containerfile, in order."""
    text = re.sub(r"\\\n\s*", "", (DEPLOY / "Containerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(" ", 1)) for line in lines]


def one(name):
    (found,) = (rest for word, rest in instructions() if word == name)
    return found


def test_the_image_is_made_as_it_should_be():
    words = [word for word, _ in instructions()]
    assert words[0] == "FROM"
    assert words.index("USER") < words.index("ENTRYPOINT"), "it does not run as root"
    assert one("USER") == "dphmm"
    assert "--require-hashes -r requirements-service.lock" in "".join(
        rest for word, rest in instructions() if word == "RUN"
    )
    known = {"FROM", "RUN", "WORKDIR", "COPY", "ENV", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL"}
    assert set(words) <= known | {"HEALTHCHECK", "ENTRYPOINT"}
    assert one("STOPSIGNAL") == "SIGTERM"


def test_the_lock_of_the_image_is_what_is_tested_here():
    """Every package of the image has the version with which these tests run."""
    lock = (ROOT / "requirements-service.lock").read_text()
    pins = re.findall(r"^([A-Za-z0-9_.-]+)==([^ \\]+)( ;[^\\\n]*)? ", lock, re.MULTILINE)
    assert {"fastapi", "numba", "psycopg-binary", "uvicorn", "opentelemetry-sdk"} <= {
        name for name, *_ in pins
    }
    held = {name: pin for name, pin, condition in pins if not condition}
    assert {name: version(name) for name in held} == held


def run_steps(folder, python):
    """Do what COPY and ENV say in a clean folder; gives the environment of the image."""
    place, environment = folder, {}
    for word, rest in instructions():
        if word == "WORKDIR":
            place = folder / rest.lstrip("/")
            place.mkdir(parents=True, exist_ok=True)
        elif word == "COPY":
            *sources, target = rest.split()
            for source in sources:
                found = ROOT / source
                assert found.exists(), source
                if found.is_dir():
                    ignored = shutil.ignore_patterns("__pycache__")
                    shutil.copytree(found, place / target, ignore=ignored)
                else:
                    shutil.copy(found, place / target)
        elif word == "ENV":
            environment |= dict(pair.split("=", 1) for pair in rest.split())
        elif word == "RUN" and rest.startswith("python "):
            subprocess.run([python, *shlex.split(rest)[1:]], cwd=place, check=True, timeout=600)
        elif word == "RUN" and rest.startswith("pip "):
            pip = [python, "-m", *shlex.split(rest)]
            if python != sys.executable:
                subprocess.run(pip, cwd=place, check=True, timeout=900, capture_output=True)
    return {name: value.replace("=/", f"={folder}/") for name, value in environment.items()}


def serve_image(folder, python):
    """The image's own command answers, is healthy by the image's own check, and stops."""
    environment = {
        name: str(folder) + value if value.startswith("/") else value
        for name, value in run_steps(folder, python).items()
    }
    environment |= {"PATH": os.environ["PATH"], "DPHMM_PORT": str(free_port())}
    command = [part.replace("/data", f"{folder}/data") for part in json.loads(one("ENTRYPOINT"))]
    assert command[0] == "python"
    command[command.index("0.0.0.0")] = "127.0.0.1"
    check = json.loads(one("HEALTHCHECK").partition("CMD ")[2])
    with subprocess.Popen(
        [python, *command[1:]],
        cwd=folder / "data",
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            end = time.monotonic() + 2 * PATIENCE
            healthy = 1
            while healthy and time.monotonic() < end and process.poll() is None:
                healthy = subprocess.run(
                    [python, *check[1:]], env=environment, capture_output=True, timeout=60
                ).returncode
            assert healthy == 0, process.stderr.read() if process.poll() is not None else "late"
            address = f"http://127.0.0.1:{environment['DPHMM_PORT']}"
            with Client(address, key_file=folder / "data" / "first-key") as service:
                assert service.scenarios() == ()
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
        assert process.returncode == 0
        process.stderr.read()


def test_the_steps_of_the_image_work_in_a_clean_folder(tmp_path):
    serve_image(tmp_path, sys.executable)


@pytest.mark.slow
def test_the_steps_of_the_image_work_with_its_own_packages(tmp_path):
    """The same with nothing but what the lock has."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "python"], check=True, timeout=300)
    serve_image(tmp_path / "image", str(tmp_path / "python" / "bin" / "python"))


def test_what_is_shipped_keeps_the_tick():
    """An attack is noticed least with it, and without it the time of an answer tells of noise."""
    assert ServiceSettings().tick == 0.05
    assert ServiceSettings.read({}, {}).tick == 0.05
    for shipped in DEPLOY.iterdir():
        text = shipped.read_text().lower()
        assert "--tick" not in text, shipped.name
        assert "dphmm_tick" not in text, shipped.name


# Compose


def test_the_compose_file_is_right():
    held = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    service, database = held["services"]["dphmm"], held["services"]["database"]
    built = (DEPLOY / service["build"]["context"]).resolve()
    assert (built / service["build"]["dockerfile"]).samefile(DEPLOY / "Containerfile")
    for port in service["ports"]:
        assert port.startswith("127.0.0.1:"), "no port is open to others without TLS"
    assert "ports" not in database
    named = {volume.partition(":")[0] for one in (service, database) for volume in one["volumes"]}
    assert named == set(held["volumes"])
    mounted = {volume.partition(":")[2] for volume in service["volumes"]}
    assert one("VOLUME") in mounted
    assert str(Path(service["environment"]["DPHMM_ANCHOR"]).parent) in mounted
    assert service["depends_on"]["database"]["condition"] == "service_healthy"
    # The password is in no file here, and in no argument.
    texts = [database["environment"]["POSTGRES_PASSWORD"], service["environment"]["STORE"]]
    assert all("${POSTGRES_PASSWORD:?" in text for text in texts)
    assert "command" not in service
    assert int(service["stop_grace_period"].removesuffix("s")) > 10
    known = {line.split("|")[2].strip(" `") for line in settings_rows()}
    assert {name for name in service["environment"] if name != "STORE"} <= known


def settings_rows():
    section = (ROOT / "docs/service.md").read_text().partition("## Settings")[2]
    return [line for line in section.splitlines() if line.startswith("|")]


def test_docker_reads_the_compose_file(tmp_path):
    if shutil.which("docker") is None:
        pytest.skip("there is no docker")
    done = subprocess.run(
        ["docker", "compose", "-f", DEPLOY / "compose.yaml", "config", "--quiet"],
        env={**os.environ, "POSTGRES_PASSWORD": "x"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    if "is not a docker command" in done.stderr or "unknown" in done.stderr:
        pytest.skip("docker has no compose here")
    assert done.returncode == 0, done.stderr


# The unit


def unit():
    text = (DEPLOY / "dphmm.service").read_text()
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))


def test_the_unit_keeps_secrets_and_gives_time_to_stop():
    held = unit()
    words = shlex.split(held["ExecStart"])
    assert words[1:3] == ["serve", "env:STORE"]
    assert int(held["TimeoutStopSec"]) > 10
    assert held["UMask"] == "0077"
    assert held["NoNewPrivileges"] == "yes"
    assert words[words.index("--init") + 1].startswith("/var/lib/" + held["StateDirectory"])


def test_systemd_reads_the_unit(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze")
    text = (DEPLOY / "dphmm.service").read_text().replace("/opt/dphmm/bin/dphmm", "/bin/true")
    (tmp_path / "dphmm.service").write_text(text.replace("User=dphmm", "User=daemon"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", tmp_path / "dphmm.service"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    said = [line for line in done.stderr.splitlines() if "dphmm.service" in line]
    assert said == [], done.stderr


def test_the_unit_s_command_is_one(tmp_path):
    """Its options are the program's."""
    from dphmm.cli.serve import command

    words = shlex.split(unit()["ExecStart"])[2:]
    known = {name for option in command.params for name in option.opts}
    assert {word for word in words if word.startswith("--")} <= known
