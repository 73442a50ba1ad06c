"""The tables, as the list of steps that made them: a store at version n has run the first n.

Both backends run the same text; only the names of three types differ. Epsilons are exact
fractions written as text, answers are lists of integers written as text. There is no column
for a true state, and none that could be compared with one.
"""

from __future__ import annotations

__all__ = ["MIGRATIONS", "TYPES", "VERSION"]

FIRST = """
CREATE TABLE facts (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
CREATE TABLE scenarios (
    client TEXT NOT NULL,
    digest TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (client, digest)
);
CREATE TABLE people (
    id SERIAL_KEY,
    client TEXT NOT NULL,
    name TEXT NOT NULL,
    budget TEXT,
    carried TEXT NOT NULL,
    spent TEXT NOT NULL,
    entries WHOLE NOT NULL,
    UNIQUE (client, name)
);
CREATE TABLE streams (
    person WHOLE NOT NULL REFERENCES people (id),
    scenario TEXT NOT NULL,
    time WHOLE NOT NULL,
    snapshot BYTES NOT NULL,
    PRIMARY KEY (person, scenario)
);
CREATE TABLE releases (
    person WHOLE NOT NULL REFERENCES people (id),
    scenario TEXT NOT NULL,
    time WHOLE NOT NULL,
    query TEXT NOT NULL,
    lattice TEXT NOT NULL,
    estimate TEXT NOT NULL,
    epsilon TEXT NOT NULL,
    statement TEXT NOT NULL,
    private WHOLE NOT NULL,
    PRIMARY KEY (person, scenario, time, query)
);
CREATE TABLE ledger (
    person WHOLE NOT NULL REFERENCES people (id),
    number WHOLE NOT NULL,
    scenario TEXT NOT NULL,
    time WHOLE NOT NULL,
    query TEXT NOT NULL,
    epsilon TEXT NOT NULL,
    constrained TEXT NOT NULL,
    PRIMARY KEY (person, number)
);
CREATE TABLE tombstones (
    person TEXT NOT NULL,
    scenario TEXT NOT NULL,
    time WHOLE NOT NULL,
    spent TEXT NOT NULL,
    PRIMARY KEY (person, scenario)
);
"""

# The service came after the store, and its keys with it.
SECOND = """
CREATE TABLE keys (
    digest TEXT PRIMARY KEY,
    client TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created TEXT NOT NULL,
    revoked WHOLE NOT NULL
);
"""

MIGRATIONS: tuple[str, ...] = (FIRST, SECOND)
VERSION = len(MIGRATIONS)

TYPES = {
    # AUTOINCREMENT: the number of an erased person is never given to another.
    "sqlite": {
        "SERIAL_KEY": "INTEGER PRIMARY KEY AUTOINCREMENT",
        "WHOLE": "INTEGER",
        "BYTES": "BLOB",
    },
    "postgresql": {
        "SERIAL_KEY": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "WHOLE": "BIGINT",
        "BYTES": "BYTEA",
    },
}


def statements(script: str, dialect: str) -> list[str]:
    """The single statements of a migration, with the types of a dialect."""
    for name, used in TYPES[dialect].items():
        script = script.replace(f" {name}", f" {used}")
    return [statement.strip() for statement in script.split(";") if statement.strip()]
