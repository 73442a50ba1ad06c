"""What a client reads: answers and scenarios as JSON, and what was wrong with a body."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError

from dphmm.errors import BudgetError, DphmmError, NotFoundError, StoreError
from dphmm.release.engine import Answered
from dphmm.release.said import Release
from dphmm.scenario import Scenario
from dphmm.service.access import RefusedError

__all__ = [
    "UNREACHABLE",
    "Json",
    "Released",
    "check_names",
    "invalid",
    "invalid_body",
    "problem_of",
    "read_body",
    "released",
    "show_release",
    "show_scenario",
    "too_many",
]

UNREACHABLE = "the store cannot be used now; nothing was lost, ask again with the same time"

Json: TypeAlias = dict[str, Any]
Model = TypeVar("Model", bound=BaseModel)


def show_scenario(digest: str, scenario: Scenario) -> Json:
    """What a scenario is called and what it costs."""
    settings = scenario.settings
    return {
        "id": digest,
        "name": scenario.name,
        "states": len(scenario.states),
        "dimension": scenario.query.dimension,
        "epsilon": str(settings.epsilon),
        "limit": None if settings.limit is None else str(settings.limit),
        "speaks": settings.speaks,
    }


@dataclass(frozen=True)
class Released:
    """An answer as the client reads it, and what is counted of it."""

    shown: Json
    price: Fraction | None
    """None where nothing was said."""


def released(scenario: Scenario, answered: Answered) -> Released:
    """The answer to the only row of an ask, or its refusal raised."""
    release, repeated = answered.release(0), answered.repeated > 0
    price = None if release.silent and not answered.filled else release.epsilon + answered.filled
    return Released(show_release(scenario, release, repeated), price)


def problem_of(fault: DphmmError) -> tuple[int, Json]:
    """The status and the body for what went wrong; hosts and paths are nobody's business."""
    if isinstance(fault, RefusedError):
        more = {} if fault.where is None else {"where": list(fault.where)}
        return fault.status, {"problem": fault.message, **more}
    if isinstance(fault, NotFoundError):
        return 404, {"problem": "there is no such thing, or it is not yours"}
    if isinstance(fault, BudgetError):
        facts = {"window": fault.window, "slot": fault.opens, "time": fault.when}
        return 409, {
            "problem": str(fault),
            "spent": str(fault.spent),
            "requested": str(fault.requested),
            "remaining": str(fault.remaining),
            **{name: fact for name, fact in facts.items() if fact is not None},
        }
    if isinstance(fault, StoreError):
        return 503, {"problem": UNREACHABLE}
    return 422, {"problem": str(fault)}


def read_body(kind: type[Model], content: bytes, *at: int | str) -> Model:
    """A body, or where it is wrong; the input, which may hold a true state, is not repeated."""
    check_names(content)
    try:
        return kind.model_validate_json(content)
    except ValidationError as fault:
        raise invalid_body(fault, *at) from None


def check_names(content: bytes) -> None:
    """Refuse JSON with a name twice in one object: two readers of it would not read the same."""
    with suppress(ValueError, RecursionError):  # it is no JSON, which whoever reads it will say
        json.loads(content, object_pairs_hook=_check_once)


def _check_once(pairs: list[tuple[str, object]]) -> None:
    if len({name for name, _ in pairs}) < len(pairs):
        raise RefusedError(422, "the body must have each name once, got one twice")


def invalid_body(fault: ValidationError, *at: int | str) -> RefusedError:
    """What to say of the first thing that is wrong with a body, or with a part `at` a place."""
    first = fault.errors(include_input=False, include_context=False)[0]
    return invalid(["body", *at, *first["loc"]], first["msg"])


def too_many(most: int) -> RefusedError:
    """What to say of rows that are none, or more than a request may have."""
    return RefusedError(422, f"rows must be 1 to {most}, got none or more")


def invalid(location: Iterable[int | str], message: str) -> RefusedError:
    """What to say of a field that is not what the page says."""
    where = [str(part) for part in location]
    if "state" in where:
        text = "state must be a number or label of a state, or two finite coordinates"
        return RefusedError(422, text, where=["body", "state"])
    return RefusedError(422, f"{' '.join(where)}: {message}", where=where)


def show_release(scenario: Scenario, release: Release, repeated: bool) -> Json:
    """An answer as the client reads it; null where nothing was said."""
    said = [release.estimate] if release.silent else [release.estimate, release.answer]
    estimate, *answer = scenario.in_places(said).tolist()
    return {
        "time": scenario.settings.clock.time_of(release.time),
        "slot": release.time,
        "silent": release.silent,
        "answer": answer[0] if answer else None,
        "lattice": [int(number) for number in release.lattice] if answer else None,
        "estimate": estimate,
        "epsilon": str(release.epsilon),
        "statement": release.statement,
        "repeated": repeated,
    }
