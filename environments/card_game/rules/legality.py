"""The legality of moves."""

from collections.abc import Sequence

from environments.card_game.rules.fish import HAMMERHEAD, SPECIES, WHITESHARK, Fish
from environments.card_game.rules.moves import Assert, Attack, Move, Pass, Skill

LOWEST_ONLY = (WHITESHARK, HAMMERHEAD)
"""Fish whose skill may be used only on an enemy with the lowest hp."""
Team = Sequence[Fish]


def problem(asserting: bool, own: Team, enemies: Team, move: Move) -> str | None:
    """Why the move is illegal in this phase, in words for the player; None where it is legal."""
    if asserting != isinstance(move, Assert | Pass):
        return "this is the phase for a guess" if asserting else "this is the phase for an action"
    match move:
        case Assert(position, id):
            return _assertion(enemies, position, id)
        case Attack(position, target):
            return _absent(own, position, "your") or _absent(enemies, target, "the enemy's")
        case Skill(position):
            return _absent(own, position, "your") or _skill(own, enemies, move)
        case Pass():
            return None


def _absent(team: Team, position: int, whose: str) -> str | None:
    if position not in range(len(team)):
        return f"there is no position {position}; positions are 0 to {len(team) - 1}"
    return f"{whose} fish at position {position} is dead" if team[position].dead else None


def _assertion(enemies: Team, position: int, id: int) -> str | None:
    if id not in SPECIES:
        return f"there is no fish of id {id}"
    absent = _absent(enemies, position, "the enemy's")
    if absent is None and enemies[position].exposed:
        return f"the enemy's fish at position {position} is exposed already"
    return absent


def _skill(own: Team, enemies: Team, move: Skill) -> str | None:
    fish = own[move.position]
    match fish.species.active:
        case "aoe":
            living = [enemy.position for enemy in enemies if not enemy.dead]
            if move.mates or sorted(move.enemies) != living:
                return "this skill hits exactly all living enemies"
            return None
        case "crit":
            if move.mates or len(move.enemies) != 1:
                return "this skill hits one living enemy"
            return _absent(enemies, move.enemies[0], "the enemy's") or _not_lowest(fish, enemies, move.enemies[0])
        case "infight" | "subtle":
            if move.enemies or len(move.mates) != 1:
                return "this skill is used on one living fish of your own"
            if fish.species.active == "infight" and move.mates[0] == move.position:
                return f"{fish.species.name} can't use its skill on itself"
            return _absent(own, move.mates[0], "your")


def _not_lowest(fish: Fish, enemies: Team, target: int) -> str | None:
    lowest = min(enemy.hp for enemy in enemies if not enemy.dead)
    if fish.id in LOWEST_ONLY and enemies[target].hp > lowest:
        return f"{fish.species.name} can use its skill only on the enemy with the lowest hp"
    return None
