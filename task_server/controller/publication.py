"""The list of tasks, published to the clients that follow it: encoded once for all, and the rarer the more they are."""

import asyncio
import math
import secrets
from collections.abc import Callable

from task_server.controller.placement import Placement
from task_server.heartbeat import BATCH_S, Changes
from task_server.shares import Holder, holder_of
from task_server.wire.messages import NOBODY, Sender, TaskList, TasksQuery

MAX_VERSION = 200
MAX_ANSWERS_PER_S = 100
"""To more clients, the next answer to all comes later; to up to 10 it comes after BATCH_S."""


class Publication:
    """Answers `GET /tasks`."""

    def __init__(self, placement: Placement, now: Callable[[], float]) -> None:
        self._placement, self._now = placement, now
        self._changes = Changes()
        self._boot = secrets.token_hex(8)
        self._capacities = placement.capacities()
        self._listed = self._list()
        self._next: asyncio.TimerHandle | None = None
        self._published_at = -math.inf
        self._waiting = self._answered = 0
        """Requests that wait for the next publication, and those that waited for the last one."""
        self._offers_changed = False

    async def answer(self, query: TasksQuery, sender: Sender = NOBODY) -> TaskList:
        """The list as it is now without `after`; else the published one, once it is not what the client has.

        Its free slots are those that the sender may take.
        """
        shares, holder = self._placement.shares, holder_of(sender)
        if query.after is None:
            self.changed()
            capacities = self._placement.capacities()
            shares.offer(capacities, self._now())
            return TaskList(version=self._listed.version, tasks=shares.seen_by(holder, capacities))
        until = self._now() + query.wait_s
        while self._for(holder).version == query.after and (left_s := until - self._now()) > 0:
            self._waiting += 1
            try:
                await self._changes.wait(self._changes.count, left_s)
            finally:
                self._waiting -= 1
            if self._changes.closed:
                await asyncio.sleep(min(BATCH_S, query.wait_s))
                break
        return self._for(holder)

    def _for(self, holder: Holder) -> TaskList:
        """The published list as a run sees it; the same object for all that may take every free slot."""
        seen = self._placement.shares.seen_by(holder, self._capacities)
        if seen is self._capacities:
            return self._listed
        free = ".".join(str(each.free) for each in seen)
        return TaskList(version=f"{self._listed.version}-{free}"[:MAX_VERSION], tasks=seen)

    def changed(self) -> None:
        """Publish what has changed in the placement, if anything has, together with what changes until then."""
        unpublished = self._placement.changed or self._placement.capacities() is not self._capacities
        if self._placement.shares.offer(self._placement.capacities(), self._now()):
            self._offers_changed = unpublished = True
        if unpublished and self._next is None:
            pause_s = pause_before(self._answered, self._now() - self._published_at)
            self._next = asyncio.get_running_loop().call_later(pause_s, self._publish)

    def close(self) -> None:
        """Answer all clients that wait; the list changes no more."""
        self._changes.close()

    def _publish(self) -> None:
        self._next = None
        capacities = self._placement.capacities()
        if capacities is not self._capacities or self._offers_changed:
            self._offers_changed = False
            self._capacities, self._published_at, self._answered = capacities, self._now(), self._waiting
            self._changes.notify()
            self._listed = self._list()

    def _list(self) -> TaskList:
        return TaskList(version=f"{self._boot}-{self._changes.count}", tasks=self._capacities)


def pause_before(answered: int, passed_s: float) -> float:
    """Pure: how long a change waits for others, given the answers to the last publication and the time since."""
    return max(BATCH_S, answered / MAX_ANSWERS_PER_S - passed_s)
