"""`proctor show`: reads one trial's conversation, or lists the trials of a run."""

import contextlib
import io
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import click

from eval_client.cli.common import output_option, report_usage_errors, store_option
from eval_client.report.compare.sides import CompareError, parse_reference
from eval_client.report.task_environment import AnswerReader, answer_reader, turn_facts
from eval_client.report.terminal import ReadTrial, side_by_side, trial_text, trials_table
from eval_client.report.trial_markdown import Showing, trial_markdown
from eval_client.report.trial_table import shown_columns
from eval_client.store.connection import StoreError
from eval_client.store.runs import find_run
from eval_client.store.trials.rows import QueryError, TrialQuery, trial_query
from eval_client.store.trials.search import find_trials
from eval_client.store.trials.trajectory import Trajectory, conversation, find_trial, read_trajectory
from proctor.observability.output import console
from proctor.tables.command import USUAL_WIDTH, print_tables

FILTERS = [name for name in TrialQuery.model_fields if name != "columns"]
FORM = "a trial is a number, or AGENT@TASK/SAMPLE"


@click.command()
@click.argument("run", metavar="[RUN]")
@click.argument("trial", metavar="TRIAL", required=False)
@output_option
@store_option
@click.option("--epoch", type=click.IntRange(min=0), default=0, show_default=True, help="Epoch of a sample.")
@click.option("--turn", type=click.IntRange(min=1), help="Show only this turn, with all messages that were sent.")
@click.option("--journal", type=click.IntRange(min=0), help="Show an earlier journal, from before a divergence.")
@click.option("--against", metavar="TRIAL", help="Show another trial of RUN, or RUN:AGENT@TASK/SAMPLE, beside it.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON value: the trial, and its turns with all messages."
)
@click.option("--list", "as_list", is_flag=True, help="List the trials of RUN, with what was asked and answered.")
@click.option("--where", "filters", multiple=True, metavar="NAME=VALUE", help="With --list: task=os, score=0..0.5, ...")
@click.option("--columns", default="", metavar="NAME,...", help="With --list: these columns.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown.")
def show(
    run: str,
    trial: str | None,
    output: Path,
    store: str | None,
    epoch: int,
    turn: int | None,
    journal: int | None,
    against: str | None,
    as_json: bool,
    as_list: bool,
    filters: tuple[str, ...],
    columns: str,
    as_markdown: bool,
) -> None:
    """Show the conversation of one trial: what the agent was told, what it answered, and its score with the evidence.

    RUN is a folder, a name, or `latest`; TRIAL is a number, or AGENT@TASK/SAMPLE. `RUN:AGENT@TASK/SAMPLE` names both.

    --list lists trials with what was asked, expected and answered, score, tokens and time. --where selects them as the
    viewer's filters do: agent, task, sample, reason, score, cause, text, sort (`-score`), size (100), after.

    Examples: `proctor show latest 12`, `proctor show latest gpt@os/std-0031 --against naive@os/std-0031`,
    `proctor show latest --list --where score=0 --columns sample,answered,score`
    """
    if (filters or columns) and not as_list:
        raise click.UsageError("--where and --columns are for --list; add it")
    if as_list:
        if trial is not None or against is not None or turn is not None or as_markdown:
            raise click.UsageError("--list: leave out TRIAL, --against, --turn and --markdown")
        _print_list(run, store, output, filters, columns, as_json=as_json)
        return
    if against is not None and (as_json or as_markdown or turn is not None or journal is not None):
        raise click.UsageError("--against: leave out --json, --markdown, --turn and --journal")
    name, place = (run, trial) if trial is not None else _split(run)
    with report_usage_errors():
        shown = _read(name, place, store, output, epoch, journal)
        other = None if against is None else _read(*_other(name, against), store, output, epoch, None)
        ours, theirs = shown[0], (other or shown)[0]
        if ours.sample != theirs.sample or (ours.run == theirs.run and ours.task != theirs.task):
            raise StoreError(f"--against: trial {theirs.trial} is of another sample; name one of {ours.sample!r}")
        if turn is not None and turn not in {each.turn for each in shown[0].turns}:
            raise StoreError(f"trial {shown[0].trial} has no turn {turn}; it has {len(shown[0].turns)}")
        if as_json:
            click.echo(_json(*shown, turn))
        elif as_markdown:
            click.echo(trial_markdown(*shown, Showing(), turn), nl=False)
        else:
            _print(shown, other, turn)


