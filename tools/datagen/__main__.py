"""Writes the samples of ALFWorld, Mind2Web and WebShop that ship with Proctor: `python -m tools.datagen FOLDER`."""

import lzma
import sys
from pathlib import Path

from pydantic import TypeAdapter

from environments.alfworld.dataset import PACK
from environments.alfworld.texts import OwnGame
from environments.mind2web.environment import OWN_SPLIT
from tools.datagen.alfworld import generator as games
from tools.datagen.mind2web import generator as pages
from tools.datagen.webshop import generator as products

GAMES = 36
TASKS, TASKS_A_FILE, SEED = 60, 3, 49
"""Of Mind2Web."""
PRODUCTS, GOALS = 1_000, 200


def main(folder: Path) -> None:
    """Writes the packed files of each world to a folder of its name."""
    alfworld, mind2web = folder / "alfworld", folder / "mind2web"
    for path in pages.write(pages.generate(TASKS, SEED), mind2web, OWN_SPLIT, TASKS_A_FILE):
        _write(path.with_name(f"{path.name}.xz"), path.read_bytes())
        path.unlink()
    alfworld.mkdir(parents=True)
    _write(alfworld / PACK.name, TypeAdapter(tuple[OwnGame, ...]).dump_json(tuple(games.generate(GAMES))))
    products.write(folder / "webshop", PRODUCTS, GOALS, compress=True)


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(lzma.compress(content, preset=9))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
