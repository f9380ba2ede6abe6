"""Reads finished trials of runs for the commands of environments."""

from collections.abc import Iterator
from pathlib import Path

from eval_client.cli.common import STORE, report_usage_errors
from eval_client.store.run_folders import find_run
from proctor.config.secrets import secret_text
from proctor.plugins import FinishedTrial


def open_run(run: str) -> Iterator[FinishedTrial]:
    """The trials of a run that have a final row. `run` is a folder, a name in `runs`, or `latest`.

    The run is looked up in PROCTOR_STORE where that is set. Raises UsageProblem.
    """
    with report_usage_errors():
        store, _ = find_run(run, secret_text(STORE), Path("runs"))
        store.manifest()
    for pair in store.pair_totals():
        for sample, epoch, finish in store.finishes(pair.agent, pair.task):
            yield FinishedTrial(
                run=store.run, agent=pair.agent, task=pair.task, sample=sample, epoch=epoch, finish=finish
            )
