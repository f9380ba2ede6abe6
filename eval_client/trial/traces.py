"""The traces and log ids of trials: one trace for each trial, over all its attempts by this client."""

from eval_client.store.records import Trial
from proctor.observability import logging, tracing
from proctor.observability.tracing import Attribute, Span
from proctor.types import Finish


class Traces:
    """The spans of the trials that were started and not settled."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._open: dict[int, Span] = {}

    def enter(self, trial: Trial, session: str) -> None:
        """Attach the current asyncio task's spans and log lines to the trial from now on."""
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

    def settled(self, trial: Trial, finish: Finish) -> None:
        """End the span of a trial that has its final row, with its score; a fault has none."""
        if span := self._open.pop(trial.id, None):
            span.note(reason=finish.reason.value)
            if finish.score is None:
                result: dict[str, Attribute] = {tracing.ERROR: finish.reason.value}
            else:
                result = {tracing.SCORE: finish.score, tracing.LABEL: finish.reason.value}
            span.event(tracing.EVALUATION_EVENT, **{tracing.EVALUATION: trial.task}, **result)
            span.end()

    def close(self) -> None:
        """End all spans, at the end of the run; trials that are not settled get a new trace in a resume."""
        for span in self._open.values():
            span.end()
