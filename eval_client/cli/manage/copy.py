"""`proctor copy`."""

import shutil
from pathlib import Path

import click

from eval_client.cli.common import check_no_password, output_option, report_usage_errors, run_argument, store_option
from eval_client.cli.usage import UsageProblem
from eval_client.store.connection import RunExists, connect
from eval_client.store.run_folders import find_run, open_store
from eval_client.store.runs.copy import copy_run
from eval_client.store.store import Store
from proctor.config.secrets import secret_text

TO = "PROCTOR_COPY_TO"


def _target(_context: click.Context, _option: click.Parameter, given: str | None) -> str:
    try:
        target = given or secret_text(TO)
    except ValueError as error:
        raise UsageProblem(str(error)) from error
    check_no_password("--to", given, TO)
    if not target:
        raise UsageProblem(f"--to: name the store to copy to: a folder of runs, or the URL of a database; or set {TO}")
    return target


@click.command()
@run_argument
@output_option
@store_option
@click.option(
    "--to",
    callback=_target,
    metavar="FOLDER|URL",
    help="Where to copy: a folder of runs (SQLite), or a database's URL. A URL with a password goes into "
    "PROCTOR_COPY_TO, or into the file that PROCTOR_COPY_TO_FILE names.",
)
def copy(run: str, output: Path, store: str | None, to: str) -> None:
    """Copy RUN (a folder, a name, or `latest`, the default) to another store, with every row, under the same name.

    A run that is being played is refused, and so is one that the other store has. All rows are copied, or none. The
    folder's other files (logs, exports) are not.

    Examples: `proctor copy r --to postgresql+psycopg://db/proctor`, and back: `proctor copy r --store
    postgresql+psycopg://db/proctor --to runs`
    """
    with report_usage_errors():
        source, _ = find_run(run, store, output)
        source.manifest()
        if "://" in to:
            where, copied = to, copy_run(source, Store(connect(to), source.run))
        else:
            where, copied = str(Path(to) / source.run), _to_folder(source, Path(to) / source.run)
    rows = ", ".join(f"{count} {kind}" for kind, count in copied.items() if kind != "run")
    click.echo(f"copied {source.run} to {where}: {rows}" if "://" not in to else f"copied {source.run}: {rows}")


def _to_folder(source: Store, folder: Path) -> dict[str, int]:
    """Copy a run into a folder of its own, which is new. Raises RunExists."""
    if folder.exists():
        raise RunExists(f"{folder} exists already; remove it, or copy to another folder")
    target = open_store(None, folder)
    try:
        return copy_run(source, target)
    except BaseException:
        target.engine.dispose()
        shutil.rmtree(folder)
        raise
