"""`proctor webshop`: indexes catalogues."""

from pathlib import Path

import click

from environments.webshop.catalogue.check_goals import compare, read
from environments.webshop.catalogue.make import make
from environments.webshop.catalogue.nouns import extractor
from environments.webshop.catalogue.published import files_in

_EXISTING = click.Path(exists=True, path_type=Path)
_NEW = click.Path(path_type=Path)


@click.group()
def webshop() -> None:
    """Make catalogues of the environment webshop."""


@webshop.command()
@click.argument("folder", type=_EXISTING)
@click.argument("catalogue", type=_NEW)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of price limits, and of prices in price ranges."
)
@click.option("--nouns", default="lexical", show_default=True, help="lexical, or the name of a spaCy model.")
@click.option("--check", type=_EXISTING, help="JSON list of {goal_index, instruction} that the goals must agree with.")
def index(folder: Path, catalogue: Path, seed: int, nouns: str, check: Path | None) -> None:
    """Make a CATALOGUE, for the field `data` of a task, from the published files in FOLDER (WebShop's `data`)."""
    if catalogue.exists():
        raise click.UsageError(f"{catalogue}: already exists; remove it or give a new folder")
    try:
        published = None if check is None else read(check)
        meta = make(files_in(folder), catalogue, extractor(nouns), seed)
    except (OSError, ValueError) as error:
        raise click.UsageError(str(error)) from error
    click.echo(f"{catalogue}: {meta.products} products, {meta.goals} goals, nouns by {meta.nouns}, seed {seed}")
    for problem, count in meta.problems.items():
        click.echo(f"  {count} x {problem}")
    if published is not None:
        try:
            compare(catalogue, published)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        click.echo(f"  {len(published.goals)} goals agree with {check}")
