"""`proctor webshop`: generates, indexes and shows catalogues."""

from pathlib import Path
from typing import Literal

import click

from environments.webshop import shipped
from environments.webshop.catalogue.check_goals import compare, read
from environments.webshop.catalogue.generate import write
from environments.webshop.catalogue.make import make
from environments.webshop.catalogue.nouns import extractor
from environments.webshop.catalogue.published import files_in
from environments.webshop.shop import shop
from environments.webshop.shop.browse import app
from proctor import event_loop
from proctor.http.server import ConfigError, listen, url_of, uvicorn_config
from proctor.http.serving import serve_until_signal

HOST = "127.0.0.1"
_EXISTING = click.Path(exists=True, path_type=Path)
_NEW = click.Path(path_type=Path)


@click.group()
def webshop() -> None:
    """Generate catalogues of the environment webshop, index them, and show them in a browser."""


@webshop.command()
@click.argument("folder", type=_NEW)
@click.option("--products", type=click.IntRange(min=1), default=10_000, show_default=True)
@click.option("--goals", type=click.IntRange(min=1), default=500, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--compress", is_flag=True, help="Write .json.gz.")
def generate(folder: Path, products: int, goals: int, seed: int, compress: bool) -> None:
    """Generate products and goals, and write them to FOLDER in the form of the published files."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise click.UsageError(f"{folder}: already exists; give a new folder")
    try:
        write(folder, products, goals, seed, compress=compress)
    except OSError as error:
        raise click.UsageError(f"{folder}: can't be written: {error}; give a new folder elsewhere") from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    click.echo(f"{folder}: {products} products, {goals} goals; next: proctor webshop index {folder} CATALOGUE")


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


@webshop.command()
@click.option("--data", type=_EXISTING, help="Folder of a catalogue; default: the one shipped with Proctor.")
@click.option("--profile", type=click.Choice(["compat", "strict"]), default="compat", show_default=True)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0 for a free port.")
def browse(data: Path | None, profile: Literal["compat", "strict"], port: int) -> None:
    """Serve the shop as web pages on this machine only, until interrupted."""
    try:
        with shop.opened(data or shipped.catalogue(None)) as opened, listen(HOST, port) as listener:
            url = url_of(HOST, listener)
            config = uvicorn_config(app(opened, profile), keep_alive_s=5, last_replies_s=1)
            event_loop.run(serve_until_signal(config, listener, lambda: click.echo(url)))
    except (ConfigError, ValueError) as error:
        raise click.UsageError(str(error)) from error
