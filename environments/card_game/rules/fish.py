"""The nine types of fish, and the state of a fish in a game (arXiv 2308.03688, Appendix E; AgentBench v0.2)."""

from typing import Literal, NamedTuple

MAX_HP = 400
TEAM = 4
Passive = Literal["counter", "deflect", "reduce", "heal", "explode"]
Active = Literal["aoe", "infight", "crit", "subtle"]


class Species(NamedTuple):
    """One type of fish."""

    name: str
    attack: int
    """At the start of a game in the published code; in the paper every fish has 200."""
    passive: Passive
    active: Active


SPECIES = {
    1: Species("spray", 200, "counter", "aoe"),
    2: Species("flame", 200, "counter", "infight"),
    3: Species("eel", 200, "deflect", "aoe"),
    4: Species("sunfish", 200, "deflect", "infight"),
    5: Species("barracuda", 100, "reduce", "crit"),
    6: Species("mobula", 100, "reduce", "subtle"),
    8: Species("octopus", 100, "heal", "subtle"),
    9: Species("whiteshark", 100, "heal", "crit"),
    10: Species("hammerhead", 100, "explode", "crit"),
}
"""By id. The published engine also has the ids 7, 11 and 12, which no task uses."""

SPRAY, FLAME, EEL, SUNFISH, BARRACUDA, MOBULA, OCTOPUS, WHITESHARK, HAMMERHEAD = SPECIES
IDS = {species.name: id for id, species in SPECIES.items()}
STANDARD_TEAM = (SPRAY, FLAME, EEL, SUNFISH)
"""In position order; the team of both sides in every published task."""


class Fish:
    """A fish in a game; `position` is its place in its team, from 0 to 3."""

    __slots__ = ("attack", "dead", "exposed", "hp", "id", "player", "position", "shield", "species", "wound")

    def __init__(self, id: int, player: int, position: int, attack: int) -> None:
        self.id = id
        self.species = SPECIES[id]
        self.player = player
        self.position = position
        self.attack = attack
        self.hp = MAX_HP
        """May fall below 0 within an action, and stays there after it."""
        self.wound = 0
        self.shield = False
        self.exposed = False
        self.dead = False
        """Set between phases only: within an action a fish without hp still counts as living."""

    @property
    def effective_attack(self) -> int:
        """The attack; a hammerhead below a fifth of its hp has 15 more."""
        return self.attack + 15 if self.id == HAMMERHEAD and self.hp * 5 < MAX_HP else self.attack
