"""What a player can do in a phase, and what is told about what happened."""

from typing import Literal, NamedTuple


class Assert(NamedTuple):
    """Claim that the enemy at a position is of a kind."""

    position: int
    id: int


class Pass(NamedTuple):
    """Assert nothing."""


class Attack(NamedTuple):
    """A normal attack on one enemy."""

    position: int
    target: int


class Skill(NamedTuple):
    """The active skill of the fish at a position."""

    position: int
    mates: tuple[int, ...] = ()
    enemies: tuple[int, ...] = ()


Move = Assert | Pass | Attack | Skill
EventKind = Literal["hit", "deflect", "counter", "reduce", "heal", "explode"]


class GameEvent(NamedTuple):
    """Something that happened to a fish within an action."""

    kind: EventKind
    player: int
    """Owner of the fish."""
    position: int
    """Of the fish; for a counter, of the fish whose being hit set it off."""
    value: float
    """hit: damage; deflect: the own part; heal: points gained; reduce: the part of the damage that is left."""
    traceable: bool = False
    """hit: whether somebody dealt it."""


class MoveRecord(NamedTuple):
    """An action as both players may look back on it."""

    position: int
    skill: Literal["aoe", "infight", "crit", "subtle", "normal"]
    damage: int
    """Nominal, before anything reduces it."""
    mates: tuple[int, ...]
    """Empty for subtle: nobody is told whom it shields."""
    enemies: tuple[int, ...]
    events: tuple[GameEvent, ...]
