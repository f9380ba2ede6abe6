"""Watches the replicas of an endpoint beside a run: asks those that are down or silent, and reads who is there."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from eval_client.endpoints.replicas import Replica, Replicas
from eval_client.plan.entries import Endpoint
from proctor.environment import AgentStopped
from proctor.http.client import HttpFailure
from proctor.llm.config import ReplicaEntry
from proctor.llm.outage import FIRST_WAIT_S, LONGEST_WAIT_S, Failed, answers
from proctor.llm.outcome import Outcome
from proctor.llm.servers import ReplicasFile, replicas_of_file

log = logging.getLogger(__name__)
LOOK_S = 0.5
"""How often replicas and file are looked at."""
SILENT_S = 60.0
"""Requests out for so long at a replica, none answered there while others answer: it may hang."""
PROBE_S = 30.0
"""Longest wait for one token."""
PROBES = 2
"""So many requests for one token that stay silent: the replica hangs."""

Ask = Callable[[Replica, str | None], Awaitable[object | Failed]]
"""Asks a replica for one token, as this agent does or any."""
Look = Callable[[Replica], Awaitable[str | None]]
"""What keeps a new replica from being used, or None; raises HttpFailure while it does not answer."""


class ReplicaWatch:
    """A loop beside a runner. `join` makes a replica that is not ready yet; `look` says whether it serves the model."""

    def __init__(self, replicas: Replicas, ask: Ask, look: Look, join: Callable[[ReplicaEntry], Replica]) -> None:
        self._replicas, self._ask, self._look, self._join = replicas, ask, look, join
        self._tasks: dict[Replica, asyncio.Task[None]] = {}
        self._file = replicas.endpoint.replicas_file and ReplicasFile(replicas.endpoint.replicas_file)
        self._told: set[str] = set()
        self._checked: dict[Replica, float] = {}
        """When a silent replica was last found to be only slow."""

    async def run(self) -> None:
        """Run until cancelled."""
        try:
            while True:
                self._read_file()
                for replica in list(self._replicas.all.values()):
                    self._watch(replica)
                await asyncio.sleep(LOOK_S)
        finally:
            for task in self._tasks.values():
                task.cancel()

    def _watch(self, replica: Replica) -> None:
        """Start what a replica needs, if it is not under way."""
        task = self._tasks.get(replica)
        if replica.gone or (task is not None and not task.done()):
            return
        if task is not None and not task.cancelled() and (error := task.exception()) is not None:
            raise error
        if not replica.ready:
            self._tasks[replica] = asyncio.create_task(self._until_ready(replica))
        elif replica.outage.down or replica.denials:
            self._tasks[replica] = asyncio.create_task(self._until_back(replica))
        elif self._is_silent(replica):
            self._tasks[replica] = asyncio.create_task(self._until_sure(replica))

    async def _until_back(self, replica: Replica) -> None:
        """Ask a replica that is down, or refuses an agent, until it answers: 1, 2, 4, ... 30 s apart."""
        wait_s = FIRST_WAIT_S
        while replica.outage.down or replica.denials:
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)
            agent = next(iter(replica.denials), None)
            if await self._answers(replica, agent):
                replica.denials.pop(agent or "", None)
                replica.answered_at = self._replicas.clock()
                was_down = replica.outage.down
                replica.outage.answered()
                if was_down:
                    log.warning("replica %s answers again", replica.url)
                self._replicas.refresh()

    async def _until_sure(self, replica: Replica) -> None:
        """Find out whether a silent replica hangs or is only slow."""
        began = self._replicas.clock()
        for _ in range(PROBES):
            if await self._answers(replica):
                self._checked[replica] = self._replicas.clock()
                return
        if replica.answered_at < began and await self._another_answers(replica, began):
            silent_s = self._replicas.clock() - self._silent_since(replica)
            why = f"it takes requests and answered none for {silent_s:.0f} s, nor one for one token"
            replica.outage.failed(why, surely=True)

    async def _answers(self, replica: Replica, agent: str | None = None) -> bool:
        """Whether a replica answers a request for one token in time."""
        try:
            async with asyncio.timeout(PROBE_S):
                reply = await self._ask(replica, agent)
        except TimeoutError:
            return False
        except AgentStopped:
            return True
        return answers(reply) and not (isinstance(reply, Failed) and reply.outcome is Outcome.UNAUTHORIZED)

    def _is_silent(self, replica: Replica) -> bool:
        since = self._silent_since(replica)
        others = [other for other in self._replicas.all.values() if other is not replica and other.up]
        works = any(other.answered_at > since or not other.calls for other in others)
        return self._replicas.clock() - since >= SILENT_S and works

    def _silent_since(self, replica: Replica) -> float:
        """Since when no request at a replica was answered, with requests out there; now where none is."""
        first = min((began for _, began in replica.calls.values()), default=self._replicas.clock())
        return max(first, replica.answered_at, self._checked.get(replica, float("-inf")))

    async def _another_answers(self, replica: Replica, since: float) -> bool:
        """Whether another replica has answered, or does where none has anything to do."""
        others = [other for other in self._replicas.all.values() if other is not replica and other.up]
        if any(other.answered_at > since for other in others):
            return True
        idle = next((other for other in others if not other.calls), None)
        return idle is not None and await self._answers(idle)

    async def _until_ready(self, replica: Replica) -> None:
        """Use a new replica once it lists the plan's model; leave one out that serves another."""
        wait_s = FIRST_WAIT_S
        while not replica.gone:
            try:
                problem = await self._look(replica)
            except HttpFailure:
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, LONGEST_WAIT_S)
                continue
            if problem is None:
                log.warning("replica %s joins endpoint %s", replica.url, self._replicas.endpoint.name)
                replica.ready = True
            else:
                log.warning("replica %s is left out: %s", replica.url, problem)
                replica.gone = True
            self._replicas.refresh()
            return

    def _read_file(self) -> None:
        """Read the file again where it has changed."""
        endpoint = self._replicas.endpoint
        if not self._file or (news := self._file.news()) is None:
            return
        urls, problems = news
        for problem in [problem for problem in problems if problem not in self._told]:
            log.warning("endpoint %s: %s", endpoint.name, problem)
        self._told = set(problems)
        known = {url: replica for url, replica in self._replicas.all.items() if not replica.gone}
        for url in known.keys() - urls:
            log.warning("replica %s of endpoint %s was removed", url, endpoint.name)
            known[url].gone = True
        for url in [url for url in urls if url not in known]:
            self._join(ReplicaEntry(base_url=url))
        self._replicas.refresh()


def rooms(endpoint: Endpoint) -> list[int]:
    """Trials at once at each server of an endpoint, as far as its servers are known."""
    if endpoint.replicas_file is not None:
        return [endpoint.concurrency] * len(replicas_of_file(endpoint.replicas_file)[0])
    return [endpoint.at(replica).concurrency for replica in endpoint.replicas()] or [endpoint.concurrency]
