"""The moves of a phase, and the records of their effects."""

from typing import Literal, NamedTuple


class Assert(NamedTuple):
    """The claim that the enemy at a position is of a type."""

    position: int
    id: int


class Pass(NamedTuple):
    """No claim in an assertion phase."""


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
    """One effect on a fish within an action."""

    kind: EventKind
    player: int
    """Owner of the fish."""
    position: int
    """Of the fish; for a counter, of the fish whose mates strike back."""
    value: float
    """hit: damage; deflect: the damage kept; heal: hp gained; reduce: the share of the damage that is left."""
    traceable: bool = False
    """hit: whether it has a source, that is an attacking fish."""


class MoveRecord(NamedTuple):
    """An action as both players may see it afterwards."""

    position: int
    skill: Literal["aoe", "infight", "crit", "subtle", "normal"]
    damage: int
    """Nominal: before any reduction."""
    mates: tuple[int, ...]
    """Empty for subtle: the shielded fish stays secret."""
    enemies: tuple[int, ...]
    events: tuple[GameEvent, ...]
