"""Opens recorded runs for the commands of environments."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from eval_client.cli.common import STORE, report_usage_errors
from eval_client.report.report import report
from eval_client.store.run_folders import find_run
from eval_client.store.store import Store
from proctor.config.secrets import secret_text
from proctor.plugins import FinishedTrial, RecordedPair, RecordedRun


class StoredRun(RecordedRun):
    """A run of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __iter__(self) -> Iterator[FinishedTrial]:
        store = self._store
        with report_usage_errors():
            for pair in store.pair_totals():
                for sample, epoch, finish in store.finishes(pair.agent, pair.task):
                    yield FinishedTrial(
                        run=store.run, agent=pair.agent, task=pair.task, sample=sample, epoch=epoch, finish=finish
                    )

    def pairs(self) -> Sequence[RecordedPair]:
        with report_usage_errors():
            made = report(self._store)
        return [
            RecordedPair(
                run=made.run, agent=pair.agent, task=pair.task, planned=pair.planned, comparable=pair.comparable
            )
            for pair in made.pairs
        ]


def open_run(run: str) -> RecordedRun:
    """A run by its folder, its name in `runs`, or `latest`; in PROCTOR_STORE where that is set. Raises UsageProblem."""
    with report_usage_errors():
        store, _ = find_run(run, secret_text(STORE), Path("runs"))
        store.manifest()
    return StoredRun(store)
