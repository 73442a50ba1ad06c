"""One partition's rows through the engine: people wait in a window and are answered together.

Nothing here knows Spark. The rows hold true states; what comes out is public.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import require
from dphmm.noise.randomness import KeyedRandomness
from dphmm.release import engine
from dphmm.release.admission import Verdict
from dphmm.release.engine import Answered, Ask
from dphmm.scenario.scenario import Scenario
from dphmm.spark.folder import FolderBook, Person, Tables, read_people
from dphmm.spark.workers import terms_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Partition"]

ROWS = 2**16
"""Rows of a window; somebody with more goes through several."""

PEOPLE = 4096
ROOM = 2**26
"""People of a window, and bytes for their beliefs."""


class Partition:
    """The rows of one partition, in order of person and time, as answers and standings.

    Args:
        scenario: What the answers follow.
        randomness: Keyed noise: a task that Spark runs twice must say the same thing twice.
        client: Whose people they are, in a service.
        used: The fingerprint of the key that the continued run used.
    """

    def __init__(
        self,
        scenario: Scenario,
        randomness: KeyedRandomness,
        client: str = "",
        used: str | None = None,
    ) -> None:
        self._terms = terms_of(scenario)
        self._randomness = randomness
        self._client = client
        self._tables = Tables(scenario, client)
        self._book = FolderBook(used)
        self._last: dict[str, int] = {}
        """The latest true state of the person whose rows may go on in the next window. Secret."""
        self._most = max(16, min(PEOPLE, ROOM // (8 * scenario.model.n_states)))

    def answer(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Answers and standings, in whatever order they are ready."""
        window: list[pa.RecordBatch] = []
        rows = people = 0
        for piece, several in self._cut(batches):
            window.append(piece)
            rows, people = rows + len(piece), people + several
            if rows >= ROWS or people >= self._most:
                yield from self._flush(window)
                window, rows, people = [], 0, 0
        if window:
            yield from self._flush(window)
        yield from self._leave()

    def _cut(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Parts of each batch that hold no more people than a window, and how many they hold."""
        pc: Any = require("pyarrow.compute", "spark")
        for batch in batches:
            if not batch.num_rows:
                continue
            ends = pc.run_end_encode(batch["person"]).run_ends.to_numpy()
            first = 0
            for done in range(0, len(ends), self._most):
                some = ends[done : done + self._most]
                yield batch.slice(first, some[-1] - first), len(some)
                first = some[-1]

    def _flush(self, window: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pa, pc = require("pyarrow", "spark"), require("pyarrow.compute", "spark")
        rows = pa.Table.from_batches(window)
        if "standing" in rows.column_names:
            before = pc.is_valid(rows["standing"])
            read_people(self._book, rows.filter(before))
            rows = rows.filter(pc.invert(before))
        if len(rows):
            slots, states = (np.asarray(rows[name], dtype=np.int64) for name in ("slot", "state"))
            people = rows["person"].to_pylist()
            ask = Ask(self._terms, people, slots, states, client=self._client, last=self._last)
            self._last = {people[-1]: int(states[-1])}
            (answered,) = engine.release(self._book, [ask], self._randomness)
            self._count(ask, answered)
            for answers in self._book.drawn:
                yield self._tables.answers(answers)
            self._book.drawn = []
        # The last person's rows may go on in the next window.
        yield from self._leave(staying=window[-1]["person"][-1].as_py())

    def _count(self, ask: Ask, answered: Answered) -> None:
        """Count the rows that are left out; a refusal stops the run."""
        for row in np.flatnonzero(answered.verdicts > Verdict.NEW).tolist():
            if answered.verdicts[row] > Verdict.LATE:
                raise answered.faults[row]
            name = ask.people[row]
            person = self._book.people.setdefault(name, Person())
            if person.find_standing() is None:
                person.move(self._terms.begin(self._client, name, int(ask.times[row])))
            person.repeated += int(answered.verdicts[row] == Verdict.REPEATED)
            person.late += int(answered.verdicts[row] == Verdict.LATE)

    def _leave(self, staying: str | None = None) -> Iterator[pa.RecordBatch]:
        """Write where people stand and forget them, all but one."""
        names = [name for name in self._book.people if name != staying]
        people = [(name, self._book.people.pop(name)) for name in names]
        if people:
            yield self._tables.standings(people, self._randomness.fingerprint)
