"""Where answers are written down: memory, a file, SQLite and PostgreSQL; exactly once."""

from dphmm.books.checking import export, find_problems, inspect
from dphmm.books.journal import Journal
from dphmm.books.keys import (
    OPERATE,
    SCOPES,
    Key,
    create_key,
    expire_key,
    find_key,
    list_keys,
    replace_key,
    revoke_key,
)
from dphmm.books.memory import MemoryBook
from dphmm.books.store import Store
from dphmm.books.tombstones import Tombstone

__all__ = [
    "OPERATE",
    "SCOPES",
    "Journal",
    "Key",
    "MemoryBook",
    "Store",
    "Tombstone",
    "create_key",
    "expire_key",
    "export",
    "find_key",
    "find_problems",
    "inspect",
    "list_keys",
    "replace_key",
    "revoke_key",
]
