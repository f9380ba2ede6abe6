"""A run for Python: its scores, trials and turns, and how to resume it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from eval_client.report.report import report
from eval_client.store.store import Store
from proctor.agent_function import AgentFunction
from proctor.tables.table import counted
from proctor.types import Action, Finish, Observation, Summary, Value

if TYPE_CHECKING:
    import pandas as pd

WORST = 5
"""How many trials a failed assertion shows."""
Functions = Mapping[str, AgentFunction] | Sequence[AgentFunction] | AgentFunction | None
Resume = Callable[["Run", Functions, Any, Any, Mapping[str, JsonValue]], "Run"]


class PlanError(ValueError):
    """The plan or the arguments can't be run; the message names the field and the fix."""


class RunInterrupted(Exception):
    """A run stopped before its end; the message has the reason. `run.resume()` goes on with it."""

    def __init__(self, why: str, run: "Run") -> None:
        super().__init__(f"{why}; go on with: proctor.open_run({str(run.folder)!r}).resume()")
        self.run = run


class TrialResult(Value):
    """The result of a trial: one agent, one sample, one epoch."""

    agent: str
    task: str
    sample: str
    epoch: int
    finish: Finish | None
    """None while the trial is not over."""
    attempts: int
    turns: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cut_answers: int | None = None
    """How many answers `max_tokens` cut; None while the trial is not over, and in runs of older versions."""
    seconds: float

    @property
    def score(self) -> float | None:
        """The score from 0 to 1; None for a fault, and while the trial is not over."""
        return self.finish.score if self.finish is not None else None


class TurnResult(Value):
    """A turn of a trial: the observation, and the agent's answer."""

    agent: str
    task: str
    sample: str
    epoch: int
    turn: int
    observation: Observation
    action: Action | None
    """None if the agent stopped instead."""
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    model_seconds: float


class Run:
    """The results of a run, finished or not; every call reads them from the run's store."""

    def __init__(self, store: Store, folder: Path, resume: Resume) -> None:
        self.store, self.folder = store, folder
        self._resume = resume

    @property
    def name(self) -> str:
        """The run's name in its store, the same as its folder's name."""
        return self.store.run

    @property
    def state(self) -> str:
        """`running`, `finished`, `incomplete` (over, with trials that have no score) or `interrupted`.

        `out_of_tokens` or `out_of_money` where a limit of the run stopped it.
        """
        return self.store.state()

    def summary(self, task: str, agent: str | None = None) -> Summary:
        """The environment's own metrics of a pair. `agent` may be left out if one agent played the task.

        Raises ValueError if no pair or more than one matches.
        """
        found = [pair for pair in report(self.store).pairs if pair.task == task and agent in {None, pair.agent}]
        if len(found) != 1:
            known = ", ".join(f"{pair.agent} x {pair.task}" for pair in report(self.store).pairs)
            raise ValueError(f"summary: name one task and one agent of: {known}")
        pair = found[0]
        return Summary(primary=pair.primary, metrics=pair.metrics, standard_error=pair.standard_error, notes=pair.notes)

    def scores(self) -> list[dict[str, Any]]:
        """A row for each pair: its primary metric with error and 95 % interval, and how many trials have a score."""
        return [
            {
                "agent": pair.agent,
                "task": pair.task,
                "metric": pair.primary,
                "value": pair.value,
                "standard_error": pair.standard_error,
                "interval": pair.interval,
                "scored": pair.scored,
                "planned": pair.planned,
            }
            for pair in report(self.store).pairs
        ]

    def trials(self) -> Iterator[TrialResult]:
        """All trials, in the run's order."""
        for row in self.store.trial_rows():
            counts = {name: row.get(name) or 0 for name in _COUNTS}
            keys = {name: row[name] for name in _KEYS}
            yield TrialResult.model_validate(counts | keys | {"cut_answers": row.get("cut_answers")})

    def turns(self) -> Iterator[TurnResult]:
        """All turns in the newest journal of every trial, in the run's order."""
        for row in self.store.turn_rows():
            yield TurnResult.model_validate({name: row[name] for name in TurnResult.model_fields if name in row})

    def frame(self) -> "pd.DataFrame":
        """The trials as a pandas DataFrame. Raises ImportError if pandas is not installed."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("frame() needs pandas: pip install pandas") from error
        return pd.DataFrame([_flat(trial) for trial in self.trials()])

    def worst(self, agent: str, task: str) -> Sequence[str]:
        """The WORST trials of a pair, each as a line: those without a score first, then the lowest scores."""
        trials = [trial for trial in self.trials() if (trial.agent, trial.task) == (agent, task)]
        trials.sort(key=lambda trial: -1.0 if trial.score is None else trial.score)
        return [_line(trial) for trial in trials[:WORST]]

    def report(self) -> str:
        """The report that `proctor report` shows."""
        from eval_client.report.run_tables import report_tables
        from proctor.tables.command import rendered

        return rendered(report_tables([report(self.store)], full=True), "text")

    def resume(
        self,
        agents: Functions = None,
        tasks: Any = None,
        *,
        plan: Any = None,
        overrides: Mapping[str, JsonValue] | None = None,
    ) -> "Run":
        """Play the trials that are unscored or unfinished.

        Agents that are functions must be given again, by name, and tasks that are environments, as for `evaluate`.

        A run that was not started by this user on this machine needs its `plan` again, as `evaluate` takes it.
        Raises PlanError and RunInterrupted as `evaluate` does.
        """
        return self._resume(self, agents, tasks, plan, overrides or {})

    def _repr_html_(self) -> str:
        """The scores as a table, for notebooks."""
        rows = self.scores()
        cells = [[f"{value:.3f}" if isinstance(value, float) else value for value in row.values()] for row in rows]
        head = "".join(f"<th>{escape(name)}</th>" for name in (rows[0] if rows else ()))
        body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in each)}</tr>" for each in cells)
        return f"<p>{escape(f'{self.name}: {self.state}')}</p><table><tr>{head}</tr>{body}</table>"

    def __repr__(self) -> str:
        return f"<Run {self.name}: {self.state}, {self.folder}>"


_TOKENS = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens")
_COUNTS = ("attempts", "turns", *_TOKENS, "seconds")
_KEYS = ("agent", "task", "sample", "epoch", "finish")


def _line(trial: TrialResult) -> str:
    finish = trial.finish
    if finish is None:
        return f"  {trial.sample}: not played"
    score = f"no score: {finish.detail.get('cause')}" if finish.score is None else f"{finish.score:.3f}"
    return f"  {trial.sample}: {score} ({finish.reason}, {counted(trial.turns, 'turn')})"


def _flat(trial: TrialResult) -> dict[str, Any]:
    row = trial.model_dump(exclude={"finish"})
    reason = trial.finish.reason.value if trial.finish is not None else None
    return {**row, "score": trial.score, "reason": reason}
