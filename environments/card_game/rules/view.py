"""A player's view of a game."""

from typing import NamedTuple

from environments.card_game.rules.engine import Game


class Own(NamedTuple):
    """A fish of the player's own."""

    id: int
    hp: int
    """0 if dead."""
    attack: int
    """The effective attack."""


class Enemy(NamedTuple):
    """A fish of the other side; its attack is never shown."""

    id: int | None
    """None while hidden."""
    hp: int
    """0 if dead."""


class View(NamedTuple):
    """Both teams in position order, and the other side's last actor."""

    own: tuple[Own, ...]
    enemies: tuple[Enemy, ...]
    actor: int | None
    """The position of the enemy that acted last; None before its first action."""

    def living(self) -> list[int]:
        """Positions of the living own fish."""
        return [position for position, fish in enumerate(self.own) if fish.hp > 0]

    def targets(self) -> list[int]:
        """Positions of the living enemies."""
        return [position for position, fish in enumerate(self.enemies) if fish.hp > 0]

    def unknown(self) -> list[int]:
        """Positions of the living enemies that are hidden."""
        return [position for position in self.targets() if self.enemies[position].id is None]

    def weakest(self) -> list[int]:
        """Positions of the living enemies with the lowest hp."""
        lowest = min(self.enemies[position].hp for position in self.targets())
        return [position for position in self.targets() if self.enemies[position].hp == lowest]


def seen_by(game: Game, player: int) -> View:
    """The view of a player between two phases."""
    last = game.actions[1 - player]
    return View(
        tuple([Own(fish.id, max(fish.hp, 0), fish.effective_attack) for fish in game.teams[player]]),
        tuple([Enemy(fish.id if fish.exposed else None, max(fish.hp, 0)) for fish in game.teams[1 - player]]),
        last.position if last else None,
    )
