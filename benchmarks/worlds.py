"""The worlds that are recompiled from published benchmarks: what their games, catalogues and pages cost.

`--full` adds WebShop's catalogue of 1.18 million products, which takes half an hour; `--textworld PYTHON` names an
interpreter that has textworld[pddl], to be measured beside our ALFWorld engine, if this one has not.
"""

import importlib.util
import sys
from argparse import ArgumentParser
from collections.abc import Iterator

from benchmarks import measure, worlds_alfworld, worlds_mind2web, worlds_webshop
from benchmarks.measure import Figure

QUICK_GAMES = 20


def figures(quick: bool, full: bool, textworld: str | None) -> Iterator[Figure]:
    """The figures of each world, under its name."""
    games = QUICK_GAMES if quick else worlds_alfworld.GAMES
    sizes = worlds_webshop.SIZES[:1] if quick else worlds_webshop.SIZES
    worlds = {
        "alfworld": worlds_alfworld.figures(games, None, textworld),
        "webshop": worlds_webshop.figures((*sizes, worlds_webshop.FULL) if full else sizes),
        "mind2web": worlds_mind2web.measure(quick),
    }
    for world, measured in worlds.items():
        for each in measured:
            yield each.model_copy(update={"name": f"{world}, {each.name}"})


def main() -> None:
    """All three, one after the other."""
    own = sys.executable if importlib.util.find_spec("textworld") else None
    parser = ArgumentParser(add_help=False)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--textworld", metavar="PYTHON", default=own)
    options, sys.argv[1:] = parser.parse_known_args()
    measure.main(lambda quick: figures(quick, options.full, options.textworld), __doc__)


if __name__ == "__main__":
    main()
