"""Several processes that serve one port: begun, watched, begun again, and stopped together."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from dphmm.errors import DphmmError
from dphmm.service.logs import log
from dphmm.service.sharing import Shared

__all__ = ["supervise"]

SIGNALS = (signal.SIGTERM, signal.SIGINT)
UNFINISHED = 3
HOPELESS = 1
"""Exit codes: something was still running at the end; no process would run at all."""

QUICK = 10.0
"""Seconds; a process that ends before has not really begun."""

MOST_QUICK = 5
"""How often in a row that may happen to each before nobody tries any more."""

LONGEST_PAUSE = 5.0


class _Supervisor:
    def __init__(self, shared: Shared, work: Callable[[], None], count: int, grace: float) -> None:
        self._shared, self._work, self._count, self._grace = shared, work, count, grace
        self._numbers: dict[int, tuple[int, float]] = {}
        """Which one each process is, and when it began."""
        self._quick = 0
        self._code = 0
        self._stopping = False
        # Whoever reads from it learns when this process is gone, however it ended.
        self._theirs, self._ours = os.pipe()

    def run(self) -> int:
        for told in SIGNALS:
            signal.signal(told, self._stop)
        signal.signal(signal.SIGALRM, self._kill)
        for number in range(self._count):
            self._begin(number)
        while self._numbers:
            pid, status = os.wait()
            self._ended(pid, os.waitstatus_to_exitcode(status))
        return self._code

    def _begin(self, number: int) -> None:
        # A signal must find either no child or one that is written down.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            pid = os.fork()
            if not pid:
                self._be_child()
            self._numbers[pid] = number, time.monotonic()
            self._shared.set_pid(number, pid)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        if self._stopping:
            self._stop()

    def _be_child(self) -> None:
        code = UNFINISHED
        try:
            os.close(self._ours)
            for number in (*SIGNALS, signal.SIGALRM):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            threading.Thread(target=_end_with, args=(self._theirs,), daemon=True).start()
            self._work()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
        except DphmmError as fault:
            log.error("error", extra={"fault": str(fault)})
        except BaseException as fault:  # its words may be anything; kind and place are told
            log.error("error", exc_info=(type(fault), fault, fault.__traceback__))
        finally:
            with suppress(Exception):
                sys.stderr.flush()
            os._exit(code)

    def _ended(self, pid: int, code: int) -> None:
        number, began = self._numbers.pop(pid)
        self._shared.set_pid(number, 0)
        if self._stopping:
            # One that was told to stop before it could listen to that has done nothing.
            if code not in (0, -signal.SIGTERM):
                self._code = self._code or UNFINISHED
            return
        log.error("a worker ended; another one takes its place", extra={"status": code})
        self._quick = self._quick + 1 if time.monotonic() - began < QUICK else 0
        if self._quick >= MOST_QUICK * self._count:
            log.error("workers end as soon as they begin; giving up")
            self._code = HOPELESS
            self._stop()
            return
        if self._quick:
            time.sleep(min(LONGEST_PAUSE, 0.1 * 2.0**self._quick))
        if not self._stopping:
            self._begin(number)

    def _stop(self, number: int = 0, frame: FrameType | None = None) -> None:
        self._stopping = True
        for pid in self._numbers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        signal.setitimer(signal.ITIMER_REAL, self._grace)

    def _kill(self, number: int, frame: FrameType | None) -> None:
        for pid in self._numbers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _end_with(pipe: int) -> None:
    """Stop as told when the process that began this one is gone."""
    os.read(pipe, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def supervise(shared: Shared, work: Callable[[], None], count: int, grace: float) -> int:
    """Have some processes do the same until a signal, and give the exit code.

    Args:
        shared: What they share, where those that are there are written down.
        work: What each does until SIGTERM; what raises, or is killed, is begun again.
        count: How many.
        grace: Seconds after a signal until those that still run are killed.
    """
    return _Supervisor(shared, work, count, grace).run()
