"""A runner that is cancelled starts nothing more, and concludes what was reached."""

import asyncio
from typing import cast

import pytest

from eval_client.core.capacity import CapacityLimits
from eval_client.core.events import AttemptOutcome, EndpointsChanged, TaskSlots, TrialsTaken
from eval_client.core.progress import Progress
from eval_client.core.schedule import Schedule
from eval_client.core.spend import RunLimits, Spend
from eval_client.run.runner import Runner
from eval_client.trial.attempt import AttemptEnd
from eval_client.trial.attempt_log import PendingTrial
from eval_client.trial.player import Played, TrialPlayer
from proctor.types import Finish, FinishReason

PAIR = ("a", "t")
SLOTS, TRIALS = 8, 100


class Player:
    """Plays until it is cancelled; `keeps` a score that was reached by then, as commands do."""

    def __init__(self, *, keeps: bool) -> None:
        self._keeps = keeps
        self.begun, self.settled = list[int](), list[int]()
        self.busy = asyncio.Event()
        """Set once all slots are in use."""

    async def play(self, pending: PendingTrial, *, suspect: bool, last_try: bool) -> Played:
        self.begun.append(pending.job.trial)
        if len(self.begun) == SLOTS:
            self.busy.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not self._keeps:
                raise
        finish = Finish(reason=FinishReason.COMPLETED, score=1.0)
        return Played(AttemptEnd(outcome=AttemptOutcome.FINISHED, finish=finish), "", turns=1)

    async def settle(self, pending: PendingTrial, played: Played) -> None:
        await asyncio.sleep(0.001)
        self.settled.append(pending.job.trial)

    def close(self) -> None:
        pass


@pytest.mark.parametrize("keeps", [False, True])
async def test_a_cancelled_run_starts_no_other_trial_and_concludes_what_was_reached(keeps: bool) -> None:
    limits = CapacityLimits(endpoint_of={"a": "e"}, concurrency={"a": SLOTS}, pairs=[PAIR], pooled=[])
    schedule = Schedule(limits, Progress(planned={PAIR: TRIALS}, scored={}, score_sum={}), attempts=3)
    schedule.handle(EndpointsChanged({"e": SLOTS}))
    schedule.handle(TaskSlots("t", SLOTS, SLOTS))
    player = Player(keeps=keeps)
    runner = Runner(schedule, cast(TrialPlayer, player), Spend(RunLimits(), {}), lambda: None)
    runner.handle(TrialsTaken({PAIR: range(TRIALS)}))
    run = asyncio.create_task(runner.run())
    await player.busy.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert (len(player.begun), len(player.settled)) == (SLOTS, SLOTS if keeps else 0)
