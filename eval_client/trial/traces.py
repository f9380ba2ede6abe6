"""The traces and log ids of a run's trials: one trace a trial, over all its attempts in this run or resume."""

from eval_client.store.records import Trial
from proctor.observability import logging, tracing
from proctor.observability.spans import Span


class Traces:
    """The spans of the trials begun and not settled."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._open: dict[int, Span] = {}

    def enter(self, trial: Trial, session: str) -> None:
        """What the running task does and logs from now on is part of the trial."""
        logging.about(run=self._run, trial=str(trial.id), session=session)
        span = self._open.get(trial.id)
        if span is None:
            span = self._open[trial.id] = tracing.root(
                "trial",
                run=self._run,
                trial=trial.id,
                agent=trial.agent,
                task=trial.task,
                sample=trial.sample,
                epoch=trial.epoch,
            )
        span.adopt()

    def settled(self, trial: Trial, reason: str) -> None:
        """The trial has its final row."""
        if span := self._open.pop(trial.id, None):
            span.note(reason=reason)
            span.end()

    def close(self) -> None:
        """The run ends; what is not settled goes on in the trace of a resume."""
        for span in self._open.values():
            span.end()
