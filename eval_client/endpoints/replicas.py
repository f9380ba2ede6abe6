"""One model behind several servers: which replica a trial asks, and where it goes on when that one is down."""

import asyncio
import bisect
import itertools
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Protocol

from pydantic import JsonValue

from eval_client.core.limits.pool import Quota
from eval_client.core.limits.throttle import EndpointLimit
from eval_client.plan.entries import Endpoint
from proctor import event_loop
from proctor.llm.endpoint import DENIALS, AgentUnauthorized
from proctor.llm.model import Completion
from proctor.llm.outage import PATIENCE_S, Outage
from proctor.session.time_limit import Untimed
from proctor.types import Message, Tool

log = logging.getLogger(__name__)
LOOK_S = 0.5
"""How often a call that waits for a place looks whether it may wait on."""
MOVING, NEW, SUSPECT = 0, 1, 2
"""Who gets the next free place: trials whose replica is gone, then new ones, then those that may kill a server."""


class ReplicaModel(Protocol):
    """An agent's model at one replica, behind the limits there."""

    async def __call__(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        metadata: Mapping[str, str],
        sampling: Mapping[str, JsonValue] | None = None,
    ) -> Completion: ...


@dataclass(eq=False)
class Replica:
    """One of the servers of an endpoint. Times are monotonic."""

    key: str
    """Its name among the limits of all endpoints."""
    url: str
    limit: EndpointLimit
    outage: Outage
    grant: int | None = None
    """Trials at once that other runs leave to this client; None until that is known."""
    ready: bool = True
    """Whether it was seen to serve the model; one that joins during the run is asked first."""
    gone: bool = False
    """Whether the plan or the file names it no more."""
    answered_at: float = float("-inf")
    bound: set["Binding"] = field(default_factory=set)
    """The trials whose transcripts are in its cache."""
    calls: dict["Binding", tuple[asyncio.Timeout, float]] = field(default_factory=dict)
    """The calls under way: how each is called back, and when it began."""
    denials: Counter[str] = field(default_factory=Counter)
    """agent -> how often its key, model or URL was refused in a row"""

    @property
    def up(self) -> bool:
        """Whether it takes requests."""
        return self.ready and not self.gone and not self.outage.down

    @property
    def room(self) -> int:
        """Trials at once."""
        return min(self.limit.capacity, self.grant or 0)

    @property
    def free(self) -> int:
        """Trials that it could take now; negative where its limit has shrunk."""
        return self.room - len(self.bound)

    def serves(self, agent: str) -> bool:
        """Whether it takes requests of an agent."""
        return self.up and self.denials[agent] < DENIALS

    def answered(self, agent: str, now: float) -> None:
        """Record an answer."""
        self.answered_at = now
        self.denials.pop(agent, None)


@dataclass(eq=False)
class Binding:
    """The place of a trial's attempt at one of the replicas."""

    agent: str
    prefers: str | None = None
    """The URL of the replica that answered the trial last."""
    replica: Replica | None = None
    """None before the first call, and where it has left one."""
    rank: int = NEW
    refused: str = ""
    """How the agent was refused last."""
    denied: set[Replica] = field(default_factory=set)
    """The replicas that refused the call under way."""


