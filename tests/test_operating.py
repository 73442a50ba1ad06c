"""The operators' page: every line of it, in order, in an empty folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.postgres import PORT, running_server
from tests.test_service_processes import free_port

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs/operating.md").read_text()
LATER = "\n## PostgreSQL"


def blocks(text):
    return "\n".join(re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE))


def run_page(folder, text, **environment):
    """A shell that stops at the first line that fails, and takes what it began with it."""
    for name in ("curl", "openssl", "nginx"):
        if shutil.which(name) is None:
            pytest.skip(f"there is no {name}")
    programs = folder / "programs"
    programs.mkdir()
    for name, code in (("dphmm", "-m dphmm"), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {code} "$@"\n')
        (programs / name).chmod(0o755)
    plain, tls = free_port(), free_port()
    script = "set -eu\ntrap 'kill $(jobs -p) 2> kill.log || true' EXIT\n" + text
    script = script.replace("8443", str(tls)).replace("8000", str(plain))
    # The proxy's own file has the same two ports.
    ports = f"sed -i 's/8443/{tls}/; s/8000/{plain}/' nginx.conf"
    script = script.replace("mkdir -p temporary", f"mkdir -p temporary && {ports}")
    there = folder / "service"
    there.mkdir()
    known = {name: os.environ[name] for name in ("HOME", "NUMBA_CACHE_DIR") if name in os.environ}
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=there,
        env={
            **known,
            "PATH": f"{programs}:{os.environ['PATH']}:/usr/sbin",
            "PYTHONPATH": str(ROOT / "src"),
            "SOURCE": str(ROOT),
            "DPHMM_PORT": str(plain),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=500,
    )
    logs = "".join(path.read_text() for path in there.glob("*.log"))
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-3000:], logs[-2000:])
    return there, done


def check_folder(there, done):
    """Nothing that the page made is open to others, and no secret is where it should not be."""
    assert [path for path in there.rglob("*") if path.stat().st_mode & 0o077] == []
    secrets = [
        path.read_text().strip()
        for path in (there / "private").glob("*")
        if path.name in ("operator", "clinic", "report", "report.new", "first-key", "password")
    ]
    told = done.stdout + done.stderr + "".join(p.read_text() for p in there.glob("*.log"))
    assert len(secrets) >= 5
    assert not [secret for secret in secrets if secret in told]
    assert "ann" not in (there / "service.log").read_text()


def test_every_line_of_the_page_works(tmp_path):
    there, done = run_page(tmp_path, blocks(PAGE.partition(LATER)[0]))
    assert "sound: " in done.stdout
    check_folder(there, done)


@pytest.mark.slow
@pytest.mark.postgres
def test_every_line_of_the_page_works_with_postgresql(tmp_path):
    with running_server() as postgres:
        place = {"PGHOST": str(postgres.folder), "PGPORT": str(PORT), "PGUSER": "test"}
        there, done = run_page(tmp_path, blocks(PAGE), PGDATABASE="postgres", **place)
        check_folder(there, done)


def test_every_command_on_the_page_is_run():
    """A line that calls the program stands in a block that is run."""
    run = blocks(PAGE)
    for line in re.findall(r"^dphmm .*$", PAGE, re.MULTILINE):
        assert line in run


def test_the_proxy_logs_no_request_and_writes_no_body():
    text = (ROOT / "deploy/nginx.conf").read_text()
    assert "access_log off;" in text
    assert "error_log stderr emerg;" in text
    assert (
        re.search(r"client_body_buffer_size (\w+);", text)[1]
        == re.search(r"client_max_body_size (\w+);", text)[1]
    )
    assert "proxy_max_temp_file_size 0;" in text
