"""`proctor stss`: imports data, shows a run's days, makes scenarios, measures the rules, prints tables."""

import asyncio
import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import get_args
from urllib.parse import quote

import click

from environments.stss.data import published
from environments.stss.days.transcript import DayTranscript, unpack
from environments.stss.drawing.page import document, drawing
from environments.stss.hearing.labelled import Half
from environments.stss.language.scenarios import Scenario, ScenarioFile, chosen, meetings
from environments.stss.tables.levels import levels_table
from environments.stss.tables.paper import action_table, language_table
from environments.stss.tables.talks import key_of, no_shows_table, talks_table
from environments.stss.understanding.measure import errors, measure, tables
from proctor.environment import TurnAddress
from proctor.plugins import FinishedTrial, OpenRun, RecordedPair
from proctor.tables.command import TableFormat, format_option, print_tables

FOLDER = click.Path(file_okay=False, path_type=Path)


@click.group()
def stss() -> None:
    """Import the published data, show simulated days, make scenarios from them, and print the paper's tables.

    RUN is a run's folder, its name in `runs`, or `latest`.
    """


@stss.command("import")
@click.argument("repository", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path))
def import_(repository: Path, folder: Path) -> None:
    """Import REPOSITORY, a checkout of the paper's repository, to FOLDER, for the field `data` of a task."""
    try:
        counts = published.import_repository(repository, folder)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        raise click.UsageError(f"{folder}: can't be written: {error}; give a new folder elsewhere") from error
    holds = f"{counts.tasks} tasks, {counts.templates} templates, {counts.people} characters"
    click.echo(f"{folder}: {holds}; name it as `data` of a task")


