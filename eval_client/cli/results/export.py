"""`proctor export`: a run's rows, or the run as other people's programs read it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from eval_client.cli.common import find_results, output_option, report_usage_errors, store_option
from eval_client.cli.usage import UsageProblem
from eval_client.report.exports.write import FORMATS, export_rows, exports, separate_exports
from eval_client.report.papers import finished_trials, recorded_pairs
from eval_client.report.report import report
from eval_client.report.scrub import WARNING
from eval_client.store.parts import PlanStore
from eval_client.store.runs import find_run
from eval_client.store.store import Store
from proctor.plugins import FinishedTrial, RecordedPair, RecordedRun
from proctor.registry import EXPORTS, missing

FORMS = exports()
"""Of whole trials: they have no choice of rows."""


@click.command()
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@output_option
@store_option
@click.option(
    "--as",
    "form",
    type=click.Choice(list(dict.fromkeys([*FORMATS, *FORMS, *separate_exports()]))),
    default="jsonl",
    show_default=True,
    help=" ".join(f"{name}: {form.help}." for name, form in FORMS.items()),
)
@click.option("--what", type=click.Choice(["trials", "turns", "replies"]), help="Rows to write. Default: trials.")
@click.option("--samples", is_flag=True, help="csv: with the details of scores: what was asked, expected, answered.")
@click.option(
    "--to",
    type=click.Path(path_type=Path),
    help="File to write, or folder where a format has several files. Default: in RUN's folder.",
)
def export(
    runs: tuple[str, ...],
    output: Path,
    store: str | None,
    form: str,
    what: str | None,
    samples: bool,
    to: Path | None,
    **options: Any,
) -> None:
    """Write the trials of RUN to a file, complete or not at all.

    RUN is a folder, a name, or `latest`, the default; several are the parts of a plan, written as one run. JSONL, CSV
    and Parquet hold the trials, the turns, or the replies of judges and hosts; the agent `recorded` replays turns as
    JSONL. The other formats hold whole trials. CSV has the details of scores only with --samples.
    """
    if (fix := missing(EXPORTS, form)) is not None:
        raise UsageProblem(f"--as {form} is not installed; {fix}")
    own = _own_options(form, options)
    _check_places(form, what, to)
    if samples and (form != "csv" or what not in (None, "trials")):
        raise UsageProblem("--samples is for --as csv with --what trials; the other formats hold all: leave it out")
    with report_usage_errors():
        stores = find_results(runs or ("latest",), store, output, texts=True)
        if len(stores) > 1:
            raise UsageProblem(
                f"{len(stores)} runs are named; export each by itself: only parts of one plan are one run"
            )
        found, folder = stores[0], _folder(stores[0], next(iter(runs), "latest"), store, output)
        if form in FORMATS:
            kind = what or "trials"
            path = to or folder / f"{kind}.{form}"
            sources = {"trials": found.trial_rows, "turns": found.turn_rows, "replies": found.reply_rows}
            click.echo(f"{export_rows(sources[kind](), form, path, samples=samples)} {kind}: {path}")
            if samples:
                click.echo(WARNING, err=True)
        else:
            chosen = FORMS[form]
            path = to or folder / chosen.place
            recorded = StoredRun(found, lambda other: find_results((other,), store, output, texts=True)[0])
            written = chosen.write(found if chosen.of_store else recorded, path, **own)
            click.echo(f"{written}: {path}")


export.params += {option.name: option for form in FORMS.values() for option in form.options}.values()


class StoredRun(RecordedRun):
    """A run of a store; `find` finds other runs. Raises StoreError."""

    def __init__(self, store: Store, find: Callable[[str], Store]) -> None:
        self._store, self._find, self.name = store, find, store.run

    def __iter__(self) -> Iterator[FinishedTrial]:
        return finished_trials(self._store, {pair.task for pair in self._store.pair_totals()})

    def pairs(self) -> Sequence[RecordedPair]:
        made = report(self._store)
        return recorded_pairs(made, {pair.task for pair in made.pairs})

    def other(self, run: str) -> RecordedRun:
        return StoredRun(self._find(run), self._find)


def _own_options(form: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the options of a format. Raises UsageProblem where one of another format is given."""
    names = {str(option.name) for option in FORMS[form].options} if form in FORMS else set()
    for name, each in FORMS.items():
        for option in each.options:
            if str(option.name) not in names and options[str(option.name)] not in (None, ()):
                raise UsageProblem(f"{option.opts[0]} is for --as {name}, not for {form}; leave it out")
    return {name: options[name] for name in names}


def _folder(store: Store, name: str, url: str | None, output: Path) -> Path:
    """Where a run's files go unless told otherwise: its own folder; for the parts of a plan, one of their name."""
    if not isinstance(store, PlanStore):
        return find_run(name, url, output)[1]
    folder = output / store.run
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _check_places(form: str, what: str | None, to: Path | None) -> None:
    """Raises UsageProblem where `--what` or `--to` don't fit the format."""
    if what is not None and form not in FORMATS:
        raise UsageProblem(f"--what is for {', '.join(FORMATS)}; {form} holds whole trials: leave it out")
    if to is None:
        return
    in_folder = form in FORMS and FORMS[form].is_folder
    if in_folder and to.is_file():
        raise UsageProblem(f"--to {to}: a file; {form} writes several, name a folder")
    if not in_folder and to.is_dir():
        raise UsageProblem(f"--to {to}: a folder; {form} is one file, name that")
