"""Watches a run's task server: follows its capacities, renews session leases, gives up tasks that stay away."""

import asyncio

from eval_client.core.events import TaskLost, TaskSlots
from eval_client.run.context import RunContext
from eval_client.run.reporters import DemandReport
from proctor.event_loop import clock
from task_server.wire.errors import SessionTaken, TaskServerError, Unauthorized
from task_server.wire.messages import LONG_POLL_S, SESSION_LEASE_S, TaskCapacity, TaskList

CHECK_S = 0.5
REFUSES = "the task server refuses the token"
RENEW_S = 4.0
"""Two renewals may fail before this client counts as silent, and another one may take its sessions."""


class TaskWatcher:
    """Three loops beside a runner. `patience_s` is how long a task may be unavailable before it is given up."""

    def __init__(self, context: RunContext, demand: DemandReport, patience_s: float) -> None:
        self._context, self._client = context, context.client
        self._demand, self._patience_s = demand, patience_s
        self._begun = clock()
        self._nothing_since: dict[str, float] = {}
        self._reasons: dict[str, str] = {}

    async def run(self) -> None:
        """Run the loops until cancelled."""
        await asyncio.gather(self._follow_capacities(), self._renew_leases(), self._give_up_tasks())

    async def _follow_capacities(self) -> None:
        version: str | None = None
        while True:
            try:
                listed = await self._client.tasks(
                    version, LONG_POLL_S / 2, client=self._demand.client, wants=self._demand.text()
                )
            except TaskServerError as error:
                version = None
                what = REFUSES if isinstance(error, Unauthorized) else "the task server does not answer"
                for name in self._context.digests:
                    self._limit(name, 0, f"{what}: {error}", 0)
                await asyncio.sleep(CHECK_S)
            else:
                version = listed.version
                self._apply(listed)

    def _apply(self, listed: TaskList) -> None:
        for name, expected in self._context.digests.items():
            task = listed.find(name, expected)
            if task is None:
                self._limit(name, 0, "no worker holds this task", 0)
            elif task.digest not in (None, expected):
                self._limit(name, 0, _other_digest(expected, str(task.digest)), 0)
            elif task.waiting is None:
                self._limit(name, self._ours(task), None, task.total)
            else:
                self._limit(name, 0, task.waiting, 0)

    def _ours(self, task: TaskCapacity) -> int:
        """How many slots of a task this run may use: those it uses and those that are free.

        At first all slots count. Those in use may belong to sessions of this run's previous client, until this client
        takes the sessions over or their leases expire.
        """
        if clock() - self._begun < SESSION_LEASE_S:
            return task.total
        return min(task.total, self._context.schedule.under_way(task.name) + task.free)

    def _wait_for_server(self) -> None:
        """Start nothing while the task server answers nobody. Raises ServerAway."""
        outage, runner = self._client.outage, self._context.runner
        if outage.since is None:
            return
        if runner.schedule.stopped is None:  # else the trials under way end first, by the same patience
            outage.check()
        self._nothing_since.clear()
        for name in self._context.digests:
            runner.handle(TaskSlots(name, 0, 0, str(outage)))

    def _limit(self, task: str, capacity: int, waiting: str | None, total: int) -> None:
        if capacity > 0 or waiting is None:
            self._nothing_since.pop(task, None)
        else:
            self._nothing_since.setdefault(task, clock())
            self._reasons[task] = waiting or "no slot"
        self._context.runner.handle(TaskSlots(task, capacity, total, waiting))

    async def _renew_leases(self) -> None:
        """Renew all leases, and tell the task server that this client plays. Raises SessionTaken."""
        while True:
            sessions: dict[str, list[str]] = {"": [], **self._context.player.sessions()}
            yields = self._context.progress.trouble is not None
            renewals = (self._renew(url, held, yields) for url, held in sessions.items())
            await asyncio.gather(asyncio.sleep(RENEW_S), *renewals)

    async def _renew(self, url: str, sessions: list[str], yields: bool) -> None:
        try:
            async with asyncio.timeout(RENEW_S):
                await self._client.renew(url or None, sessions, yields=yields)
        except SessionTaken:
            raise
        except (TaskServerError, TimeoutError):
            pass  # the next turn of each session fails, and is classified there

    async def _give_up_tasks(self) -> None:
        while True:
            await asyncio.sleep(CHECK_S)
            now = clock()
            self._wait_for_server()
            nothing = {
                task: (since, self._reasons[task], self._patience_s) for task, since in self._nothing_since.items()
            }
            for task, (since, reason, patience_s) in (self._context.services.waiting() | nothing).items():
                if now - since > patience_s and not self._context.schedule.under_way(task):
                    cause = f"waited {patience_s:g} s for task {task}: {reason}"
                    self._context.runner.handle(TaskLost(task, cause, refused=reason.startswith(REFUSES)))
            self._context.services.probe(now)


def _other_digest(expected: str, found: str) -> str:
    return (
        f"its data, prompts or settings changed since the run began (digest {expected[:12]} -> {found[:12]}); "
        "restore them at its workers, or start a new run"
    )
