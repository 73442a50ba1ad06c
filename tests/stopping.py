"""Stop an act as a signal would, at any of the places at which Python looks for one."""

from __future__ import annotations

import opcode
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

LOOKS = {
    number
    for name, number in opcode.opmap.items()
    if name.startswith("CALL") or name in ("RESUME", "JUMP_BACKWARD")
}
"""After these instructions Python runs the handlers of signals; nowhere else."""


def stop_at(
    count: int,
    act: Callable[[], object],
    parts: tuple[str, ...],
    fault: type[BaseException] = KeyboardInterrupt,
) -> bool:
    """Do something, stopped at the n-th place in some files; whether there was one."""
    seen, last = 0, dict[FrameType, int]()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal seen
        if event == "call" and not any(part in frame.f_code.co_filename for part in parts):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            before, last[frame] = last.get(frame), frame.f_code.co_code[frame.f_lasti]
            seen += before in LOOKS
            if seen == count and before in LOOKS:
                raise fault
        return trace

    old = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    except fault:
        pass
    finally:
        sys.settrace(old)
    return seen >= count
