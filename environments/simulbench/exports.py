"""Forms of `proctor export`: a finished run's dialogues, and pairs of responses for a `compare` run."""

import os
from collections.abc import Sequence
from pathlib import Path

import click

from environments.simulbench import dataset, shipped
from environments.simulbench.records import CHANGED, PUBLISHED_LICENCE, Dialogue, Mode, Pair, Script
from proctor.plugins import FinishedTrial, RecordedRun, TrialExport
from proctor.types import Value


def dialogues(run: RecordedRun, path: Path, agent: str | None, task: str | None) -> str:
    """Write the complete dialogues of a `live` run."""
    trials = _chosen(run, "live", agent, task)
    made = [dialogue for trial in trials if (dialogue := dialogue_of(trial)) is not None]
    return _write(path, made, len(trials), "dialogues")


def pairs(
    run: RecordedRun,
    path: Path,
    *,
    agent: str | None,
    task: str | None,
    candidate: str | None,
    candidate_agent: str | None,
    scripts: Path | None,
) -> str:
    """Pair the responses of two `script` runs, or of two agents of one."""
    try:
        given = shipped.scripts() if scripts is None else dataset.load(scripts, Script)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    other_run = run if candidate is None else run.other(candidate)
    one = _chosen(run, "script", agent, task, agent_option="--agent")
    other = _chosen(other_run, "script", candidate_agent, task, agent_option="--candidate-agent")
    return _write(path, pairs_of(one, other, given), max(len(one), len(other)), "pairs")


CHOICE = (
    click.Option(["--agent"], metavar="NAME", help="simulbench: the agent whose trials are taken."),
    click.Option(["--task"], metavar="NAME", help="simulbench, stss: the task whose trials are taken."),
)
FILE = click.Path(dir_okay=False, path_type=Path)
DIALOGUES = TrialExport(
    "the complete dialogues of a `live` run", "dialogues.jsonl", is_folder=False, write=dialogues, options=CHOICE
)
PAIRS = TrialExport(
    "responses of two agents, as data of a `compare` run",
    "pairs.jsonl",
    is_folder=False,
    write=pairs,
    options=(
        *CHOICE,
        click.Option(["--candidate"], metavar="RUN", help="simulbench-pairs: the second run. Default: RUN itself."),
        click.Option(["--candidate-agent"], metavar="NAME", help="simulbench-pairs: the agent of the second run."),
        click.Option(
            ["--scripts"], type=FILE, help="simulbench-pairs: data of both runs. Default: the shipped scripts."
        ),
    ),
)


def _chosen(
    run: RecordedRun, mode: Mode, agent: str | None, task: str | None, *, agent_option: str | None = None
) -> list[FinishedTrial]:
    """The trials of the run's task of a mode, including faults, whose details do not name the mode.

    Raises UsageError if they are of several tasks, or with `agent_option` of several agents.
    """
    trials = list(run)
    _known(run.name, "agent", agent, {trial.agent for trial in trials})
    _known(run.name, "task", task, {trial.task for trial in trials})
    tasks = {
        trial.task for trial in trials if trial.finish.detail.get("simulbench") == mode and task in (None, trial.task)
    }
    if not tasks:
        raise click.UsageError(f"run {run.name!r} has no finished trial of the mode `{mode}`; is it the right run?")
    chosen = [trial for trial in trials if trial.task in tasks and agent in (None, trial.agent)]
    _single(run.name, "tasks", {trial.task for trial in chosen}, "--task")
    if agent_option is not None:
        _single(run.name, "agents", {trial.agent for trial in chosen}, agent_option)
    return chosen


def _known(run: str, what: str, name: str | None, names: set[str]) -> None:
    if name not in (None, *names):
        raise click.UsageError(f"run {run!r} has no {what} {name!r}; it has: {', '.join(sorted(names))}")


def _single(run: str, what: str, names: set[str], option: str) -> None:
    if len(names) > 1:
        raise click.UsageError(f"run {run!r} has several {what}: {', '.join(sorted(names))}; choose one with {option}")


def dialogue_of(trial: FinishedTrial) -> Dialogue | None:
    """The dialogue of a trial, with task, agent and epoch in its id; None if it is not complete."""
    detail, file = trial.finish.detail, f"{trial.agent}{f'-{trial.epoch}' if trial.epoch else ''}.json"
    messages = detail.get("messages")
    if "rating" not in trial.finish.metrics or not isinstance(messages, list):
        return None
    return Dialogue.model_validate(
        {
            "id": f"{trial.sample}/{file}",
            "source_id": trial.sample,
            "source_file_name": file,
            "task_description": detail["task_description"],
            "licence": _marked(trial),
            **{key: detail[key] for key in ("act", "type", "messages", "strategies")},
        }
    )


def _marked(trial: FinishedTrial) -> str:
    """The licence of a record made in a trial, with a note if it is made from published records."""
    licence = str(trial.finish.detail["licence"])
    return f"{licence}{CHANGED}" if PUBLISHED_LICENCE in licence and CHANGED not in licence else licence


def pairs_of(one: Sequence[FinishedTrial], other: Sequence[FinishedTrial], given: Sequence[Script]) -> list[Pair]:
    """Pairs of two agents' responses to the same script and epoch; empty if an agent was out of context."""
    known = {script.id: script for script in given}
    second = {(trial.sample, trial.epoch): trial for trial in other}
    made = []
    for trial in one:
        rival = second.get((trial.sample, trial.epoch))
        script = known.get(trial.sample)
        if script is None or rival is None or trial.finish.score is None or rival.finish.score is None:
            continue
        made.append(_pair(script, trial, rival))
    return made


def _pair(script: Script, one: FinishedTrial, other: FinishedTrial) -> Pair:
    return Pair.model_validate(
        {
            "id": f"{script.id}{f'~{one.epoch}' if one.epoch else ''}",
            "type": script.type,
            "place": one.finish.detail["place"],
            "dialogue_history": script.dialogue_history,
            "a": one.finish.detail.get("response", ""),
            "b": other.finish.detail.get("response", ""),
            "model_a": one.agent,
            "model_b": other.agent,
            "licence": script.licence,
            "exchange": script.exchange,
        }
    )


def _write(path: Path, records: Sequence[Value], trials: int, what: str) -> str:
    """Writes the records of so many trials, or pairs of trials; of faults there are none."""
    left_out = trials - len(records)
    if not records:
        raise click.UsageError(f"no {what} to write: {left_out} trials hold none; is it the right run?")
    part = path.with_name(path.name + ".part")
    try:
        part.write_text("".join(record.model_dump_json(exclude_none=True) + "\n" for record in records), "utf-8")
        os.replace(part, path)
    except OSError as error:
        raise click.UsageError(f"--to {path}: can't be written: {error}") from error
    return f"{len(records)} {what}{f' ({left_out} trials left out)' if left_out else ''}"
