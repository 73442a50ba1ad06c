"""Whether results that were measured again say what the files say that stand on pages.

Numbers without an interval must be the same as printed, numbers with one must lie within it, and
verdicts must be the same. Times, and verdicts about times, belong to their machine and are not
compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from dphmm.evaluate.results import Result, Value

__all__ = ["changes"]

TIMES = ("ms", "s", "minutes")
ABOUT_TIMES = ("time.", "settles.", "minutes")


def changes(before: Result, after: Result) -> list[str]:
    """A sentence for each value that the new result does not confirm.

    Args:
        before: From a file that pages show.
        after: Measured again.
    """
    found = []
    for key in sorted({*before.values, *after.values}):
        old, new = before.values.get(key), after.values.get(key)
        if old is None or new is None:
            found.append(f"{before.name} {key}: is {'new' if old is None else 'gone'}")
        elif not _is_timed(key, old) and not _confirms(old, new):
            found.append(f"{before.name} {key}: {_told(old)}, measured again {_told(new)}")
    return found


def _confirms(old: Value, new: Value) -> bool:
    if isinstance(old.value, str) or isinstance(new.value, str):
        return old.value == new.value
    if old.low is None or old.high is None:
        return old.text() == new.text()
    return old.low <= new.value <= old.high


def _is_timed(key: str, value: Value) -> bool:
    words: Iterator[str] = iter(ABOUT_TIMES)
    name = key.rpartition("verdict.")[2]
    return value.unit in TIMES or any(name.startswith(word) for word in words)


def _told(value: Value) -> str:
    return value.text(interval=value.low is not None and not isinstance(value.value, str))
