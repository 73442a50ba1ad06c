"""Ten clients, a hundred people, and servers that are struck at random moments."""

from __future__ import annotations

import http.client
import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

from dphmm.books import SCOPES, Store, create_key, find_problems
from tests.crash import paper_scenario

ROOT = Path(__file__).resolve().parents[2]
CLIENTS, PEOPLE, STATES = 10, 100, 6
LONGEST_LIFE = 0.3
EARLY = 10
"""Every tenth kill may come while the server is still starting."""
NEWCOMERS = 20
"""After so many kills a new hundred people come: the budgets of those before run out."""
PATIENCE = 60.0
FORKING = "from tests.crash.forking import main; main()"


@dataclass
class Seen:
    """What the clients saw."""

    answers: list[tuple[str, int, tuple[int, ...], str]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    refused: list[tuple[str, int]] = field(default_factory=list)
    kills: int = 0
    strikes: Counter[str] = field(default_factory=Counter)
    retried: int = 0
    repeated: int = 0
    erased: Counter[str] = field(default_factory=Counter)

    def counts(self) -> str:
        """For those who run the full form: `pytest -rP` shows it."""
        return (
            f"{dict(self.strikes)}: {len(self.answers)} answers, {self.repeated} repeated, "
            f"{self.retried} asked again, {len(self.refused)} refused by a budget, "
            f"{sum(self.erased.values())} erased"
        )

    def violations(self, url: str, anchor: str | None = None) -> list[str]:
        """Everything that must never happen, one sentence each."""
        store = Store.open(url, create=False, anchor=anchor)
        found = [*self.errors, *find_problems(store), *self._said_twice(store)]
        with store.database.transaction(write=False) as transaction:
            kept = transaction.rows(
                "SELECT people.name, a.time, a.lattice, a.epsilon FROM answers a "
                "JOIN people ON people.id = a.person"
            )
        store.close()
        stored = {(name, moment): (tuple(json.loads(x)), price) for name, moment, x, price in kept}
        if len(stored) != len(kept):
            found.append("a moment has two answers")
        for person, moment, lattice, epsilon in self.answers:
            if person in self.erased:
                continue
            answer, price = stored.get((person, moment), (None, None))
            if answer != lattice:
                found.append(f"{person} at {moment}: a client saw an answer that is not kept")
            if price != epsilon:
                found.append(f"{person} at {moment}: a client saw an answer that is not paid")
        return found

    def _said_twice(self, store: Store) -> list[str]:
        """What shows from outside, also of people whose answers were erased."""
        said: dict[tuple[str, int], set[tuple[int, ...]]] = {}
        paid: dict[str, Fraction] = {}
        for person, moment, lattice, epsilon in self.answers:
            if (person, moment) not in said:
                paid[person] = paid.get(person, Fraction(0)) + Fraction(epsilon)
            said.setdefault((person, moment), set()).add(lattice)
        found = [f"{who}: clients saw two answers" for who, seen in said.items() if len(seen) > 1]
        people = store.people(client="red")
        for person, price in paid.items():
            ledger = store.ledger(person, client="red") if person in people else None
            if ledger is not None and ledger.spent < price:
                found.append(f"{person}: {price} was paid, the ledger has {ledger.spent}")
        return found


Strike: TypeAlias = Callable[[int], AbstractContextManager[None]]
"""Trouble around a server, given by its process, for as long as the context is open."""


@contextmanager
def full_disk(server: int) -> Iterator[None]:
    """No file of the server grows beyond its first page: so a full disk looks to SQLite."""
    endless = resource.RLIM_INFINITY
    with suppress(ProcessLookupError):  # it has ended, or was killed on the full disk
        resource.prlimit(server, resource.RLIMIT_FSIZE, (4096, endless))
    yield
    with suppress(ProcessLookupError):
        resource.prlimit(server, resource.RLIMIT_FSIZE, (endless, endless))


@contextmanager
def read_only(server: int) -> Iterator[None]:
    """The server's SQLite store can only be read; see `forking`."""
    with suppress(ProcessLookupError):
        os.kill(server, signal.SIGUSR1)
    yield
    with suppress(ProcessLookupError):
        os.kill(server, signal.SIGUSR1)


class Killing:
    """A store, a process that forks servers, and clients.

    The servers are killed; where there are strikes, those come by turns with it, and every other
    one hits a server that is killed while it lasts.
    """

    def __init__(
        self,
        url: str,
        seed: int,
        *,
        late: bool = False,
        budget: str | None = None,
        anchor: str | None = None,
        erasing: float = 0,
        servers: int = 1,
        strikes: Sequence[Strike] = (),
    ) -> None:
        self._random = random.Random(seed)
        self._servers, self._strikes = servers, (None, *strikes)
        self._budget, self._erasing = budget, erasing
        self.url = url
        store = Store.open(url, anchor=anchor)
        self._key = create_key(store, "red", SCOPES)
        store.close()
        command = [sys.executable, "-c", FORKING, url, *(["late"] if late else [])]
        command += [] if anchor is None else [f"anchor={anchor}"]
        self._forking = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        )
        self._port = int(self._said())
        self._times: Counter[str] = Counter()
        self._known: list[str] = []
        self._guard = threading.Lock()
        self._over = threading.Event()
        self._seen = Seen()

    def run(self, kills: int) -> Seen:
        """Let the clients release while the server is killed this many times."""
        servers: list[int] = []
        try:
            servers += [self._fork() for _ in range(self._servers)]
            scenario = self._ask_until("POST", "/v1/scenarios", paper_scenario.body())["id"]
            self._people = f"/v1/scenarios/{scenario}/people/"
            self._welcome()
            clients = [
                threading.Thread(target=self._client, args=(self._random.random(),))
                for _ in range(CLIENTS)
            ]
            for client in clients:
                client.start()
            for number in range(kills):
                if number and number % NEWCOMERS == 0:
                    self._welcome()
                if number % EARLY:
                    self._wait_for_answers()
                time.sleep(self._random.uniform(0, LONGEST_LIFE))
                place = self._random.randrange(self._servers)
                servers[place] = self._hit(number, servers[place])
                self._seen.kills += 1
            self._wait_for_answers()
            self._over.set()
            for client in clients:
                client.join(PATIENCE)
        finally:
            self._over.set()
            for server in servers:
                self._kill(server)
            self._forking.stdin.close()
            self._forking.wait(30)
            self._forking.stdout.close()
        return self._seen

    def _welcome(self) -> None:
        """Make a new hundred people known, and let the clients ask about them."""
        given = {} if self._budget is None else {"budget": self._budget}
        first = len(self._known)
        names = [f"p{person}" for person in range(first, first + PEOPLE)]
        for person in names:
            self._ask_until("PUT", f"{self._people}{person}", given)
        self._known += names

    def _hit(self, number: int, server: int) -> int:
        """Strike a server; gives the one that is there afterwards."""
        turn, which = divmod(number, len(self._strikes))
        strike = self._strikes[which]
        self._seen.strikes["kill" if strike is None else strike.__name__] += 1
        if strike is None:
            self._kill(server)
            return self._fork()
        with strike(server):
            time.sleep(self._random.uniform(0, LONGEST_LIFE))
            if turn % 2:
                self._kill(server)
        # One that was just starting ends where the database is away; it is started again.
        return server if Path(f"/proc/{server}").exists() else self._fork()

    def _wait_for_answers(self) -> None:
        before, end = len(self._seen.answers), time.monotonic() + PATIENCE
        while len(self._seen.answers) == before:
            if time.monotonic() > end:
                self._seen.errors.append(f"no answer for {PATIENCE:g} seconds")
                break
            time.sleep(0.005)

    def _said(self) -> str:
        return self._forking.stdout.readline().strip()

    def _fork(self) -> int:
        self._forking.stdin.write("\n")
        self._forking.stdin.flush()
        return int(self._said())

    def _kill(self, server: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)
        while Path(f"/proc/{server}").exists():
            time.sleep(0.001)

    def _client(self, seed: float) -> None:
        choose = random.Random(seed)
        connection = None
        while not self._over.is_set():
            person = choose.choice(self._known[-PEOPLE:])
            if choose.random() < self._erasing:
                self._erase(person)
                continue
            with self._guard:
                moment = self._times[person] + 1
            body = {"time": moment, "state": choose.randrange(STATES)}
            asked, end = 0, time.monotonic() + PATIENCE
            answer = None
            while answer is None and time.monotonic() < end:
                asked += 1
                connection, answer = self._ask(
                    connection, "POST", f"{self._people}{person}/releases", body
                )
                # A person moves on while the client retries; the answer must not.
                body["state"] = choose.randrange(STATES)
                if answer is None and self._over.is_set():
                    break
            if answer is None and self._over.is_set():
                break
            with self._guard:
                self._record(person, moment, answer, asked)
        if connection is not None:
            connection.close()

    def _record(
        self, person: str, moment: int, answer: tuple[int, dict] | None, asked: int
    ) -> None:
        if answer is not None and answer[0] == 404 and self._erasing:
            return  # erased, and not made known again yet
        if self._budget is not None and answer is not None and answer[0] in (409, 422):
            # Refused by the budget; or late, because another client was, and went on.
            self._times[person] = max(self._times[person], moment)
            self._seen.refused += [(person, moment)] if answer[0] == 409 else []
            return
        if answer is None or answer[0] != 200:
            self._seen.errors.append(f"{person} at {moment}: the client got {answer}")
            return
        content = answer[1]
        self._times[person] = max(self._times[person], moment)
        self._seen.answers.append((person, moment, tuple(content["lattice"]), content["epsilon"]))
        self._seen.repeated += content["repeated"]
        self._seen.retried += asked > 1

    def _erase(self, person: str) -> None:
        """Somebody leaves and comes back."""
        with self._guard:
            self._seen.erased[person] += 1
        self._ask_until("DELETE", f"/v1/people/{person}", {}, fine=404)
        self._ask_until("PUT", f"{self._people}{person}", {})

    def _ask_until(self, method: str, path: str, body: dict, fine: int = 200) -> dict:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            connection, answer = self._ask(None, method, path, body)
            if connection is not None:
                connection.close()
            if answer is not None and (answer[0] < 300 or answer[0] == fine):
                return answer[1]
        raise TimeoutError(f"{method} {path}: {answer}")

    def _ask(self, connection, method: str, path: str, body: dict):
        """The connection to use next, and the answer; None if there was none or a 503."""
        connection = connection or http.client.HTTPConnection("127.0.0.1", self._port, timeout=20)
        headers = {"authorization": f"Bearer {self._key}", "content-type": "application/json"}
        try:
            connection.request(method, path, json.dumps(body), headers)
            response = connection.getresponse()
            status, content = response.status, json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError):
            connection.close()
            return None, None
        if status == 503:
            return connection, None
        return connection, (status, content)
