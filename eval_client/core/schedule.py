"""Pure: the state machine of a run, events in, instructions out.

The maximum flow decides which trials start; every event that frees capacity asks it again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eval_client.core import Pair, events
from eval_client.core.capacity import Backlog, CapacityLimits
from eval_client.core.events import AttemptEnded, AttemptOutcome, Event, Instruction, Job
from eval_client.core.limits.pool import Quota
from eval_client.core.progress import ErrorLimit, Progress, RunResult
from eval_client.core.spend import SpendLimit
from proctor.retry import RetryPolicy
from proctor.types import FinishReason

_SERVICE = RetryPolicy(base_s=1.0, cap_s=5.0)
"""When a trial that found its service away is played again."""
PUT_BACK_S = 1.0
"""A trial that was put back, mostly because another client took its slot, waits this long."""
GIVEN_UP = 2_000
"""Trials that are given up at once."""


@dataclass(slots=True)
class _Attempts:
    """The attempts that this client has made at a trial."""

    made: int = 0
    """Since the journal last grew: a trial that gets further is not what kills its worker."""
    turns: int = 0
    """Turns in the journal when an attempt last ended."""
    lost_worker: bool = False
    """Whether the last attempt lost its worker."""
    away: int = 0
    """How many attempts in a row found a service away."""
    unstarted: bool = False
    """Whether an attempt lost a session that never answered, since the journal last grew."""


class Schedule:
    """Decides what becomes of a run's trials. Whoever uses it carries its instructions out in order.

    What is public is for reading only.
    """

    def __init__(
        self,
        limits: CapacityLimits,
        progress: Progress,
        *,
        attempts: int,
        error_limit: ErrorLimit | None = None,
    ) -> None:
        self.limits, self.progress = limits, progress
        self._error_limit = error_limit
        self.flow = limits.flow
        self.backlog = Backlog(self.flow)
        self.abandoned = False
        self.stopped: str | None = None
        """Why no more trials start; None while they do."""
        self.refused: dict[Pair, str] = {}
        """pair -> why the agent's endpoint refuses it"""
        self._task_slots: dict[str, events.TaskSlots] = {}
        self._service_slots: dict[str, events.ServiceSlots] = {}
        self._policy = RetryPolicy(max_tries=attempts, base_s=1.0)
        self._attempts: dict[int, _Attempts] = {}
        """Trials that go on after an attempt."""
        self._busy = 0
        """Trials that are played or given up."""
        self._pausing = 0
        """Trials that wait for another attempt."""
        self._giving_up = 0
        self._taken = False
        self._spend_limit: SpendLimit | None = None
        self._down: frozenset[str] = frozenset()
        self._out: list[Instruction] = []

    def handle(self, event: Event) -> Sequence[Instruction]:  # noqa: PLR0912  one case for each event, none nested
        """What to do now that this has happened."""
        self._out = []
        match event:
            case AttemptEnded():
                self._attempt_ended(event)
                return self._out  # its slots are not free yet
            case events.SlotFreed(job):
                self._busy -= 1
                self.progress.running[job.pair] -= 1
                self.flow.release(job.pair)
            case events.RetryDue(job):
                self._pausing -= 1
                self.backlog.add_again(job)
            case events.GaveUp():
                self._busy -= 1
                self._giving_up -= 1
            case events.TaskSlots(task):
                self._task_slots[task] = event
                self._limit_task(task)
            case events.ServiceSlots(task):
                self._service_slots[task] = event
                self._limit_task(task)
            case events.EndpointsChanged(capacities, down):
                self._down = down
                self.limits.limit_endpoints(capacities)
            case events.QuotasGranted(grants):
                self.limits.grant(grants)
            case events.TrialsTaken(trials):
                self._taken = True
                self.backlog.add(trials)
            case events.TaskLost(task, cause, refused=True):
                self._refuse([pair for pair in self.limits.pairs if pair[1] == task], cause)
            case events.TaskLost(task, cause):
                self._give_up(task, cause)
            case events.Abandon(why):
                self.abandoned = True
                self._drain(why)
            case events.Drain(why):
                self._drain(why)
        self._pump()
        return self._out

    def unstarted(self) -> dict[Pair, int]:
        """pair -> trials that wait to be started"""
        return self.backlog.waiting()

    def quota(self, endpoint: str) -> Quota:
        """What the run holds and wants of an endpoint."""
        return self.limits.quota(endpoint, self.backlog.waiting())

    def under_way(self, task: str) -> int:
        """How many trials of a task are being played."""
        return sum(count for (_, of), count in self.progress.running.items() if of == task)

    def held_up(self, endpoint: str | None = None) -> int:
        """How many trials of this client wait for an endpoint that is down: for this one, or for any."""
        down = self._down if endpoint is None else self._down & {endpoint}
        if not down:
            return 0
        counts = [*self.unstarted().items(), *self.progress.running.items()]
        return sum(count for (agent, _), count in counts if self.flow.endpoint_of[agent] in down)

    @property
    def quiet(self) -> bool:
        """Whether no trial is played, and none waits."""
        return not (self._busy or self._pausing) and self.backlog.empty

    def result(self) -> RunResult:
        """How the run ended."""
        return RunResult(self.stopped, self.refused, self.abandoned, self._spend_limit)

    def _pump(self) -> None:
        """Start the trials that can start, and end the run when none is left or too many are unscored."""
        if self.stopped is None and self._error_limit is not None and not self.quiet:
            why = self._error_limit.reached(self.progress, self.held_up())
            if why is not None:
                self._drain(why)
        if self.stopped is None:
            self._start(self.flow.start())
        if self.abandoned or (not self._busy and (self.stopped is not None or (self._taken and self.quiet))):
            self._out.append(events.RunFinished())

    def _start(self, pairs: Iterable[Pair]) -> None:
        for pair in pairs:
            job = self.backlog.next(pair)
            attempts = self._attempts.get(job.trial, _Attempts())
            self._busy += 1
            self.progress.running[pair] = self.progress.running.get(pair, 0) + 1
            self._out.append(events.Start(job, attempts.lost_worker, attempts.made == self._policy.max_tries - 1))

    def _limit_task(self, task: str) -> None:
        """Apply what is known of a task's server and of the services of its environment."""
        slots = self._task_slots.get(task, events.TaskSlots(task, 0, 0))
        service = self._service_slots.get(task, events.ServiceSlots(task))
        ours = slots.ours if service.most is None else min(slots.ours, service.most)
        self.limits.limit_task(task, ours, slots.total)
        waits_for = slots.waits_for or service.waits_for
        if waits_for is None:
            self.progress.task_waits.pop(task, None)
        else:
            self.progress.task_waits[task] = waits_for

    def _give_up(self, task: str, cause: str) -> None:
        """Give a task's waiting trials up, so many at once; its loss is told again."""
        for pair in (pair for pair in self.limits.pairs if pair[1] == task):
            jobs = self.backlog.take(pair, GIVEN_UP - self._giving_up)
            self._busy += len(jobs)
            self._giving_up += len(jobs)
            self._out += [events.GiveUp(job, cause) for job in jobs]

    def _drain(self, why: str) -> None:
        self.stopped = self.stopped or why
        self.progress.draining = True
        for pair in self.limits.pairs:
            self.backlog.drop(pair)
        self._out.append(events.RunStopped(at_once=self.abandoned))

    def _attempt_ended(self, end: AttemptEnded) -> None:
        job = end.job
        if end.fault is not None:
            self.progress.faults[*job.pair, end.fault] += 1
        match end.outcome:
            case AttemptOutcome.UNAUTHORIZED:
                self._refuse([pair for pair in self.limits.pairs if pair[0] == job.pair[0]], end.cause)
            case AttemptOutcome.TOOLS_REFUSED:
                self._refuse([job.pair], end.cause)
            case AttemptOutcome.BUDGET:
                self._spend_limit = self._spend_limit if self.stopped else end.spend_limit
                self._drain(end.cause)
            case AttemptOutcome.ENDPOINT_DOWN:
                pass  # the next resume plays it
            case AttemptOutcome.SERVICE_AWAY:
                self._await_service(end)
            case AttemptOutcome.DIVERGED if job.trial in self._attempts and self._attempts[job.trial].away:
                self._attempts[job.trial].away = 0  # else the outage would have cost it an attempt
                self._go_on(job, 0.0)
            case AttemptOutcome.PUT_BACK:
                self._pause(job, PUT_BACK_S)
            case AttemptOutcome.INTERRUPTED:
                self._go_on(job, 0.0)
            case AttemptOutcome.LOST if not end.started and not self._of(job).unstarted:
                self._of(job).unstarted = self._of(job).lost_worker = True
                self._go_on(job, 0.0)
            case _:
                self._conclude(end)

    def _of(self, job: Job) -> _Attempts:
        return self._attempts.setdefault(job.trial, _Attempts())

    def _refuse(self, pairs: Iterable[Pair], why: str) -> None:
        """Start no more trials of pairs that the agent's endpoint refuses; they stay without a final row."""
        for pair in pairs:
            self.refused.setdefault(pair, why)
            self.backlog.drop(pair)

    def _conclude(self, end: AttemptEnded) -> None:
        """Settle a trial after an attempt with a finish, or plan another attempt."""
        attempts = self._of(end.job)
        attempts.unstarted &= end.turns <= attempts.turns
        attempts.made = 1 if end.turns > attempts.turns > 0 else attempts.made + 1
        attempts.turns, attempts.lost_worker, attempts.away = end.turns, end.outcome is AttemptOutcome.LOST, 0
        goes_on = end.reason is FinishReason.TASK_ERROR and self.stopped is None
        wait_s = self._policy.wait_s(attempts.made, end.chance)
        if not goes_on or wait_s is None:
            del self._attempts[end.job.trial]
            self._out.append(events.Settle(end.job))
            return
        self.progress.attempts_lost += 1
        self._go_on(end.job, wait_s)

    def _await_service(self, end: AttemptEnded) -> None:
        """Play the trial again once the service may be back; a run that has stopped does not wait for it."""
        attempts = self._of(end.job)
        attempts.away += 1
        self._go_on(end.job, _SERVICE.wait_s(attempts.away, end.chance) if self.stopped is None else None)

    def _go_on(self, job: Job, wait_s: float | None) -> None:
        """Write the end of an attempt, and enqueue its trial again after a wait; None leaves it to the next resume."""
        self._out.append(events.EndAttempt(job))
        if wait_s is not None:
            self._pause(job, wait_s)

    def _pause(self, job: Job, wait_s: float) -> None:
        """Enqueue the trial again after a wait; its slots are free meanwhile."""
        self._pausing += 1
        self._out.append(events.Retry(job, wait_s))
