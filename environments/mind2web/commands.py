"""`proctor mind2web`: converts score files."""

from pathlib import Path

import click

from environments.mind2web.data import converter


@click.group()
def mind2web() -> None:
    """Convert Mind2Web's score file."""


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
