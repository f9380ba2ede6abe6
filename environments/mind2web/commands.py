"""`proctor mind2web`: generates tasks on invented pages, and converts score files."""

import re
from pathlib import Path

import click

from environments.mind2web.data import converter
from environments.mind2web.data.files import SPLIT
from environments.mind2web.generate import generator

TASKS_A_FILE = 10


@click.group()
def mind2web() -> None:
    """Generate tasks on invented pages; convert Mind2Web's score file."""


@mind2web.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--tasks", type=click.IntRange(min=1), default=60, show_default=True, help="About five steps each.")
@click.option("--seed", type=int, default=0, show_default=True, help="Equal seeds give equal tasks.")
@click.option("--split", default="own", show_default=True, help="Its files are called <split>_0.json and so on.")
@click.option("--raw-html", is_flag=True, help="Keep the raw pages too; files are then three times as large.")
def generate(folder: Path, tasks: int, seed: int, split: str, raw_html: bool) -> None:
    """Write tasks on invented sites to FOLDER, in the official form, with the scores of an invented ranker.

    Play them with `data: FOLDER`, the split's name as `split`, and `scores: FOLDER/<split>_scores.jsonl`.
    """
    if not re.fullmatch(SPLIT, split):
        raise click.BadParameter(f"{split!r}: write letters, digits and _ only", param_hint="--split")
    if (folder / f"{split}_0.json").exists():
        raise click.UsageError(f"{folder}: {split}_0.json already exists; name another FOLDER or --split")
    pack = generator.generate(tasks, seed, raw_html)
    try:
        files = generator.write(pack, folder, split, TASKS_A_FILE)
    except OSError as error:
        raise click.UsageError(f"FOLDER: can't be written: {error}; name another") from error
    click.echo(f"{tasks} tasks with {len(pack.scores)} steps in {len(files) - 1} files, and {files[0].name}: {folder}")


@mind2web.command()
@click.argument("pickled", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("output", type=click.Path(dir_okay=False, path_type=Path))
def scores(pickled: Path, output: Path) -> None:
    """Convert the official score file (scores_all_data.pkl) to JSON lines for the field `scores` of a task file.

    Only dicts, strings and numbers are read; a pickle that holds anything else is refused.
    """
    try:
        lines = list(converter.convert(pickled))
        output.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except (OSError, ValueError) as error:
        raise click.UsageError(str(error)) from error
    click.echo(f"{len(lines)} steps: {output}")
