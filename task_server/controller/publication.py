"""The list of tasks, published to the clients that follow it: encoded once for all, and the rarer the more they are."""

import asyncio
import math
import secrets
from collections.abc import Callable

from task_server.changes import Changes
from task_server.controller.placement import Placement
from task_server.heartbeat import BATCH_S
from task_server.wire.messages import TaskList, TasksQuery

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

    async def answer(self, query: TasksQuery) -> TaskList:
        """The list as it is now without `after`; else the published one, once it is not what the client has."""
        if query.after is None:
            self.changed()
            return TaskList(version=self._listed.version, tasks=self._placement.capacities())
        if query.after == self._listed.version:
            self._waiting += 1
            try:
                await self._changes.wait(self._changes.count, query.wait_s)
            finally:
                self._waiting -= 1
            if self._changes.closed:
                await asyncio.sleep(min(BATCH_S, query.wait_s))
        return self._listed

    def changed(self) -> None:
        """Publish what has changed in the placement, if anything has, together with what changes until then."""
        unpublished = self._placement.changed or self._placement.capacities() is not self._capacities
        if unpublished and self._next is None:
            pause_s = pause_before(self._answered, self._now() - self._published_at)
            self._next = asyncio.get_running_loop().call_later(pause_s, self._publish)

    def close(self) -> None:
        """Answer all clients that wait; the list changes no more."""
        self._changes.close()

    def _publish(self) -> None:
        self._next = None
        capacities = self._placement.capacities()
        if capacities is not self._capacities:
            self._capacities, self._published_at, self._answered = capacities, self._now(), self._waiting
            self._changes.notify()
            self._listed = self._list()

    def _list(self) -> TaskList:
        return TaskList(version=f"{self._boot}-{self._changes.count}", tasks=self._capacities)


def pause_before(answered: int, passed_s: float) -> float:
    """Pure: how long a change waits for others, given the answers to the last publication and the time since."""
    return max(BATCH_S, answered / MAX_ANSWERS_PER_S - passed_s)
