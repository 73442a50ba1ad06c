"""Secrets from files that only their owner can read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from dphmm.errors import DataError
from dphmm.noise.randomness import KEY_BYTES

__all__ = ["read_key", "read_private"]


def read_private(path: str | Path, size: int) -> bytes:
    """The first bytes of a file that only its owner can read."""
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(size)
    except OSError as fault:
        raise DataError(f"{path}: key must be readable, got: {fault.strerror}") from None
    if not stat.S_ISREG(mode):
        raise DataError(f"{path}: key must be a file, got something else")
    if mode & 0o077:
        raise DataError(f"{path}: key must be closed to others; run: chmod 600 {path}")
    return content


def read_key(path: str | Path) -> bytes:
    """The secret key of a file that only its owner can read."""
    key = read_private(path, KEY_BYTES + 1)
    if len(key) != KEY_BYTES:
        size = f"{len(key)}" if len(key) < KEY_BYTES else "more"
        raise DataError(
            f"{path}: key must be {KEY_BYTES} bytes, got {size}; "
            f"make one with: (umask 077; head -c {KEY_BYTES} /dev/urandom > {path})"
        )
    return key
