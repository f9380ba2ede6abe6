"""What happened in a history, told as it happens, and every invariant (design, section 5) that it broke."""

import contextlib
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import sqlalchemy as sa
from pydantic_core import from_json

from eval_client.store.journal import Operation
from eval_client.store.tables import attempt_table, turn_table
from tests.simulation.endpoint import is_probe
from tests.simulation.game import DRIFT, SALTS
from tests.simulation.loop import Process, State
from tests.simulation.network import Reply, Request
from tests.simulation.setting import Setting

Key = tuple[str, str, str, str, str]
"""Of a model call: agent, task, sample, epoch, turn."""


class Ledger:
    """The witness of one history."""

    def __init__(self, rng: random.Random, setting: Setting) -> None:
        self._rng, self._capacity, self._slow_step = rng, setting.capacity, setting.slow_step
        self._attempts = setting.plan.limits.attempts
        self._punctual = setting.weather.slow == setting.weather.doubled == 0.0
        """No message arrives long after it was sent, so none can begin a session that is forgotten already."""
        self.problems: list[str] = []
        self.live: dict[tuple[Process, str], str] = {}
        """(worker, session) -> task, of the plays that hold a slot."""
        self.finals: dict[int, list[float | None]] = {}
        self.written: Counter[str] = Counter()
        self.leaving: set[Process] = set()
        """Clients that were told to end, or were fenced: what they receive may be wasted."""
        self._trial_of: dict[str, tuple[int, int]] = {}
        self._session: dict[int, str] = {}
        self._played: Counter[int] = Counter()
        self._texts: dict[str, dict[Process, list[str]]] = {}
        """session -> worker -> what it observed; a message that comes twice can begin a session at two workers."""
        self._kept: dict[tuple[int, int], list[str]] = {}
        self._over: set[tuple[Process, str]] = set()
        self._answered_at: dict[str, Process] = {}
        self._journal: dict[tuple[int, int, int], str] = {}
        self._begun: Counter[tuple[Process, int]] = Counter()
        """(client, trial) -> its attempts, of which the first got further than all before."""
        self._paid: dict[Key, Process] = {}
        self._keys: dict[Key, bool] = {}
        self._asking: list[tuple[Process, str]] = []
        """(client, limit) of the model calls under way, twice each: by endpoint and by agent."""
        self._ceilings = {f"endpoint {entry.name}": entry.concurrency for entry in setting.plan.endpoints}
        self._ceilings |= {f"agent {entry.name}": setting.plan.concurrency_of(entry) for entry in setting.plan.agents}
        self.trace: Callable[[str], None] = lambda _: None
        self.writer: Callable[[], Process]
        self.key_of: Callable[[int, int], Key]

    def problem(self, text: str) -> None:
        """An invariant is broken."""
        self.problems.append(text)
        self.trace(f"BROKEN {text}")

    def began(self, worker: Process, session: str, task: str) -> None:
        self.trace(f"{worker.name} plays {session[:6]}")
        held = [w for w, s in self.live if s == session and (w, s) not in self._over]
        elsewhere = [other.name for other in held if other.state is State.RUNS]
        if elsewhere and self._punctual:
            self.problem(f"I5 session {session} begins at {worker.name} while it is played at {elsewhere}")
        self._texts.setdefault(session, {})[worker] = []
        self.live[worker, session] = task
        if sum(w is worker and t == task for (w, _), t in self.live.items()) > self._capacity:
            self.problem(f"I3 {worker.name} plays more sessions of {task} than it has slots")

    def plays(self, session: str) -> int:
        trial, _ = self._trial_of[session]
        self._played[trial] += 1
        return min(self._played[trial], SALTS) - 1

    def observed(self, worker: Process, session: str, text: str) -> None:
        self._texts[session][worker].append(text)

    def over(self, worker: Process, session: str) -> None:
        self._over.add((worker, session))
        if self._answered_at.get(session) is worker:
            del self._answered_at[session]

    def ended(self, worker: Process, session: str, task: str) -> None:
        self.live.pop((worker, session), None)
        self._over.discard((worker, session))

    def died(self, process: Process) -> None:
        """A process is gone, and what it held with it."""
        self.live = {held: task for held, task in self.live.items() if held[0] is not process}

    def applied(self, worker: Process, session: str, turn: int, answer: str) -> None:
        self.trace(f"{worker.name} {session[:6]} turn {turn}")
        before = self._answered_at.get(session, worker)
        self._answered_at[session] = worker
        if before is not worker and before.state is State.RUNS:
            self.problem(f"I5 session {session} goes on at {worker.name} while it is played at {before.name}")
        trial, journal = self._trial_of[session]
        journalled = self._journal.get((trial, journal, turn))
        if journalled != answer:
            self.problem(f"I5 trial {trial} turn {turn} of {session}: applied {answer}, journalled {journalled}")

    def work_s(self) -> float:
        draw = self._rng.random()
        return self._rng.uniform(15, 45) if draw < self._slow_step else 0.05 * draw

    @contextlib.contextmanager
    def asking(self, client: Process, request: Request) -> Iterator[None]:
        if not request.url.path.endswith("/chat/completions"):
            yield
            return
        asked = from_json(request.content)
        if is_probe(asked):
            yield
            return
        mine = [(client, f"endpoint {request.url.host}"), (client, f"agent {asked['model']}")]
        self._asking += mine
        for _, limit in mine:
            self._check_ceiling(limit)
        try:
            yield
        finally:
            for one in mine:
                self._asking.remove(one)

    def _check_ceiling(self, limit: str) -> None:
        askers = [client for client, of in self._asking if of == limit and not self._is_out(client)]
        if len(askers) > self._ceilings[limit]:
            names = sorted(client.name for client in askers)
            self.problem(f"LIMIT {limit}: {len(askers)} calls at once, by {names}, of {self._ceilings[limit]}")

    def _is_out(self, client: Process) -> bool:
        """Whether others may do what this client does: it is dead, on its way out, or taken over."""
        return client.state is State.DEAD or client in self.leaving

    def received(self, client: Process, request: Request, reply: Reply) -> None:
        """A client holds a model's whole answer: from now on it is paid for."""
        if not request.url.path.endswith("/chat/completions") or reply.status != 200:
            return
        asked = from_json(request.content)
        if not reply.body.startswith(b'{"choices": [{'):
            return
        if is_probe(asked):
            return
        meta = asked["metadata"]
        key = (asked["model"], meta["task"], meta["sample"], meta["epoch"], meta["turn"])
        before = self._paid.get(key)
        self._paid[key] = client
        if client in self.leaving or meta["sample"] == DRIFT:
            return  # it asked before it could know, or has to ask again
        if self._keys.get(key):
            self.problem(f"I2 {client.name} paid again for a journalled answer: {key}")
        elif before is not None and not self._is_out(before):
            self.problem(f"I2 {client.name} paid again for an answer that {before.name} holds: {key}")

    def wrote(self, operations: Sequence[Operation]) -> None:
        """These rows are durable."""
        for statement, row in operations:
            table = statement.table if isinstance(statement, sa.Insert) else None
            if table is attempt_table:
                self._wrote_attempt(row)
            elif table is turn_table:
                self._wrote_turn(row)
            elif "b_score" in row:
                self._wrote_final(row)

    def _wrote_attempt(self, row: dict[str, object]) -> None:
        trial, client = int(str(row["trial"])), self.writer()
        self.trace(f"{client.name} begins {trial} as {row['number']}")
        self._trial_of[str(row["session"])] = (trial, int(str(row["journal"])))
        self._session[trial] = str(row["session"])
        self._begun[client, trial] += 1
        self.written["attempts"] += 1
        if self._begun[client, trial] > self._attempts + 1:  # one whose start got no answer does not count
            self.problem(f"I4 trial {trial}: more than {self._attempts} attempts by {client.name} that got no further")
        if self.scored(trial):
            self.problem(f"I1 trial {trial} is begun again although it is scored")
        if row["journal"] != 0 and self.key_of(trial, 0)[2] != DRIFT:
            self.problem(f"I6 trial {trial}: the journal was thrown away although everything repeats itself")

    def _wrote_turn(self, row: dict[str, object]) -> None:
        trial, journal, turn = (int(str(row[name])) for name in ("trial", "journal", "turn"))
        self.trace(f"journal {trial} turn {turn}")
        self.written["turns"] += 1
        attempt = (self.writer(), trial)
        self._begun[attempt] = min(self._begun[attempt], 1)  # none, where it goes on with another client's
        reply = from_json(str(row["reply"]))
        self._journal[trial, journal, turn] = reply["action"]["content"] if reply["kind"] == "action" else ""
        self._keys[self.key_of(trial, turn)] = True
        said = from_json(str(row["observation"]))["messages"][0]["content"]
        self._kept.setdefault((trial, journal), []).append(said)

    def _wrote_final(self, row: dict[str, object]) -> None:
        trial, score = int(str(row["b_id"])), row["b_score"]
        self.trace(f"final {trial} {row['b_reason']} {score} {row['b_cause']}")
        if self.scored(trial):
            self.problem(f"I1 trial {trial}: a final row after its score")
        session = self._session.get(trial, "")
        if score is not None and self._kept.get(self._trial_of[session]) not in self._texts[session].values():
            self.problem(f"I6 trial {trial}: the journal is not what the session {session} observed")
        self.finals.setdefault(trial, []).append(score if isinstance(score, float) else None)

    def scored(self, trial: int) -> bool:
        """Whether a score of the trial is durable."""
        return any(score is not None for score in self.finals.get(trial, ()))
