"""`proctor alfworld`: makes games, and compares the engine with TextWorld's."""

from collections.abc import Iterable
from pathlib import Path

import click

from environments.alfworld import dataset
from environments.alfworld.cross_check import differences
from environments.alfworld.engine.errors import GameError
from environments.alfworld.generate import generator
from environments.alfworld.texts import GameTexts, OwnGame


@click.group()
def alfworld() -> None:
    """Games of the environment alfworld: make more, and check the engine that plays them."""


@alfworld.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--games", type=click.IntRange(min=1), default=36, show_default=True, help="The task type changes with each."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Equal seeds give equal games.")
def generate(folder: Path, games: int, seed: int) -> None:
    """Write games of all six task types to FOLDER, as self-contained game.tw-pddl files.

    Each game is proven solvable and holds its plan under `walkthrough`. Play the games with `data: FOLDER`.
    """
    write(folder, generator.generate(games, seed))


@alfworld.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def export(folder: Path) -> None:
    """Write the games that ship with Proctor to FOLDER, as self-contained game.tw-pddl files."""
    write(folder, dataset.own_games())


@alfworld.command("cross-check")
@click.argument("paths", type=click.Path(exists=True, path_type=Path), nargs=-1)
@click.option(
    "--steps", type=click.IntRange(min=0), default=30, show_default=True, help="Random commands to try after the plan."
)
@click.option("--seed", type=int, default=0, show_default=True)
def cross_check(paths: tuple[Path, ...], steps: int, seed: int) -> None:
    """Play games on this engine and on TextWorld's, and print the differences.

    PATHS are game files or folders of them; the default is five of the shipped games. Needs the extra textworld.
    """
    try:
        games = _games(paths)
        found = [difference for name, texts in games for difference in _differences(name, texts, steps, seed)]
    except ModuleNotFoundError as error:
        raise click.UsageError(f"{error}; install what it needs: pip install 'proctor[textworld]'") from error
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    for difference in found:
        click.echo(difference)
    click.echo(f"{len(games)} games, {len(found)} differences")
    if found:
        raise click.exceptions.Exit(1)


def write(folder: Path, games: Iterable[OwnGame]) -> None:
    """Writes game files below a new folder. Raises UsageError where the folder is not empty or can't be written to."""
    count = 0
    try:
        if folder.exists() and any(folder.iterdir()):
            raise click.UsageError(f"{folder}: is not empty; give a new folder")
        for game in games:
            path = folder / game.path
            path.parent.mkdir(parents=True)
            path.write_text(game.texts().model_dump_json(exclude_none=True), encoding="utf-8")
            count += 1
    except OSError as error:
        raise click.UsageError(f"{folder}: can't be written: {error.strerror}; give a new folder elsewhere") from error
    click.echo(f"{count} games: {folder}")


def _games(paths: tuple[Path, ...]) -> list[tuple[str, GameTexts]]:
    if not paths:
        return [(game.path, game.texts()) for game in dataset.own_games()[::8]]
    files = [file for path in paths for file in (sorted(path.rglob(dataset.GAME_FILE)) if path.is_dir() else [path])]
    if not files:
        raise ValueError(f"{paths[0]}: holds no {dataset.GAME_FILE}; give game files, or folders of them")
    return [(str(file), dataset.read(file)) for file in files]


def _differences(name: str, texts: GameTexts, steps: int, seed: int) -> list[str]:
    try:
        return list(differences(name, texts, steps, seed))
    except GameError as error:
        raise GameError(f"{name}: {error}") from error
