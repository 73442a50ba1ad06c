"""The least that a service could do: `python -m benchmarks.bare FILE PORT`.

FastAPI and one insert into SQLite (WAL, synchronous FULL), a transaction each, in FastAPI's own
threads; no key, no noise, no chain, no group. It answers the path that the load asks for.
"""

from __future__ import annotations

import sqlite3
import sys
import threading
from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

guard = threading.Lock()
app = FastAPI()


class Row(BaseModel):
    time: int
    state: int


@app.get("/health")
def health() -> dict[str, str]:
    return {"status": "ok"}


@app.post("/v1/scenarios/{digest}/people/{person}/releases")
def insert(digest: str, person: str, row: Row) -> dict[str, Any]:
    with guard:  # SQLite has one writer; its own way of waiting is to sleep
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows VALUES (?, ?, ?)", (person, row.time, row.state))
        connection.execute("COMMIT")
    return {"time": row.time, "repeated": False}


if __name__ == "__main__":
    connection = sqlite3.connect(sys.argv[1], isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE rows (person TEXT, time INTEGER, state INTEGER)")
    uvicorn.run(app, port=int(sys.argv[2]), log_level="warning")
