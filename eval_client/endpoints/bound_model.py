"""An attempt's model, where its endpoint has several servers."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from pydantic import JsonValue

from eval_client.endpoints.replicas import MOVING, SUSPECT, Binding, Replica, ReplicaModel, Replicas
from proctor.environment import AgentStopped, AgentUnavailable
from proctor.llm.endpoint import DENIALS, AgentUnauthorized
from proctor.llm.model import Completion
from proctor.llm.outage import EndpointDown, paid_by
from proctor.types import Message, Tool, Usage

log = logging.getLogger(__name__)
KILLED = 2
"""A request that was in flight at so many replicas as they went down may be what kills them."""


class BoundModel(Binding):
    """An attempt's model: bound to one replica at its first call, and to another one where that one goes down.

    `prefers` is the URL of the replica that answered the trial last.
    """

    def __init__(self, replicas: Replicas, agent: str, prefers: str | None = None) -> None:
        super().__init__(agent, prefers)
        self._replicas = replicas
        self._lost = Usage()
        """What the requests of the call under way that were taken back are estimated to have cost."""

    async def __call__(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        metadata: Mapping[str, str],
        sampling: Mapping[str, JsonValue] | None = None,
    ) -> Completion:
        """The answer of a replica. Raises AgentUnavailable where the call may be what takes servers down."""
        self.denied, self._lost = set(), Usage()
        try:
            completion = await self._answer(lambda model: model(messages, tools, metadata, sampling))
        except (AgentStopped, AgentUnavailable, EndpointDown, asyncio.CancelledError) as failed:
            vars(failed)["paid"] = self._lost.plus(paid_by(failed) or Usage())
            raise
        return completion._replace(usage=completion.usage.plus(self._lost))

    async def _answer(self, ask: Callable[[ReplicaModel], Awaitable[Completion]]) -> Completion:
        falls = 0
        while True:
            replica = self.replica
            if replica is None or not replica.serves(self.agent):
                self._leaves(SUSPECT if falls >= KILLED else self.rank if replica is None else MOVING)
                replica = await self._replicas.place(self)
            began = self._replicas.clock()
            try:
                completion = await self._asked(replica, ask(self._replicas.model(self.agent, replica)))
            except Fallen:
                since = replica.outage.since
                falls += since is not None and since >= began
                if falls >= max(KILLED + 1, self._replicas.endpoint.max_tries):
                    raise AgentUnavailable(f"{replica.outage.cause} ({falls} servers went down with it)") from None
            except AgentUnauthorized as refused:
                self._is_refused(replica, refused)
            else:
                return self._is_answered(replica, completion)

    async def _asked(self, replica: Replica, call: Awaitable[Completion]) -> Completion:
        """The answer of a call. Raises Fallen once its replica is down."""
        scope = asyncio.timeout(None)
        try:
            async with scope:
                replica.calls[self] = scope, self._replicas.clock()
                try:
                    return await call
                finally:
                    del replica.calls[self]
        except TimeoutError as timeout:
            if not scope.expired():
                raise
            if timeout.__cause__ is not None and (paid := paid_by(timeout.__cause__)) is not None:
                self._lost = self._lost.plus(paid)
            raise Fallen from None

    def _is_answered(self, replica: Replica, completion: Completion) -> Completion:
        replica.answered(self.agent, self._replicas.clock())
        self._replicas.whole.answered()
        if self._replicas.alone is self:
            self._replicas.alone = None
            self._replicas.serve()
        self.rank = MOVING
        return completion._replace(replica=replica.url)

    def _is_refused(self, replica: Replica, refused: AgentUnauthorized) -> None:
        """Go on elsewhere; raises AgentUnauthorized where no replica takes the agent."""
        self.refused = str(refused)
        self.denied.add(replica)
        before = replica.denials[self.agent]
        replica.denials[self.agent] = DENIALS if replica.answered_at > float("-inf") else before + 1
        if before < DENIALS <= replica.denials[self.agent]:
            log.warning("replica %s takes no request of agent %s: %s", replica.url, self.agent, refused)
            self._replicas.refresh()
        others = [one for one in self._replicas.all.values() if not one.gone and one.ready and one not in self.denied]
        if not any(one.denials[self.agent] < DENIALS for one in others):
            raise refused
        self._leaves(MOVING)

    def _leaves(self, rank: int) -> None:
        self.rank = rank
        self._replicas.leave(self)

    def leave(self) -> None:
        """Free the place at the attempt's end."""
        self._replicas.leave(self)


class Fallen(Exception):
    """The replica of a call went down."""
