"""Locks of SQLite that a process holds are not dropped by the process itself.

A lock of POSIX belongs to a process and a file, and goes when the process closes any descriptor of
that file, not only the one that took it. A store that opens and closes its own file beside SQLite
lets other processes believe that nobody is there: they empty and remove its log when they end, and
what is written to it from then on is lost.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from dphmm import Store
from dphmm.books import create_key, find_problems, list_keys

ROOT = Path(__file__).resolve().parent.parent
ANOTHER = "import sys; from dphmm import Store; Store.open(sys.argv[1], anchor=sys.argv[2]).close()"


def test_what_is_written_after_another_process_was_there_is_kept(tmp_path):
    url, anchor = str(tmp_path / "store.db"), str(tmp_path / "anchor")
    store = Store.open(url, anchor=anchor)
    create_key(store, "red", ["read"])
    # A thread has a connection of its own, opened while the first one has its locks.
    thread = threading.Thread(target=create_key, args=(store, "green", ["read"]))
    thread.start()
    thread.join()
    subprocess.run(
        [sys.executable, "-c", ANOTHER, url, anchor],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        check=True,
        timeout=120,
    )
    assert os.stat(url + "-wal").st_size >= 0, "its log is still there"
    create_key(store, "blue", ["read"])
    again = Store.open(url, anchor=anchor)
    assert {key.client for key in list_keys(again)} == {"red", "green", "blue"}
    assert find_problems(again) == []
    again.close()
    store.close()


def test_a_new_store_is_closed_to_others(tmp_path):
    url = tmp_path / "store.db"
    Store.open(str(url)).close()
    assert url.stat().st_mode & 0o077 == 0
    url.chmod(0o644)
    Store.open(str(url)).close()
    assert url.stat().st_mode & 0o077 == 0
