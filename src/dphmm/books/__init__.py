"""SQLite and PostgreSQL: every stream's state, every release and every ledger, exactly once."""

from dphmm.books.checking import exported, inspected, problems
from dphmm.books.keys import SCOPES, Key, create_key, find_key, list_keys, revoke_key
from dphmm.books.rules import Answer, Request, Rules
from dphmm.books.store import Store
from dphmm.books.tombstones import Tombstone

__all__ = [
    "SCOPES",
    "Answer",
    "Key",
    "Request",
    "Rules",
    "Store",
    "Tombstone",
    "create_key",
    "exported",
    "find_key",
    "inspected",
    "list_keys",
    "problems",
    "revoke_key",
]