def _print_list(
    run: str, store: str | None, output: Path, filters: Sequence[str], columns: str, *, as_json: bool
) -> None:
    pairs = [filter_.partition("=") for filter_ in filters]
    if wrong := [name for name, _, _ in pairs if name not in FILTERS]:
        raise click.UsageError(f"--where: {wrong[0]!r} is none of {', '.join(FILTERS)}; write NAME=VALUE")
    with report_usage_errors():
        found = find_run(run, store, output)[0]
        try:
            query = trial_query({**{name: value for name, _, value in pairs}, "columns": columns})
            shown = shown_columns(query, found.manifest().read_plan())
        except QueryError as error:
            raise click.UsageError(str(error)) from error
        page = find_trials(found, query)
    if as_json:
        items = [row.model_dump(mode="json") for row in page.items]
        click.echo(json.dumps({"items": items, "next": page.next, "total": page.total}, ensure_ascii=False))
        return
    title, width = f"{len(page.items)} of {page.total} trials of {found.run}", _terminal_width()
    print_tables([trials_table(title, page.items, shown, width)], "text")
    if page.next:
        click.echo(f"go on with: --where after={page.next}")


def _terminal_width() -> int:
    return shutil.get_terminal_size((USUAL_WIDTH, 24)).columns


def _split(address: str) -> tuple[str, str]:
    """RUN and TRIAL of `RUN:AGENT@TASK/SAMPLE`, or of a trial in the latest run."""
    run, colon, place = address.partition(":")
    return (run or "latest", place) if colon else ("latest", address)


def _other(run: str, address: str) -> tuple[str, str]:
    name, colon, place = address.partition(":")
    return (name or run, place) if colon and "@" not in name else (run, address)


def _read(run: str, place: str, store: str | None, output: Path, epoch: int, journal: int | None) -> ReadTrial:
    """A trial, and how its answers are read. Raises StoreError."""
    try:
        named = parse_reference(f"{run}:{place}")
    except CompareError as error:
        raise StoreError(f"{place!r} names no trial: {FORM}, for example latest:gpt@os/std-0031") from error
    number = place if place.isdecimal() else None
    if number is None and (named.agent is None or named.task is None or named.sample is None):
        raise StoreError(f"{place!r} names no trial: {FORM}, for example latest:gpt@os/std-0031")
    found, _ = find_run(run, store, output)
    manifest = found.manifest()
    if number is None:
        number = str(find_trial(found, str(named.agent), str(named.task), str(named.sample), epoch))
    trial = read_trajectory(found, int(number), journal)
    return trial, answer_reader(manifest, trial.task)


def _json(trial: Trajectory, read: AnswerReader, turn: int | None) -> str:
    turns = [turn_facts(each, read) for each in conversation(trial.turns) if turn in (None, each.turn)]
    facts = trial.model_dump(mode="json", exclude={"turns"})
    return json.dumps({**facts, "turns": turns}, ensure_ascii=False)


def _print(shown: ReadTrial, other: ReadTrial | None, turn: int | None) -> None:
    terminal = console(highlight=False)
    width, text = _terminal_width(), io.StringIO()
    page = console(file=text, width=width, highlight=False, force_terminal=terminal.is_terminal)
    if other is None:
        page.print(trial_text(*shown, turn))
    else:
        for each in side_by_side(shown, other):
            page.print(each)
    lines = "\n".join(line.rstrip() for line in text.getvalue().split("\n"))
    with contextlib.redirect_stdout(terminal.file):  # the page is clean, and has the codes of its styles
        if terminal.is_terminal and lines.count("\n") >= terminal.height:
            click.echo_via_pager(lines, color=True)
        else:
            click.echo(lines, nl=False)
