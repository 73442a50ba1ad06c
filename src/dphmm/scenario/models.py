"""Model files: a chain, where it came from, and nothing that runs when it is read.

The file is a numpy archive without pickles. Its member `header` is JSON in UTF-8: `format`
(2), `n_states`, `source` (a sentence), `zeros` ("guesses" or "facts"), `anywhere` (for each
model the probability that a step goes anywhere; 0 where zeros are facts), `step` (how long a
step is, as clocks write it: "300 s", or a number), and `schedule` if the transitions change with
time: whose turn it is, repeated for ever, or the `by`, `seconds` and `zone` of a calendar. Model k
has the members `data_k`, `indices_k` and `indptr_k` of a compressed sparse row matrix, and
`density_k` where steps that go anywhere do not go to every place alike.

Files of format 3 have besides, where the chain remembers, the members `current` (the place of each
state) and `fresh` (for each place the state of somebody without a past), and where a step is
several of the matrices' steps, `every` in the header. Format 2 is written where it is enough.
Files of format 1 know no `anywhere`: their zeros are facts.
"""

from __future__ import annotations

import io
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from dphmm.chain.calendar import Calendar
from dphmm.chain.chains import TimeVaryingModel
from dphmm.chain.markov import Chain, MarkovModel
from dphmm.chain.memory import MemoryModel
from dphmm.errors import ArgumentError, DataError
from dphmm.tables.files import write_whole

__all__ = ["PUBLIC_SOURCE", "LearnedModel", "model_bytes", "read_model", "write_model"]

FORMAT = 3

PUBLIC_SOURCE = "raw counts, treated as public"


@dataclass(frozen=True, eq=False)
class LearnedModel:
    """A chain, the sentence that says where it came from, and how long a step is."""

    model: Chain
    source: str
    step: str | None = None
    """As clocks write it; None if nobody said."""


def write_model(path: str | Path, model: Chain, source: str, step: str | None = None) -> None:
    """Write a model file, whole or not at all."""
    write_whole(path, model_bytes(model, source, step))


def model_bytes(model: Chain, source: str, step: str | None = None) -> bytes:
    """What a model file holds; the same for the same model."""
    models, schedule = _parts(model.base)
    header: dict[str, Any] = {"format": 2, "n_states": model.n_states, "source": source}
    anywhere = [part.anywhere for part in models]
    header |= {"zeros": "guesses" if all(anywhere) else "facts", "anywhere": anywhere}
    if step is not None:
        header["step"] = step
    if schedule is not None:
        header["schedule"] = schedule
    if isinstance(schedule, dict) or model.steps > 1 or model.memory is not None:
        header["format"] = FORMAT
    if model.steps > 1:
        header["every"] = model.steps
    arrays: dict[str, Any] = {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
    if model.memory is not None:
        arrays |= {"current": model.memory.current, "fresh": model.memory.fresh}
    for number, part in enumerate(models):
        matrix = part.transition
        arrays[f"data_{number}"] = matrix.data
        arrays[f"indices_{number}"] = matrix.indices.astype(np.int64)
        arrays[f"indptr_{number}"] = matrix.indptr.astype(np.int64)
        density = part.place_density if isinstance(part, MemoryModel) else part.density
        if part.anywhere and np.ptp(density):
            arrays[f"density_{number}"] = density
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def read_model(path: str | Path) -> LearnedModel:
    """The chain of a model file, the same to the last bit, and its source."""
    name = Path(path).name
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            header = json.loads(arrays["header"].tobytes())
            if header["format"] not in (1, 2, FORMAT):
                raise DataError(f"{name}: model must be of format {FORMAT}, got a newer one")
            schedule: Any = header.get("schedule")
            if isinstance(schedule, dict):
                schedule = Calendar(schedule["by"], schedule["seconds"], schedule["zone"])
            count = 1
            if schedule is not None:
                count = len(schedule) if isinstance(schedule, Calendar) else max(schedule) + 1
            shares = [0.0] * count if header["format"] == 1 else header["anywhere"]
            models = [
                _matrix(arrays, number, header["n_states"], shares[number])
                for number in range(count)
            ]
        model: Chain = models[0] if schedule is None else TimeVaryingModel(models, schedule)
        if "every" in header:
            model = model.every(header["every"])
        return LearnedModel(model, str(header["source"]), header.get("step"))
    except OSError as fault:
        raise DataError(f"{name}: file must be readable, got: {fault.strerror or fault}") from None
    except (DataError, MemoryError):
        raise
    except Exception:  # whatever zip, numpy and JSON make of another file, or of half of one
        raise DataError(f"{name}: file must be a model that dphmm wrote, got another") from None


def _matrix(arrays: Any, number: int, n_states: int, anywhere: float) -> MarkovModel:
    data, indices, indptr = (arrays[f"{part}_{number}"] for part in ("data", "indices", "indptr"))
    _check_rows(data, indices, indptr, n_states)
    matrix = sparse.csr_array((data, indices, indptr), shape=(n_states, n_states))
    density = arrays.get(f"density_{number}", None)
    if "current" in arrays:
        places = arrays["current"], arrays["fresh"]
        return MemoryModel(matrix, *places, anywhere=anywhere, density=density)
    return MarkovModel(matrix, anywhere=anywhere, density=density)


def _check_rows(data: Any, indices: Any, indptr: Any, n_states: int) -> None:
    """Refuse rows that lie outside of the arrays: scipy would read and write there."""
    kinds = "".join(array.dtype.kind for array in (data, indices, indptr))
    is_flat = all(array.ndim == 1 for array in (data, indices, indptr))
    if kinds != "fii" or not is_flat or len(indptr) != n_states + 1:
        raise ValueError
    # Compared, not subtracted: a difference may wrap around.
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise ValueError
    if not indptr[-1] == len(indices) == len(data):
        raise ValueError
    if indices.size and not 0 <= indices.min() <= indices.max() < n_states:
        raise ValueError


def _parts(model: Chain) -> tuple[tuple[MarkovModel, ...], list[int] | dict[str, Any] | None]:
    """The matrices of a chain, and which of them governs the step into each time."""
    if isinstance(model, TimeVaryingModel):
        schedule = model.schedule
        named = asdict(schedule) if isinstance(schedule, Calendar) else list(schedule)
        return model.models, named
    if isinstance(model, MarkovModel):
        return (model,), None
    raise ArgumentError(f"model must be a plain or time-varying chain, got {model!r}")
