"""The tables, as the list of steps that made them: a store at version n has run the first n.

Both backends run the same text; only the names of three types differ. Epsilons are exact
fractions written as text, answers are lists of integers written as text. There is no column
for a true state, and none that could be compared with one.
"""

from __future__ import annotations

__all__ = ["MIGRATIONS", "OLDEST", "ROOTS", "TABLES", "TYPES", "VERSION"]

TABLES = (
    *("facts", "roots", "scenarios", "people", "standings", "answers", "adoptions"),
    *("tombstones", "keys", "acts"),
)
"""Every table, after those that it refers to."""

ROOTS = 16
"""How many commits may end at once: each takes a root of its own."""

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
    version WHOLE NOT NULL,
    UNIQUE (client, name)
);
CREATE TABLE standings (
    person WHOLE NOT NULL REFERENCES people (id),
    query TEXT NOT NULL,
    law TEXT NOT NULL,
    time WHOLE NOT NULL,
    content BYTES NOT NULL,
    PRIMARY KEY (person, query)
);
CREATE TABLE answers (
    person WHOLE NOT NULL REFERENCES people (id),
    number WHOLE NOT NULL,
    query TEXT NOT NULL,
    time WHOLE NOT NULL,
    law TEXT NOT NULL,
    lattice TEXT NOT NULL,
    spacing TEXT NOT NULL,
    estimate TEXT NOT NULL,
    epsilon TEXT NOT NULL,
    constrained TEXT NOT NULL,
    statement TEXT NOT NULL,
    private WHOLE NOT NULL,
    PRIMARY KEY (person, query, time)
);
CREATE TABLE adoptions (
    person WHOLE NOT NULL REFERENCES people (id),
    query TEXT NOT NULL,
    time WHOLE NOT NULL,
    old TEXT NOT NULL,
    new TEXT NOT NULL
);
CREATE TABLE tombstones (
    person TEXT PRIMARY KEY,
    spent TEXT NOT NULL,
    budget TEXT,
    times TEXT NOT NULL,
    version WHOLE NOT NULL
);
CREATE TABLE keys (
    digest TEXT PRIMARY KEY,
    client TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created TEXT NOT NULL,
    revoked WHOLE NOT NULL
);
"""

# Versions 1 and 2 counted time from each person's own start and had an answer for each scenario:
# their moments have no slot, so they cannot be carried over.
OLDEST = 3

# A line's history under its present law can be followed from here on.
ADOPTED = """
ALTER TABLE adoptions ADD COLUMN content BYTES;
UPDATE adoptions SET content = (
    SELECT content FROM standings
    WHERE standings.person = adoptions.person AND standings.query = adoptions.query
);
"""

# A limit with windows has to know when the erased prices were paid.
CLOCKS = "ALTER TABLE tombstones ADD COLUMN clocks TEXT NOT NULL DEFAULT '{}'"

# Chains and roots; `opening` fills them. A server of an older dphmm that is still running writes
# no chains, so it must not go on: it asks for a column that has another name now.
SEALED = """
ALTER TABLE people RENAME COLUMN version TO commits;
ALTER TABLE people ADD COLUMN salt BYTES;
ALTER TABLE people ADD COLUMN head BYTES;
ALTER TABLE people ADD COLUMN marks TEXT NOT NULL DEFAULT '';
ALTER TABLE tombstones ADD COLUMN head BYTES;
ALTER TABLE tombstones ADD COLUMN closed WHOLE NOT NULL DEFAULT 0;
CREATE TABLE roots (
    number WHOLE PRIMARY KEY,
    count WHOLE NOT NULL,
    sum BYTES NOT NULL
);
"""

# Keys that close by themselves, and who did what.
ACTS = """
ALTER TABLE keys ADD COLUMN expires TEXT;
CREATE TABLE acts (
    number WHOLE PRIMARY KEY,
    time TEXT NOT NULL,
    who TEXT NOT NULL,
    client TEXT NOT NULL,
    act TEXT NOT NULL,
    chain TEXT NOT NULL
);
"""

# A root knows those before it. A server of an older dphmm writes no past: see SEALED.
PASSED = """
ALTER TABLE roots RENAME COLUMN sum TO seals;
ALTER TABLE roots ADD COLUMN past BYTES;
"""

MIGRATIONS: tuple[str, ...] = ("", "", FIRST, ADOPTED, CLOCKS, SEALED, ACTS, PASSED)
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
