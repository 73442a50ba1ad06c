"""What can go wrong, drawn as a tree.

```
DphmmError
├── ArgumentError (ValueError)   an argument that must be something else
├── DataError (ValueError)       a file, row or field that cannot be used; names the place
│   └── ScenarioError            a scenario file that does not describe a scenario
├── BudgetError                  the ledger's limit does not allow this release
├── ExposureError                a state would be exposed and nothing may be repaired
├── GeometryError                an exact check of a hull failed: nothing was released
├── ServiceError                 a service refused a request, or could not be asked
├── StoreError                   the store cannot be read or written
│   ├── MovedError               somebody else answered the same people meanwhile
│   └── NotFoundError            the store holds no such person, stream or scenario
├── TooLargeError                an exact search was refused because it would not end
└── MissingExtraError (ImportError)   an optional part is not installed
```

No message ever contains a true state, a noise draw or the distance between an answer and
the truth, so every one of them can be shown to anybody.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Sized
from fractions import Fraction
from importlib import import_module
from types import ModuleType
from typing import Any
from unicodedata import is_normalized

__all__ = [
    "ArgumentError",
    "BudgetError",
    "CollapsedAnswersWarning",
    "DataError",
    "DphmmError",
    "ExposureError",
    "GeometryError",
    "MissingExtraError",
    "MovedError",
    "NotFoundError",
    "ScenarioError",
    "ServiceError",
    "StoreError",
    "TooLargeError",
    "UnknownLawWarning",
]


LONGEST_NAME = 200


class DphmmError(Exception):
    """Everything this library raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Not by calling the class again: some of these have arguments of their own.
        return _revive, (type(self), self.args, vars(self))


def _revive(kind: type[DphmmError], arguments: tuple[Any, ...], facts: dict[str, Any]) -> Any:
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    vars(error).update(facts)
    return error


class ArgumentError(DphmmError, ValueError):
    """An argument that must be something else: `<argument> must <requirement>, got <value>`."""


class DataError(DphmmError, ValueError):
    """A file, row or field that cannot be used; the message names file, line and column."""


class ScenarioError(DataError):
    """A scenario file that does not describe a scenario."""


class BudgetError(DphmmError):
    """A release that the ledger's limit does not allow; nothing was drawn or written.

    Args:
        spent: What was spent before, in all or in the window.
        requested: What this release would have cost.
        remaining: What the limit still allows.
        window: The limit's window that is full, in words; None if it is the limit in all.
        opens: The first slot at which the same release is possible, if one is.
        when: What that slot is called, if not by its number.
    """

    def __init__(
        self,
        *,
        spent: Fraction,
        requested: Fraction,
        remaining: Fraction,
        window: str | None = None,
        opens: int | None = None,
        when: int | str | None = None,
    ) -> None:
        limit = "the limit" if window is None else f"the limit of {window}"
        later = "raise the limit" if opens is None else f"ask again at slot {opens} or later"
        if when is not None:
            later = f"ask again for {when} or later"
        super().__init__(
            f"epsilon must stay within {limit}, got a request for {float(requested):g} "
            f"with {float(spent):g} spent and {float(remaining):g} remaining; "
            f"ask for less or {later}"
        )
        self.spent = spent
        self.requested = requested
        self.remaining = remaining
        self.window = window
        self.opens = opens
        self.when = when


class ExposureError(DphmmError):
    """A state would be exposed and the caller does not allow, or cannot have, a repair."""


class GeometryError(DphmmError):
    """An exact check of a hull or its fan failed; nothing was released."""


