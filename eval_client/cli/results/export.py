"""`proctor export`: a run's rows, or the run as other people's programs read it."""

from pathlib import Path
from typing import get_args

import click

from eval_client.cli.common import output_option, report_usage_errors, run_argument, store_option
from eval_client.cli.usage import UsageProblem
from eval_client.report.export import FORMATS, export_rows
from eval_client.report.exports.sft import Arguments, RowChoice
from eval_client.report.exports.write import write_atif, write_inspect, write_sft
from eval_client.store.run_folders import find_run
from proctor.types import FinishReason

TRANSCRIPTS = ("inspect", "atif", "sft")
"""Formats of whole trials: they have no choice of rows."""


@click.command()
@run_argument
@output_option
@store_option
@click.option(
    "--format",
    "form",
    type=click.Choice([*FORMATS, *TRANSCRIPTS]),
    default="jsonl",
    show_default=True,
    help="inspect: Inspect's logs. atif: Harbor's trajectories. sft: conversations to train on.",
)
@click.option("--what", type=click.Choice(["trials", "turns", "replies"]), help="Rows to write. Default: trials.")
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    help="File to write; a folder for inspect and atif. Default: in RUN's folder. sft: Parquet if it ends in .parquet.",
)
@click.option("--min-score", type=click.FloatRange(0, 1), help="sft: only trials with at least this score.")
@click.option(
    "--reason",
    "reasons",
    multiple=True,
    type=click.Choice([reason.value for reason in FinishReason]),
    help="sft: only trials that ended so; may be repeated. Default: all but faults.",
)
@click.option(
    "--arguments",
    type=click.Choice(get_args(Arguments)),
    help="sft: the arguments of calls as JSON text, the default, or as objects.",
)
def export(
    run: str,
    output: Path,
    store: str | None,
    form: str,
    what: str | None,
    to: Path | None,
    min_score: float | None,
    reasons: tuple[str, ...],
    arguments: Arguments | None,
) -> None:
    """Write the trials of RUN to a file, complete or not at all.

    RUN is a folder, a name, or `latest`, the default. JSONL, CSV and Parquet hold the trials, the turns, or the replies
    of judges and hosts; the agent `recorded` replays turns as JSONL. The other formats hold whole trials.
    """
    _check_options(form, what, to, min_score, reasons, arguments)
    with report_usage_errors():
        found, folder = find_run(run, store, output)
        found.manifest()
        if form in FORMATS:
            kind = what or "trials"
            path = to or folder / f"{kind}.{form}"
            sources = {"trials": found.trial_rows, "turns": found.turn_rows, "replies": found.reply_rows}
            click.echo(f"{export_rows(sources[kind](), form, path)} {kind}: {path}")
        elif form == "sft":
            path = to or folder / "sft.jsonl"
            choice = RowChoice(
                min_score=min_score,
                reasons=frozenset(FinishReason(reason) for reason in reasons),
                arguments=arguments or "text",
            )
            click.echo(f"{write_sft(found, path, choice)} conversations: {path}")
        else:
            path = to or folder / form
            trials, files = (write_inspect if form == "inspect" else write_atif)(found, path)
            click.echo(f"{trials} trials in {files} files: {path}")


def _check_options(
    form: str,
    what: str | None,
    to: Path | None,
    min_score: float | None,
    reasons: tuple[str, ...],
    arguments: str | None,
) -> None:
    """Raises UsageProblem where options don't fit the format."""
    if what is not None and form not in FORMATS:
        raise UsageProblem(f"--what is for {', '.join(FORMATS)}; {form} holds whole trials: leave it out")
    for name, given in (("--min-score", min_score is not None), ("--reason", reasons), ("--arguments", arguments)):
        if given and form != "sft":
            raise UsageProblem(f"{name} is for --format sft, not for {form}; leave it out")
    if to is None:
        return
    if form in ("inspect", "atif") and to.is_file():
        raise UsageProblem(f"--to {to}: a file; {form} writes several, name a folder")
    if form not in ("inspect", "atif") and to.is_dir():
        raise UsageProblem(f"--to {to}: a folder; {form} is one file, name that")
    if arguments == "object" and to.suffix == ".parquet":
        raise UsageProblem(
            "--arguments object: a column of Parquet has one type; write to a .jsonl file, or leave it out"
        )
