"""`proctor stss import`, and forms of `proctor export`: a run's days as files, and scenarios of their meetings."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import click

from environments.stss.data import published
from environments.stss.days.transcript import DayTranscript, unpack
from environments.stss.language.scenarios import Scenario, ScenarioFile, chosen, meetings
from proctor.plugins import FinishedTrial, RecordedRun, TrialExport


@click.group()
def stss() -> None:
    """Import the published data."""


@stss.command("import")
@click.argument("repository", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path))
def import_(repository: Path, folder: Path) -> None:
    """Import REPOSITORY, a checkout of the paper's repository, to FOLDER, for the field `data` of a task."""
    try:
        tasks, templates, people = published.import_repository(repository, folder)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        raise click.UsageError(f"{folder}: can't be written: {error}; give a new folder elsewhere") from error
    holds = f"{tasks} tasks, {templates} templates, {people} characters"
    click.echo(f"{folder}: {holds}; name it as `data` of a task")


def files(run: RecordedRun, folder: Path) -> str:
    """Write trajectory.jsonl and conversations.jsonl of each trial, from which its score is computed."""
    count = 0
    for name, _, day_transcript in _played_days(run):
        log = day_transcript.event_log
        for file, lines in (("trajectory", log.trajectory()), ("conversations", log.conversations())):
            _write(folder / name / f"{file}.jsonl", "".join(f"{line}\n" for line in lines))
        count += 1
    return f"{count} trials"


def scenarios(run: RecordedRun, path: Path, task: str | None) -> str:
    """Save the meetings on day 1, of all agents, as scenarios of the language level.

    At most two per pair of characters and twelve per task; for appointments only meetings with its targets.
    """
    found: list[Scenario] = []
    for _, trial, day_transcript in _played_days(run, task):
        targets = trial.finish.detail.get("targets")
        names = [str(name) for name in targets] if isinstance(targets, list) else []
        performer = str(trial.finish.detail["performer"])
        found += meetings(trial.sample, performer, names, day_transcript.event_log)
    kept = tuple(chosen(found))
    if not kept:
        raise click.UsageError(f"{run.name}: its performers met nobody on day 1")
    _write(path, ScenarioFile(format="proctor-stss-1", scenarios=kept).model_dump_json(indent=1) + "\n")
    return f"{len(kept)} scenarios of {len({scenario.task for scenario in kept})} tasks"


FILES = TrialExport("trajectories and conversations of simulated days", "stss-days", is_folder=True, write=files)
SCENARIOS = TrialExport(
    "meetings of day 1, as scenarios of the language level",
    "scenarios.json",
    is_folder=False,
    write=scenarios,
    options=(click.Option(["--task"], metavar="NAME", help="simulbench, stss: the task whose trials are taken."),),
)


def _played_days(run: RecordedRun, task: str | None = None) -> Iterator[tuple[str, FinishedTrial, DayTranscript]]:
    """Yields file name, trial and transcript of each trial at the action level, of one task or all.

    Raises UsageError if there are none, or a transcript is damaged.
    """
    some = False
    for trial in run:
        packed = trial.finish.detail.get("evidence")
        if task in (None, trial.task) and isinstance(packed, str) and "trajectory" in trial.finish.detail:
            some = True
            name = re.sub(r"[^\w.-]+", "_", f"{trial.agent}-{trial.task}-{trial.sample}-{trial.epoch}")
            try:
                day_transcript = unpack(packed)
            except ValueError as error:
                raise click.UsageError(f"{name}: the stored days of its finish are damaged: {error}") from error
            yield name, trial, day_transcript
    if not some:
        of = "of stss" if task is None else f"of the task {task!r}"
        raise click.UsageError(f"{run.name}: no trial {of} at the action level has finished in it")


def _write(path: Path, text: str) -> None:
    """Writes a file completely or not at all. Raises UsageError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        raise click.UsageError(f"--to: {path}: can't be written: {error}") from error
