"""Loaded by the process that workers come from: a server that is killed while it asks ends nothing.

Python's fork server ends when somebody connects and is gone before a word. A server of its own
starts another then; servers that share one, as here, would be without workers for ever.
"""

from __future__ import annotations

import errno
from multiprocessing import reduction

_receive = reduction.recvfds


def receive(*args):
    """What was sent; one who sent nothing is as one who never came."""
    try:
        return _receive(*args)
    except EOFError as error:
        raise ConnectionAbortedError(errno.ECONNABORTED, "gone") from error


reduction.recvfds = receive
