"""Writes the games of ALFWorld and the tasks of Mind2Web that ship with Proctor: `python -m tools.datagen FOLDER`."""

import lzma
import sys
from pathlib import Path

from pydantic import TypeAdapter

from environments.alfworld.dataset import PACK
from environments.alfworld.generate import generator as games
from environments.alfworld.texts import OwnGame
from environments.mind2web.environment import OWN_SPLIT
from environments.mind2web.generate import generator as pages

GAMES = 36
TASKS, TASKS_A_FILE, SEED = 60, 3, 49
"""Of Mind2Web."""


def main(folder: Path) -> None:
    """Writes the packed files of both worlds."""
    plain = pages.write(pages.generate(TASKS, SEED), folder, OWN_SPLIT, TASKS_A_FILE)
    for path in plain:
        _write(path.with_name(f"{path.name}.xz"), path.read_bytes())
        path.unlink()
    _write(folder / PACK.name, TypeAdapter(tuple[OwnGame, ...]).dump_json(tuple(games.generate(GAMES))))


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(lzma.compress(content, preset=9))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
