"""Plays a game on our engine and on TextWorld's (PyPI textworld[pddl]) side by side, and compares their states."""

import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from environments.alfworld.engine.game import ReadyGame, names
from environments.alfworld.engine.world import GameWorld
from environments.alfworld.texts import GameTexts

IMPOSSIBLE = "fly to the moon"


class State(NamedTuple):
    """An engine's text, its admissible commands, and whether the game is won, after a command."""

    text: str
    admissible: list[str]
    won: bool


class TextWorld:
    """One game on TextWorld's engine, with ALFWorld's display names, not shuffled."""

    def __init__(self, texts: GameTexts) -> None:
        """Raises ModuleNotFoundError where textworld is not installed."""
        from textworld import EnvInfos
        from textworld.envs import PddlEnv

        self._env = PddlEnv(EnvInfos(admissible_commands=True, won=True, feedback=True))
        self._env.load(texts.model_dump())
        display_names = names(self._env._entity_infos)
        for info in self._env._entity_infos.values():
            info.name = display_names[info.id]

    def reset(self) -> State:
        """The state before the first command."""
        return _state(self._env.reset())

    def step(self, command: str) -> State:
        """The state after a command."""
        return _state(self._env.step(command)[0])


def differences(name: str, texts: GameTexts, steps: int, seed: int) -> Iterator[str]:
    """The first difference along the plan, if the game has one, and the first over so many random commands."""
    chance = random.Random(f"{name} {seed}")
    game = ReadyGame(texts.pddl_domain, texts.grammar, texts.pddl_problem)
    real = TextWorld(texts)
    for commands in ((IMPOSSIBLE, *(texts.walkthrough or ())), (None,) * steps):
        difference = _difference(game, real, commands, chance)
        if difference is not None:
            yield f"{name}: {difference}"


def _difference(game: ReadyGame, real: TextWorld, commands: Sequence[str | None], chance: random.Random) -> str | None:
    """The first difference between two sessions; a command that is None is drawn at random."""
    world = GameWorld(game)
    expected, found, done = real.reset(), State(world.intro, world.admissible(), world.won), ["reset"]
    for given in commands:
        if found != expected:
            break
        command = given or chance.choice(found.admissible)
        done.append(command)
        expected, text = real.step(command), world.step(command)
        found = State(text, world.admissible(), world.won)
    return None if found == expected else f"after {' > '.join(done)}: here {found}, TextWorld {expected}"


def _state(state: Any) -> State:
    """A state of `textworld`, which has no types."""
    return State(state.feedback, list(state.admissible_commands), bool(state.won))