class ServiceError(DphmmError):
    """A service refused a request for reasons of its own, or could not be asked.

    Args:
        message: What was wrong and what to do.
        status: The status of HTTP; None if there was no answer.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class StoreError(DphmmError):
    """The store cannot be read or written; what it holds is unchanged."""


class MovedError(StoreError):
    """Somebody else answered the same people meanwhile; nothing was written.

    Args:
        lines: Whose places had changed.
    """

    def __init__(self, lines: Collection[object]) -> None:
        super().__init__(f"{len(lines)} people were answered by somebody else meanwhile")
        self.lines = frozenset(lines)


class NotFoundError(StoreError):
    """The store holds no such person, stream or scenario, or it belongs to somebody else."""


class TooLargeError(DphmmError):
    """An exact search was refused because it would not end in reasonable time."""


class MissingExtraError(DphmmError, ImportError):
    """An optional part of dphmm is not installed; the message names the extra."""


class CollapsedAnswersWarning(UserWarning):
    """The lattice step gives several states with different answers the same point."""


class UnknownLawWarning(UserWarning):
    """A table of answers does not say which law they follow."""


def expect(value: object, kind: type, argument: str) -> None:
    """Refuse an argument of another type, which would only fail later and further in.

    Args:
        value: What was given.
        kind: The class that it must be an instance of.
        argument: What the message calls it.
    """
    if not isinstance(value, kind) or (kind in (Iterable, Sized) and _is_one(value)):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise ArgumentError(
            f"{argument} must be {article} {kind.__name__}, got {type(value).__name__}"
        )


def _is_one(value: object) -> bool:
    """Whether it is an array of no dimensions, which is a sequence by its type alone."""
    return getattr(value, "shape", None) == ()


def expect_function(value: object, argument: str) -> None:
    """Refuse what cannot be called.

    Args:
        value: What was given.
        argument: What the message calls it.
    """
    if not callable(value):
        raise ArgumentError(f"{argument} must be a function, got {type(value).__name__}")


def expect_each(values: Iterable[Any], kind: type, argument: str) -> list[Any]:
    """A list of the values, if they are several and each is of a type.

    Args:
        values: What was given.
        kind: The class that each must be an instance of.
        argument: What the message calls them.
    """
    if not isinstance(values, Iterable) or _is_one(values):
        raise ArgumentError(f"{argument} must be a sequence, got {type(values).__name__}")
    listed = list(values)
    for value in listed:
        expect(value, kind, f"each of {argument}")
    return listed


def expect_one_of(value: object, options: Sequence[str], argument: str) -> None:
    """Refuse a word that is none of the options.

    Args:
        value: What was given.
        options: The words that will do, two or more.
        argument: What the message calls it.
    """
    if not isinstance(value, str) or value not in options:
        known = f"{', '.join(options[:-1])} or {options[-1]}"
        raise ArgumentError(f"{argument} must be {known}, got {value!r}")


def check_text(text: str, argument: str) -> str:
    """The text, if it can be written to a file.

    Args:
        text: What was given.
        argument: What the message calls it.
    """
    expect(text, str, argument)
    try:
        if b"\0" not in text.encode():
            return text
    except UnicodeEncodeError:  # half of a character
        pass
    raise ArgumentError(f"{argument} must be text that can be written, got other characters")


def check_name(name: str, argument: str) -> str:
    """The name of a person or a question, if it can be stored, printed and told from others.

    Cells of a file are read without the blanks around them, so a name has none at its ends:
    " ann" would be somebody else than "ann" by another route. An accented letter may be written
    as one character or as two that print alike, so only Unicode's form NFC, the one, is a name.

    Args:
        name: What was given.
        argument: What the message calls it.
    """
    fits = isinstance(name, str) and 0 < len(name) <= LONGEST_NAME
    if not fits or not name.isprintable() or name != name.strip():
        raise ArgumentError(
            f"{argument} must be 1 to {LONGEST_NAME} printable characters, none of them a blank "
            f"at either end"
        )
    if "\N{REPLACEMENT CHARACTER}" in name:
        # Two names that were read wrongly would be one person.
        raise ArgumentError(f"{argument} must be UTF-8, got letters that were lost on the way")
    if not is_normalized("NFC", name):
        raise ArgumentError(
            f"{argument} must be in Unicode's form NFC, got letters that are written in parts"
        )
    return name


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module, or say in one sentence which extra has it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{module.partition('.')[0]} is not installed; run: pip install 'dphmm[{extra}]'"
        ) from error
