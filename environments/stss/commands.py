"""`proctor stss`: imports data, writes a run's days as files, makes scenarios, prints the paper's tables."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import click

from environments.stss.data import published
from environments.stss.days.transcript import DayTranscript, unpack
from environments.stss.language.scenarios import Scenario, ScenarioFile, chosen, meetings
from environments.stss.tables import action_table, language_table
from proctor.plugins import FinishedTrial, OpenRun, RecordedPair
from proctor.tables.command import TableFormat, format_option, print_tables

FOLDER = click.Path(file_okay=False, path_type=Path)


@click.group()
def stss() -> None:
    """Import the published data, write simulated days as files, make scenarios of them, and print the paper's tables.

    RUN is a run's folder, its name in `runs`, or `latest`.
    """


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


@stss.command()
@click.argument("run")
@click.option("--to", type=FOLDER, default=Path("stss-days"), show_default=True, help="Folder of the files.")
@click.pass_obj
def files(open_run: OpenRun, run: str, to: Path) -> None:
    """Write trajectory.jsonl and conversations.jsonl of each trial of RUN, from which its score is computed."""
    for name, _, day_transcript in _played_days(open_run, run):
        log = day_transcript.event_log
        for file, lines in (("trajectory", log.trajectory()), ("conversations", log.conversations())):
            _write(to / name / f"{file}.jsonl", "".join(f"{line}\n" for line in lines))
        click.echo(to / name)


@stss.command()
@click.argument("run")
@click.option("--to", type=click.Path(dir_okay=False, path_type=Path), required=True, help="JSON file to write.")
@click.option("--task", help="Only trials of this task, if the run has several.")
@click.pass_obj
def scenarios(open_run: OpenRun, run: str, to: Path, task: str | None) -> None:
    """Save the meetings on day 1 of RUN, of all its agents, as scenarios of the language level.

    At most two per pair of characters and twelve per task; for appointments only meetings with its targets.
    """
    found: list[Scenario] = []
    for _, trial, day_transcript in _played_days(open_run, run, task):
        targets = trial.finish.detail.get("targets")
        names = [str(name) for name in targets] if isinstance(targets, list) else []
        performer = str(trial.finish.detail["performer"])
        found += meetings(trial.sample, performer, names, day_transcript.event_log)
    kept = tuple(chosen(found))
    if not kept:
        raise click.UsageError(f"{run}: its performers met nobody on day 1")
    _write(to, ScenarioFile(format="proctor-stss-1", scenarios=kept).model_dump_json(indent=1) + "\n")
    click.echo(f"{to}: {len(kept)} scenarios of {len({scenario.task for scenario in kept})} tasks")


@stss.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@format_option
@click.pass_obj
def table(open_run: OpenRun, runs: tuple[str, ...], *, form: TableFormat) -> None:
    """Print each RUN in the form of the paper's tables 3 (language level) and 4 (action level), all RUNs together.

    A row for each agent and architecture: GA, or GA + TDP. Give the runs of both levels and both architectures.
    """
    trials: list[FinishedTrial] = []
    pairs: list[RecordedPair] = []
    for run in dict.fromkeys(runs):
        recorded = open_run(run)
        trials += recorded
        pairs += recorded.pairs()
    tables = [made for made in (language_table(trials, pairs), action_table(trials, pairs)) if made.rows]
    if not tables:
        raise click.UsageError(f"{', '.join(runs)}: no trial of stss has finished in them")
    print_tables(tables, form)


def _played_days(
    open_run: OpenRun, run: str, task: str | None = None
) -> Iterator[tuple[str, FinishedTrial, DayTranscript]]:
    """Yields file name, trial and transcript of each trial at the action level, of one task or all.

    Raises UsageError if there are none, or a transcript is damaged.
    """
    some = False
    for trial in open_run(run):
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
        raise click.UsageError(f"{run}: no trial {of} at the action level has finished in it")


def _write(path: Path, text: str) -> None:
    """Writes a file completely or not at all. Raises UsageError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        raise click.UsageError(f"--to: {path}: can't be written: {error}") from error
