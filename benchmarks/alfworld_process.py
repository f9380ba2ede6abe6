"""What one engine costs in a process of its own that plays games one after the other: one JSON object.

Run by worlds_alfworld, also with another interpreter, one that has TextWorld: needs pydantic and the engine alone.
"""

import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path

from environments.alfworld import dataset
from environments.alfworld.engine.game import ReadyGame
from environments.alfworld.engine.world import GameWorld
from environments.alfworld.texts import GameTexts
from tools.datagen.alfworld.cross_check import TextWorld

SETTLED = 100
"""Games after which a process has what it keeps, if it has so many to play."""
PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2**20


def games(data: Path | None, count: int) -> Iterator[GameTexts]:
    """So many games with their plans, the folder's or the shipped ones over and over; each has a task of its own."""
    found = [game.texts() for game in dataset.own_games()] if data is None else _published(data)
    for number, texts in enumerate(islice(cycle(found), count)):
        grammar = texts.grammar.replace("Your task is to: ", f"Your task is to: {number} ", 1)
        yield texts.model_copy(update={"grammar": grammar})


def _published(data: Path) -> list[GameTexts]:
    """The games below a folder; plans from `walkthroughs.json` in it, where a game brings none along."""
    plans = dataset.plans(data / "walkthroughs.json")
    return [
        texts.model_copy(update={"walkthrough": texts.walkthrough or plans[str(path.relative_to(data))]})
        for path in sorted(data.rglob(dataset.GAME_FILE))
        for texts in [dataset.read(path)]
    ]


def play(engine: str, texts: GameTexts) -> tuple[float, list[float]]:
    """CPU seconds until the first list of commands is there, and of each step of the plan with its list and goal."""
    content, steps = texts.model_dump_json(), list[float]()
    began = time.process_time()
    if engine == "textworld":
        real = TextWorld(GameTexts.model_validate_json(content))
        real.reset()
    else:
        read = GameTexts.model_validate_json(content)
        world = GameWorld(ReadyGame(read.pddl_domain, read.grammar, read.pddl_problem))
        world.admissible()
    loaded = time.process_time() - began
    for command in texts.walkthrough or ():
        began = time.process_time()
        if engine == "textworld":
            real.step(command)
        else:
            world.step(command), world.admissible(), world.won
        steps.append(time.process_time() - began)
    return loaded, steps


def measured(engine: str, count: int, data: Path | None) -> dict[str, float | Sequence[float]]:
    """Times in ms of so many games, how much the process grew in MiB per game, and what it left open or on disk."""
    loads, steps, settled = list[float](), list[float](), min(SETTLED, max(1, count // 5))
    before, opened = 0.0, len(os.listdir("/proc/self/fd"))
    for number, texts in enumerate(games(data, count)):
        loaded, took = play(engine, texts)
        loads.append(1000 * loaded)
        steps += [1000 * each for each in took]
        if number + 1 == settled:
            before = _resident_mib()
    grown = _resident_mib() - before
    return {
        "loads_ms": loads,
        "steps_ms": steps,
        "grown_mib": grown,
        "grown_mib_per_game": grown / max(1, count - settled),
        "files_opened": len(os.listdir("/proc/self/fd")) - opened,
        "files_written": len(os.listdir(tempfile.gettempdir())),
    }


def _resident_mib() -> float:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_MIB


if __name__ == "__main__":
    named, number_of_games, *folder = sys.argv[1:]
    print(json.dumps(measured(named, int(number_of_games), Path(folder[0]) if folder else None)))
