"""Model files: a chain, where it came from, and nothing that runs when it is read.

The file is a numpy archive without pickles. Its member `header` is JSON in UTF-8: `format`
(2), `n_states`, `source` (a sentence), `zeros` ("guesses" or "facts"), `anywhere` (for each
model the probability that a step goes anywhere; 0 where zeros are facts), and `schedule` if
the transitions change with time. Model k has the members `data_k`, `indices_k` and `indptr_k`
of a compressed sparse row matrix, and `density_k` where steps that go anywhere do not go
everywhere alike. Files of format 1 know no `anywhere`: their zeros are facts.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from scipy import sparse

from dphmm.chain.chains import TimeVaryingModel
from dphmm.chain.markov import Chain, MarkovModel
from dphmm.chain.pairs import SecondOrderModel
from dphmm.errors import ArgumentError, DataError
from dphmm.tables.files import write_whole

__all__ = ["PUBLIC_SOURCE", "LearnedModel", "read_model", "write_model"]

FORMAT = 2
BROKEN = (
    *(ArithmeticError, AttributeError, BadZipFile, EOFError, LookupError),
    *(TypeError, ValueError),
)
"""What reading another file, or half of one, can raise."""

PUBLIC_SOURCE = "raw counts, treated as public"


@dataclass(frozen=True, eq=False)
class LearnedModel:
    """A chain and the sentence that says where it came from."""

    model: Chain
    source: str


def write_model(path: str | Path, model: Chain, source: str) -> None:
    """Write a model file, whole or not at all."""
    models, schedule = _parts(model)
    header = {"format": FORMAT, "n_states": model.n_states, "source": source}
    anywhere = [part.anywhere for part in models]
    header |= {"zeros": "guesses" if all(anywhere) else "facts", "anywhere": anywhere}
    if schedule is not None:
        header["schedule"] = schedule
    arrays: dict[str, Any] = {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
    for number, part in enumerate(models):
        matrix = part.transition
        arrays[f"data_{number}"] = matrix.data
        arrays[f"indices_{number}"] = matrix.indices.astype(np.int64)
        arrays[f"indptr_{number}"] = matrix.indptr.astype(np.int64)
        if part.anywhere and np.ptp(part.density):
            arrays[f"density_{number}"] = part.density
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_whole(path, buffer.getvalue())


def read_model(path: str | Path) -> LearnedModel:
    """The chain of a model file, the same to the last bit, and its source."""
    name = Path(path).name
    try:
        with np.load(path, allow_pickle=False) as arrays:
            header = json.loads(arrays["header"].tobytes())
            if header["format"] not in (1, FORMAT):
                raise DataError(f"{name}: model must be of format {FORMAT}, got a newer one")
            schedule = header.get("schedule")
            count = 1 if schedule is None else max(schedule) + 1
            shares = [0.0] * count if header["format"] == 1 else header["anywhere"]
            models = [
                _matrix(arrays, number, header["n_states"], shares[number])
                for number in range(count)
            ]
        model = models[0] if schedule is None else TimeVaryingModel(models, schedule)
        return LearnedModel(model, str(header["source"]))
    except OSError as fault:
        raise DataError(f"{name}: file must be readable, got: {fault.strerror or fault}") from None
    except DataError:
        raise
    except BROKEN:
        raise DataError(f"{name}: file must be a model that dphmm wrote, got another") from None


def _matrix(arrays: Any, number: int, n_states: int, anywhere: float) -> MarkovModel:
    data, indices, indptr = (arrays[f"{part}_{number}"] for part in ("data", "indices", "indptr"))
    if len(indptr) != n_states + 1 or (
        indices.size and not 0 <= indices.min() <= indices.max() < n_states
    ):
        raise ValueError
    matrix = sparse.csr_array((data, indices, indptr), shape=(n_states, n_states))
    density = arrays.get(f"density_{number}", None)
    return MarkovModel(matrix, anywhere=anywhere, density=density)


def _parts(model: Chain) -> tuple[tuple[MarkovModel, ...], list[int] | None]:
    """The matrices of a chain, and which of them governs the step into each time."""
    if isinstance(model, TimeVaryingModel):
        if callable(model._schedule):
            raise ArgumentError("model must have a schedule that is a list, got a function")
        return model.models, list(model._schedule)
    if isinstance(model, MarkovModel) and not isinstance(model, SecondOrderModel):
        return (model,), None
    raise ArgumentError(f"model must be a plain or time-varying chain, got {model!r}")
