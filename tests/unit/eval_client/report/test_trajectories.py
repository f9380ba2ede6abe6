"""The trials of a run as exports read them."""

import asyncio
from pathlib import Path

from eval_client.store.journal import Cost, Journal
from eval_client.store.records import Trial
from eval_client.store.store import Store
from eval_client.store.trials.trajectory import read_trajectories
from proctor.types import Finish, FinishReason, Usage
from tests.exported_run import write_run


def test_a_trial_that_began_anew_and_broke_at_once_has_no_turns_of_its_earlier_attempt(tmp_path: Path) -> None:
    store = write_run(tmp_path, ["owed"], epochs=1)
    asyncio.run(_break(store, Trial(id=0, agent="ann", task="walk", sample="owed", epoch=0)))
    (made,) = read_trajectories(store, "ann", "walk")
    assert made.finish is not None
    assert made.finish.detail["cause"] == "no command"
    assert (made.journal, made.turns, len(made.attempts)) == (1, (), 2)
    store.engine.dispose()


async def _break(store: Store, trial: Trial) -> None:
    """End the trial's first attempt, and a second one with a journal of its own before its first turn."""
    journal = Journal(store, store.take_over())
    await journal.end(trial, 1, "lost", "the worker died", None)
    await journal.begin(trial, 2, 1, "0" * 32)
    cost = Cost(turns=0, usage=Usage(), seconds=1.0)
    await journal.finish(trial, 2, "w", Finish.fault(FinishReason.AGENT_ERROR, "no command"), cost)
    await journal.close()