@stss.command()
@click.argument("run")
@click.argument("trial", type=click.IntRange(min=0), required=False)
@click.option("--to", type=FOLDER, default=Path("stss-days"), show_default=True, help="Folder of the pages.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="HTML file for the one TRIAL.")
@click.option("--viewer", metavar="URL", help="Address of `proctor view`, for links to the turns of the one TRIAL.")
@click.pass_obj
def draw(open_run: OpenRun, run: str, trial: int | None, *, to: Path, output: Path | None, viewer: str | None) -> None:
    """Draw the two days of each trial of RUN, or of one TRIAL, as an HTML page that needs nothing else.

    It shows the town with everybody on it at any minute, all talks, what was agreed, and who came. TRIAL is the
    trial's number in `proctor view`, which shows the same page beside the trial's turns.
    """
    if trial is None:
        if output or viewer:
            raise click.UsageError("-o and --viewer are for one trial: name its number after RUN")
        for name, found, _ in _played_days(open_run, run):
            click.echo(_write(to / f"{name}.html", _drawn(name, found)))
        return
    if viewer and not viewer.startswith(("http://", "https://")):
        raise click.UsageError(f"--viewer: {viewer!r} is no address; give what `proctor view` prints")
    recorded = open_run(run).trial(trial)
    name, address = _file_name(recorded), None
    if viewer:
        address = partial(_turn_address, f"{viewer.rstrip('/')}/runs/{quote(recorded.run, safe='')}/trials/{trial}")
    page = _drawn(f"trial {trial}", recorded, address)
    click.echo(_write(output, page, "--output") if output else _write(to / f"{name}.html", page))


def _drawn(name: str, trial: FinishedTrial, address: TurnAddress | None = None) -> str:
    title = f"{trial.agent} × {trial.task} × {trial.sample}, epoch {trial.epoch}"
    try:
        return document(title, drawing(trial.finish, address))
    except ValueError as error:
        raise click.UsageError(f"{name}: {error}") from error


def _turn_address(base: str, turn: int) -> str:
    return f"{base}?turn={turn}#turn-{turn}"


@stss.command()
@click.argument("run")
@click.option("--to", type=FOLDER, default=Path("stss-days"), show_default=True, help="Folder of the files.")
@click.pass_obj
def files(open_run: OpenRun, run: str, to: Path) -> None:
    """Write trajectory.jsonl and conversations.jsonl of each trial of RUN, from which its score is computed."""
    for name, _, day_transcript in _played_days(open_run, run):
        _write(to / name / "trajectory.jsonl", _lines(day_transcript.event_log.trajectory()))
        _write(to / name / "conversations.jsonl", _lines(day_transcript.event_log.conversations()))
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
@click.option("--talks", is_flag=True, help="Also print talks on each day, people met, and agreements made and kept.")
@click.option("--no-shows", is_flag=True, help="Also list what people agreed to and did not do, or did in vain.")
@click.option(
    "--levels", is_flag=True, help="Also print success in talks beside the scores of the same tasks' two days."
)
@format_option
@click.pass_obj
def table(
    open_run: OpenRun, runs: tuple[str, ...], *, talks: bool, no_shows: bool, levels: bool, form: TableFormat
) -> None:
    """Print each RUN in the form of the paper's tables 3 (language level) and 4 (action level), all RUNs together.

    A row for each agent and architecture: GA, or GA + TDP. Give the runs of both levels and both architectures.
    """
    trials: list[FinishedTrial] = []
    pairs: list[RecordedPair] = []
    for run in dict.fromkeys(runs):
        recorded = open_run(run)
        trials += recorded
        pairs += recorded.pairs()
    named = ", ".join(runs)
    tables = [made for made in (language_table(trials, pairs), action_table(trials, pairs)) if made.rows]
    if not tables:
        raise click.UsageError(f"{named}: no trial of stss has finished in them")
    if talks or no_shows:
        days = {
            key_of(trial): _unpacked(f"{trial.agent} on {trial.task}, {trial.sample}", packed)
            for trial in trials
            if isinstance(packed := trial.finish.detail.get("evidence"), str) and "trajectory" in trial.finish.detail
        }
        if not days:
            raise click.UsageError(f"{named}: no trial of stss at the action level has finished in them")
        tables += [talks_table(trials, pairs, days)] if talks else []
        tables += [no_shows_table(trials, pairs, days)] if no_shows else []
    if levels:
        tables.append(levels_table(trials, pairs))
        if not tables[-1].rows:
            raise click.UsageError(f"{named}: no agent has played a task at both levels; give the RUNs of both")
    print_tables(tables, form)


@stss.command("utterances")
@click.option("--half", type=click.Choice(get_args(Half)), default="development", show_default=True)
@click.option("--errors", "show", is_flag=True, help="Also print each utterance that is not understood.")
@format_option
def utterances_(half: Half, show: bool, form: TableFormat) -> None:
    """Print how well the rules understand the labelled utterances of a half, and what the talks come to.

    Rules are made with the development half only; look at no error of the others. `practice` is for
    finding faults; `fresh` and `held` are later sets.
    """
    try:
        heard, talks = asyncio.run(measure(half))
    except FileNotFoundError as error:
        missing = f"--half {half}: {error.filename} is not there"
        raise click.UsageError(f"{missing}; put the file there, or name another half") from error
    print_tables(tables(half, heard, talks), form)
    if show:
        click.echo("\n" + "\n".join(errors(heard, talks)))


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
            name = _file_name(trial)
            yield name, trial, _unpacked(name, packed)
    if not some:
        of = "of stss" if task is None else f"of the task {task!r}"
        raise click.UsageError(f"{run}: no trial {of} at the action level has finished in it")


def _file_name(trial: FinishedTrial) -> str:
    return re.sub(r"[^\w.-]+", "_", f"{trial.agent}-{trial.task}-{trial.sample}-{trial.epoch}")


def _unpacked(name: str, packed: str) -> DayTranscript:
    try:
        return unpack(packed)
    except ValueError as error:
        raise click.UsageError(f"{name}: the stored days of its finish are damaged: {error}") from error


def _lines(lines: Iterator[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _write(path: Path, text: str, option: str = "--to") -> Path:
    """Writes a file completely or not at all. Raises UsageError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        raise click.UsageError(f"{option}: {path}: can't be written: {error}") from error
    return path