class Replicas:
    """The replicas of one endpoint, and the trials at each.

    `model` is an agent's model at a replica; `changed` is called when the endpoint's capacity has changed.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: Callable[[str, Replica], ReplicaModel],
        changed: Callable[[], None],
        clock: Callable[[], float] = event_loop.clock,
    ) -> None:
        self.endpoint, self.model, self.clock = endpoint, model, clock
        self.all: dict[str, Replica] = {}
        """URL -> replica"""
        self.whole = Outage(endpoint.patience_s, clock=clock)
        """Whether all of them are down."""
        self._changed = changed
        self._waiting: list[tuple[int, int, Binding, asyncio.Future[Replica]]] = []
        """The calls that wait for a place, the next one first."""
        self._numbers = itertools.count()
        self.alone: Binding | None = None
        """The trial that is asked alone, as it may kill a server."""

    def add(self, url: str, key: str, limit: EndpointLimit, *, ready: bool) -> Replica:
        """Use another replica, once it is `ready`."""
        outage = Outage(self.endpoint.patience_s or PATIENCE_S, lambda: self.look(replica), clock=self.clock)
        replica = self.all[url] = Replica(key, url, limit, outage, ready=ready)
        return replica

    @property
    def capacity(self) -> int:
        """Trials at once, over the replicas that are up."""
        return sum(replica.room for replica in self.all.values() if replica.up)

    @property
    def granted(self) -> int:
        """Trials at once that other runs leave to this client."""
        return sum(replica.grant or 0 for replica in self.all.values())

    def quota(self, key: str, whole: Quota) -> Quota:
        """What this client holds and wants of one replica, by what it wants of all."""
        up = [replica for replica in self.all.values() if replica.up]
        replica = next(one for one in self.all.values() if one.key == key)
        bound, part = len(replica.bound), ceil(whole.wanted / max(1, len(up)))
        return Quota(held=max(bound, replica.grant or 0), wanted=max(bound, part if replica.up else 0))

    def look(self, replica: Replica) -> None:
        """Act on a replica that went down, came back, came or was taken out: calls at one that is down go elsewhere."""
        if replica.outage.down:
            log.warning("replica %s of endpoint %s is down: %s", replica.url, self.endpoint.name, replica.outage.cause)
            now = asyncio.get_running_loop().time()
            for scope, _ in replica.calls.values():
                scope.reschedule(now)
        self.refresh()

    def refresh(self) -> None:
        """Record whether any replica is up, and give free places to calls that wait."""
        down, before = not any(one.up for one in self.all.values()), self.whole.down
        if down and not before:
            failed = [one.outage for one in self.all.values() if one.outage.since is not None]
            self.whole.since = min((one.since for one in failed if one.since is not None), default=self.clock())
            self.whole.cause = failed[-1].cause if failed else "no replica is there"
        if not down:
            self.whole.since = None
        self.whole.down = down
        self.serve()
        self._changed()

    def release(self) -> None:
        """Let no call wait for servers that are down any more."""
        for outage in (self.whole, *(replica.outage for replica in self.all.values())):
            outage.release()

    async def place(self, binding: "Binding") -> Replica:
        """Bind a trial to a replica, once one has a place. Raises EndpointDown, AgentUnauthorized, AgentRefused."""
        waiting: asyncio.Future[Replica] = asyncio.get_running_loop().create_future()
        bisect.insort(self._waiting, (binding.rank, next(self._numbers), binding, waiting))
        self.serve()
        try:
            if not waiting.done():
                with Untimed():
                    await self._until_placed(binding, waiting)
            return waiting.result()
        except BaseException:
            self.leave(binding)
            raise
        finally:
            self._waiting = [each for each in self._waiting if each[2] is not binding]

    async def _until_placed(self, binding: "Binding", waiting: asyncio.Future[Replica]) -> None:
        while not waiting.done():
            here = [replica for replica in self.all.values() if replica.up]
            if here and not any(replica.serves(binding.agent) for replica in here):
                raise AgentUnauthorized(binding.refused)
            if self.whole.since is not None:
                self.whole.check_patience(self.whole.since, self.whole.cause)
            await asyncio.wait({waiting}, timeout=LOOK_S)

    def serve(self) -> None:
        """Give the free places to the calls that wait, in turn."""
        while (found := self._next()) is not None:
            binding, waiting, replica = found
            self._waiting = [each for each in self._waiting if each[2] is not binding]
            replica.bound.add(binding)
            binding.replica = replica
            self.alone = binding if binding.rank == SUSPECT else self.alone
            waiting.set_result(replica)

    def _next(self) -> "tuple[Binding, asyncio.Future[Replica], Replica] | None":
        for rank, _, binding, waiting in self._waiting:
            if not waiting.done() and (replica := self._best(binding, alone=rank == SUSPECT)) is not None:
                return binding, waiting, replica
        return None

    def _best(self, binding: "Binding", *, alone: bool) -> Replica | None:
        """The replica with the largest free share: at one that fails nothing is put while others have a place."""
        if alone and self.alone is not None:
            return None
        free = [
            one for one in self.all.values() if one.free > 0 and one.serves(binding.agent) and one not in binding.denied
        ]
        if binding.prefers is not None:
            free = [one for one in free if one.url == binding.prefers] or free
        if alone:
            return min(free, key=lambda one: len(one.bound), default=None)
        return min(
            free, key=lambda one: (one.outage.since is not None, -one.free / one.room, len(one.bound)), default=None
        )

    def leave(self, binding: "Binding") -> None:
        """Free a trial's place."""
        if binding.replica is not None:
            binding.replica.bound.discard(binding)
            binding.replica = None
        if self.alone is binding:
            self.alone = None
        self.serve()
